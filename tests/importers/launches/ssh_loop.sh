#!/bin/bash
# The same command on every host of a list.
HOSTS=(alpha beta)
NNODES=${#HOSTS[@]}
rank=0
for host in "${HOSTS[@]}"; do
    ssh $host "cd /work && torchrun --nproc_per_node 4 --nnodes $NNODES --node_rank $rank --master_addr ${HOSTS[0]} \
        pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 \
        --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 24 --vocab-size 50257 --bf16 \
        --pipeline-model-parallel-size 8 --save /ckpt/$rank" &
    rank=$((rank + 1))
done
wait
