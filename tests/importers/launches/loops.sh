#!/bin/bash
# Loops that build arguments.
LAYOUT="Et"
for ((i = 0; i < 3; i++)); do
    LAYOUT="${LAYOUT}|t*3"
done
LAYOUT="${LAYOUT},L"
n=1
while [ $n -lt 8 ]; do n=$((n * 2)); done
until ((n <= 4)); do let n=n/2; done
ARGS=""
for size in "seq-length 512" "max-position-embeddings 512"; do
    ARGS="$ARGS --$size"
done
for k in $(seq 1 3); do last=$k; done
for k in {1..10}; do [ $k -eq 10 ] && LAYERS=$k; done
torchrun --nproc_per_node $n pretrain_gpt.py --num-layers $LAYERS --hidden-size 512 --num-attention-heads 8 $ARGS \
    --micro-batch-size $last --global-batch-size $((last * 8)) --vocab-size 1000 --bf16 \
    --pipeline-model-parallel-size $n --pipeline-model-parallel-layout "$LAYOUT"
