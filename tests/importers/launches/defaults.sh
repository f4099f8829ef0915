#!/bin/bash
# Defaults, and arithmetic on them.
set -euo pipefail
PP=${PP:-2}
MBS=${MBS-4}
: "${SEQ:=2048}"
: ${GPUS:=$((2 * PP))}
LAYERS=$((12*PP))
HIDDEN=$(( 128 * 16 ))
GBS=$(($MBS * GPUS / PP * 8))

torchrun --nproc_per_node $GPUS --nnodes ${NNODES:-1} pretrain_gpt.py \
    --num-layers $LAYERS --hidden-size $HIDDEN --num-attention-heads $((HIDDEN / 128)) \
    --seq-length ${SEQ} --max-position-embeddings ${SEQ} \
    --micro-batch-size ${MBS} --global-batch-size ${GBS} \
    --vocab-size 32000 --bf16 --pipeline-model-parallel-size ${PP}
