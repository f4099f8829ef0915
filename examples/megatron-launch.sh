#!/bin/sh
# A Megatron-LM launch of GPT-2 medium on four GPUs, one per pipeline stage, as an input for HOPS:
#
#     hops import megatron examples/megatron-launch.sh --devices a10g,a10g,l4,l4 -o spec.yaml
torchrun --nnodes 4 --nproc-per-node 1 pretrain_gpt.py \
    --pipeline-model-parallel-size 4 \
    --num-layers 24 \
    --hidden-size 1024 \
    --num-attention-heads 16 \
    --seq-length 1024 \
    --max-position-embeddings 1024 \
    --vocab-size 50257 \
    --micro-batch-size 4 \
    --global-batch-size 128 \
    --bf16 \
    --lr 1.5e-4 \
    --train-iters 500000
