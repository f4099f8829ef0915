#!/bin/bash
# Copies of the pipeline with a distributed optimizer.
torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 2560 --num-attention-heads 32 \
    --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 2 --global-batch-size 128 \
    --vocab-size 50257 --bf16 --pipeline-model-parallel-size 4 --use-distributed-optimizer --grad-reduce-in-bf16
