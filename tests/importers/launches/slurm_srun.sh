#!/bin/bash
#SBATCH --job-name=gpt
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=24:00:00
#SBATCH --output=%x_%j.out
# One task per host, torchrun in each: the command stands in a text for bash.
nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
head_node=${nodes[0]}
head_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)
GPUS_PER_NODE=8
WORLD=$(($GPUS_PER_NODE*$SLURM_NNODES))

LAUNCHER="torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $SLURM_NNODES --node_rank \$SLURM_PROCID \
    --rdzv_id $RANDOM --rdzv_backend c10d --rdzv_endpoint $head_ip:29500"
CMD="$LAUNCHER pretrain_gpt.py \
    --num-layers 64 --hidden-size 8192 --num-attention-heads 64 --seq-length 4096 --max-position-embeddings 4096 \
    --micro-batch-size 1 --global-batch-size $((WORLD * 4)) --vocab-size 50257 --bf16 \
    --pipeline-model-parallel-size 32 --use-distributed-optimizer --recompute-activations"

srun --label bash -c "$CMD"
