#!/bin/bash
# The same with a backslash at every line's end inside the quotes, single quotes too.
GPT_ARGS="--num-layers 24 \
  --hidden-size 1024 \
  --num-attention-heads 16 \
  --seq-length 1024 \
  --max-position-embeddings 1024 "

RUN_ARGS='--micro-batch-size 2 --global-batch-size 32 --vocab-size 50257 --bf16 --pipeline-model-parallel-size 2'

python -m torch.distributed.run --nproc-per-node=2 --nnodes=1 \
    pretrain_gpt.py $GPT_ARGS $RUN_ARGS
