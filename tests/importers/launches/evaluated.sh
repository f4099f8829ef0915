#!/bin/bash
# A command that is put together and evaluated.
CMD="torchrun --nproc_per_node 4"
CMD="$CMD pretrain_gpt.py --num-layers 12"
CMD+=" --hidden-size 768 --num-attention-heads 12 --seq-length 1024 --max-position-embeddings 1024"
CMD+=" --micro-batch-size 2 --global-batch-size 32 --vocab-size 50257 --bf16 --pipeline-model-parallel-size 4"
CMD+=" --wandb-exp-name 'a name'"
echo $CMD
eval $CMD
