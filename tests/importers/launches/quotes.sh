#!/bin/bash
# Quotes where a reader of lines stumbles: don't stop here, it's a comment.
echo "Training isn't slow; it's \"fine\""
echo 'he said "go"' && printf '%s\n' "it's $(date)"
NAME="a run's name"
TITLE='"quoted"'
torchrun --nproc_per_node 2 pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 \
    --seq-length 512 --max-position-embeddings 512 --micro-batch-size 2 --global-batch-size 16 \
    --vocab-size 1000 --fp16 --pipeline-model-parallel-size 2 --wandb-exp-name "$NAME" \
    --wandb-project "${TITLE}" --data-path '/data/it is here'
