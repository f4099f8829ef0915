#!/bin/bash
# Sizes from a file beside the script.
source "$(dirname "$0")/sourced_sizes.env"
. /etc/profile
torchrun --nproc_per_node $GPUS pretrain_gpt.py --num-layers $NUM_LAYERS --hidden-size $HIDDEN_SIZE \
    --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 \
    --micro-batch-size 1 --global-batch-size 8 --vocab-size 50257 --bf16 --pipeline-model-parallel-size $GPUS
