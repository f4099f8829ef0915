#!/bin/bash
# Embedding and loss count as layers.
torchrun --nproc_per_node 4 pretrain_gpt.py --num-layers 30 --hidden-size 2048 --num-attention-heads 16 \
    --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 16 \
    --vocab-size 50257 --bf16 --pipeline-model-parallel-size 4 \
    --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split
