#!/bin/bash
# Subshells, groups, pipes and lists leave the variables that they should.
LAYERS=12
(LAYERS=99; echo $LAYERS)
echo 5 | read LAYERS
{ HIDDEN=768; HEADS=12; } && SEQ=1024 || SEQ=1
true && { MICRO=2; }
false || BATCH=32
if command -v nvidia-smi > /dev/null; then echo "devices are there"; fi
unset UNUSED
export -n HEADS
torchrun --nproc_per_node 4 pretrain_gpt.py --num-layers $LAYERS --hidden-size $HIDDEN --num-attention-heads $HEADS \
    --seq-length $SEQ --max-position-embeddings $SEQ --micro-batch-size $MICRO --global-batch-size $BATCH \
    --vocab-size 50257 --bf16 --pipeline-model-parallel-size 4 || { echo failed; exit 1; }
