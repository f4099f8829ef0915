#!/bin/sh
# Arithmetic of older shells.
NODES=2
GPUS=`expr $NODES \* 4`
LAYERS=$(echo "$GPUS*3" | bc)
HALF=$((LAYERS/2))
((BATCH = HALF * 4))
let "MICRO = BATCH / 48"
FLAG=$(echo bf16)
torchrun --nnodes $NODES --nproc_per_node `expr $GPUS / $NODES` pretrain_gpt.py --num-layers $LAYERS --hidden-size 1536 \
    --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size $MICRO \
    --global-batch-size $BATCH --vocab-size 50257 --$FLAG --pipeline-model-parallel-size $GPUS
