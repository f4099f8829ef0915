#!/bin/bash
# Functions with local variables and arguments.
layers=40

model_args() {
    local layers=$1 hidden=$2
    local heads=$((hidden / 64))
    MODEL="--num-layers $layers --hidden-size $hidden --num-attention-heads $heads"
}

function launch {
    local procs=$1
    shift
    torchrun --nproc_per_node "$procs" pretrain_gpt.py $MODEL "$@" 2>&1 | tee "logs/run.log"
}

sequence() { echo "--seq-length $1 --max-position-embeddings $1"; }

model_args 24 1024
launch 8 $(sequence 2048) --micro-batch-size 1 --global-batch-size 16 --vocab-size 50257 --bf16 \
    --pipeline-model-parallel-size 8 --save "$CKPT"
