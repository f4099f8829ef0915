#!/bin/bash
# DeepSpeed's launcher for a run without its engine.
deepspeed --num_nodes 2 --num_gpus 4 --hostfile hosts.txt pretrain_gpt.py \
    --num-layers 16 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 \
    --micro-batch-size 2 --global-batch-size 32 --vocab-size 50257 --fp16 --pipeline-model-parallel-size 8 \
    --accumulate-allreduce-grads-in-fp32
