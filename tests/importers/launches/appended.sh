#!/bin/bash
# Arrays and texts that grow.
ARGS=(--num-layers 10 --hidden-size 640)
ARGS+=(--num-attention-heads 10)
ARGS+=("--seq-length" "1024" --max-position-embeddings 1024)
ARGS[${#ARGS[@]}]=--bf16
OPT="--micro-batch-size 2"
OPT+=" --global-batch-size 20 --vocab-size 50257"
OPT="${OPT} --pipeline-model-parallel-size 5"
torchrun --nproc_per_node 5 pretrain_gpt.py "${ARGS[@]}" ${OPT}
