#!/bin/bash
# Parameters that are cut, replaced and looked up by name.
RUN=gpt_L22_H1408.v2
SIZES=${RUN#gpt_}
SIZES=${SIZES%%.*}
L=${SIZES%_*}
LAYERS=${L:1}
HIDDEN=${SIZES##*_H}
KEY=HEADS
HEADS=22
KIND=BF16
LIST=2,11
PROCS=${LIST#*,}
torchrun --nproc_per_node ${PROCS} pretrain_gpt.py --num-layers ${LAYERS} --hidden-size ${HIDDEN} \
    --num-attention-heads ${!KEY} --seq-length ${SEQ:-1024} --max-position-embeddings ${MAX:=1024} \
    --micro-batch-size ${LIST%,*} --global-batch-size ${LIST/,11/2} --vocab-size 50257 --${KIND,,} \
    --pipeline-model-parallel-size ${PROCS} ${DEBUG:+--log-throughput}
