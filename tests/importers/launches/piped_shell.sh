#!/bin/bash
#SBATCH --nodes 2
#SBATCH --gpus-per-node=l4:2
# A here-document that a shell reads as its script.
LAYERS=16
srun --ntasks-per-node=1 bash -s <<EOF
export PP=4
torchrun --nnodes $SLURM_NNODES --nproc_per_node 2 pretrain_gpt.py --num-layers $LAYERS --hidden-size 1024 \
    --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 \
    --global-batch-size 16 --vocab-size 50257 --bf16 --pipeline-model-parallel-size \$PP
EOF
