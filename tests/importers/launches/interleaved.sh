#!/bin/bash
# Virtual stages, with fewer layers on the first and the last rank.
VP=${VP:-2}
torchrun --nproc_per_node 4 pretrain_gpt.py --num-layers 32 --hidden-size 2048 --num-attention-heads 16 \
    --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 16 \
    --vocab-size 50257 --bf16 --pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank $VP \
    --decoder-first-pipeline-num-layers 4 --decoder-last-pipeline-num-layers 4
