#!/bin/bash
# Sizes by name.
MODEL=${MODEL:-2.7b}
case "$MODEL" in
    125m) L=12; H=768; A=12 ;;
    1.3b|1B) L=24; H=2048; A=16 ;;
    2.7b) L=32; H=2560; A=32 ;;
    *) echo "unknown size $MODEL"; exit 1 ;;
esac
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers $L --hidden-size $H --num-attention-heads $A \
    --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 32 \
    --vocab-size 50257 --bf16 --pipeline-model-parallel-size 8
