#!/bin/bash
# One quoted string over many lines, without backslashes.
PIPELINE=4
ARGS="
    --num-layers 24
    --hidden-size 1024
    --num-attention-heads 16
    --seq-length 1024
    --max-position-embeddings 1024
    --micro-batch-size 4
    --global-batch-size 64
    --vocab-size 50257
    --fp16
    --pipeline-model-parallel-size $PIPELINE
"

DATA="--data-path /data/text
    --split 949,50,1"

torchrun --nproc_per_node 4 pretrain_gpt.py $ARGS $DATA --distributed-backend nccl
