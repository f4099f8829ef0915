#!/bin/bash
# What the caller sets: nothing here says how many processes there are.
GPUS_PER_NODE=4
NNODES=$((WORLD_SIZE / GPUS_PER_NODE))
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES --node_rank $RANK --master_addr $MASTER_ADDR \
    pretrain_gpt.py \
    --num-layers 16 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 \
    --micro-batch-size 1 --global-batch-size 64 --vocab-size 50257 --bf16 \
    --pipeline-model-parallel-size $WORLD_SIZE --save $SAVE_DIR
