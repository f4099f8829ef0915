#!/bin/bash
# Sizes in maps.
declare -A LAYERS=([small]=12 [large]="36")
declare -A HIDDEN
HIDDEN[small]=768
HIDDEN[large]=1280
declare -a MICRO=(1 2 4)
SIZE=large
for name in "${!LAYERS[@]}"; do echo "known: $name"; done
torchrun --nproc_per_node 4 pretrain_gpt.py --num-layers ${LAYERS[$SIZE]} --hidden-size ${HIDDEN[$SIZE]} \
    --num-attention-heads $((${HIDDEN[$SIZE]} / 64)) --seq-length 1024 --max-position-embeddings 1024 \
    --micro-batch-size ${MICRO[1]} --global-batch-size $((${#MICRO[@]} * 16)) --vocab-size 50257 --fp16 \
    --pipeline-model-parallel-size 4
