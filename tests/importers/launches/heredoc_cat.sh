#!/bin/bash
# Flags in a here-document that a substitution reads.
LAYERS=20
OPTIONS=$(cat <<EOF
    --num-layers $LAYERS
    --hidden-size 1280
    --num-attention-heads 20
    --seq-length 1024
    --max-position-embeddings 1024
    --micro-batch-size 2
    --global-batch-size 40
EOF
)
MORE=$(cat <<'END'
 --vocab-size 50257 --bf16
 --pipeline-model-parallel-size 5
END
)
torchrun --nproc_per_node 5 pretrain_gpt.py $OPTIONS $MORE
