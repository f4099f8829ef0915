#!/bin/bash
# Tests that can be decided, in every form.
if [ -z "$LAYERS" ]; then
    LAYERS=18
fi
[[ -n "$HIDDEN" ]] || HIDDEN=1536
if [[ $LAYERS -gt 12 && "$HIDDEN" == 15* ]]; then PP=6; elif (( LAYERS > 6 )); then PP=3; else PP=1; fi
test $PP -eq 6 && GPUS=6
if [ "$PP" = "1" -o "$GPUS" = "" ]; then
    echo "not enough devices" >&2
    exit 2
fi
EXTRA=""
if ! [ $PP -lt 4 ]; then EXTRA="$EXTRA --recompute-granularity selective"; fi
torchrun --nproc_per_node $GPUS pretrain_gpt.py --num-layers $LAYERS --hidden-size $HIDDEN --num-attention-heads 16 \
    --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 12 \
    --vocab-size 50257 --bf16 --pipeline-model-parallel-size $PP $EXTRA
