#!/bin/bash
# Options of the script itself; it is read as it stands, without any.
LAYERS=12
PIPELINE=4
usage() { echo "usage: $0 [--layers N]"; exit 1; }
while [[ $# -gt 0 ]]; do
    case $1 in
        --layers) LAYERS=$2; shift 2 ;;
        --pipeline) PIPELINE=$2; shift 2 ;;
        *) usage ;;
    esac
done
while getopts "l:p:" opt; do
    case $opt in
        l) LAYERS=$OPTARG ;;
        p) PIPELINE=$OPTARG ;;
    esac
done
torchrun --nproc_per_node $PIPELINE pretrain_gpt.py --num-layers $LAYERS --hidden-size 768 --num-attention-heads 12 \
    --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 4 --global-batch-size 32 \
    --vocab-size 50257 --bf16 --pipeline-model-parallel-size $PIPELINE "$@"
