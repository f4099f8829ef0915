#!/usr/bin/env bash
# Members of an array that hold a flag and its value.
args=(
  "--num-layers 12"
  "--hidden-size 768"
  "--num-attention-heads 12"
  "--seq-length 1024"
  "--max-position-embeddings 1024"
  "--micro-batch-size 8"
  "--global-batch-size 64"
  "--vocab-size 50257"
  "--pipeline-model-parallel-size 4"
  "--bf16"
)
torchrun --nproc_per_node=4 pretrain_gpt.py "${args[@]}"
