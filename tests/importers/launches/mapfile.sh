#!/bin/bash
# Lines into an array, words into variables.
readarray -t ARGS <<EOF
--num-layers
12
--hidden-size
768
EOF
read HEADS SEQ <<< "12 1024"
set -- 2 16
torchrun --nproc_per_node 4 pretrain_gpt.py "${ARGS[@]}" --num-attention-heads $HEADS --seq-length $SEQ \
    --max-position-embeddings $SEQ --micro-batch-size $1 --global-batch-size $2 --vocab-size 50257 --bf16 \
    --pipeline-model-parallel-size 4
