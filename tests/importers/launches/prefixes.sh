#!/bin/bash
# What may stand around a command.
export NCCL_DEBUG=INFO OMP_NUM_THREADS=4
cd "$(dirname "$0")" || exit
module load cuda/12.4 2>/dev/null
source venv/bin/activate
LOG=logs/$(date +%F).log
CUDA_DEVICE_MAX_CONNECTIONS=1 NVTE_FLASH_ATTN=1 nohup numactl --cpunodebind=0 torchrun --standalone --nproc-per-node=2 \
    ./pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 256 \
    --max-position-embeddings 256 --micro-batch-size 1 --global-batch-size 4 --vocab-size 1000 \
    --pipeline-model-parallel-size 2 > "$LOG" 2>&1 < /dev/null &
PID=$!
trap "kill $PID" INT
wait $PID
