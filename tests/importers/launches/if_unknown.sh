#!/bin/bash
# Tests that only the run can decide, about flags that change nothing.
CKPT=/checkpoints/gpt
ARGS=(--num-layers 24 --hidden-size 1024 --num-attention-heads 16)
LOAD=""
if [ -f "$CKPT/latest_checkpointed_iteration.txt" ]; then
    LOAD="--load $CKPT"
fi
if [ -d /local/scratch ]; then
    ARGS+=(--data-cache-path /local/scratch)
else
    ARGS+=(--num-workers 0)
fi
mkdir -p "$CKPT" || exit 1
torchrun --nproc_per_node 4 pretrain_gpt.py "${ARGS[@]}" $LOAD --seq-length 1024 --max-position-embeddings 1024 \
    --micro-batch-size 4 --global-batch-size 64 --vocab-size 50257 --bf16 --pipeline-model-parallel-size 4
