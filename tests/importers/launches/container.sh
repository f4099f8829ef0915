#!/bin/bash
#SBATCH --nodes=1 --gpus-per-node=a100:4
# In a container, through a shell of its own.
IMAGE=registry/training:24.07
read -r -d '' SCRIPT <<'EOF'
cd /workspace
export A=4
torchrun --nproc_per_node $A pretrain_gpt.py --num-layers 16 --hidden-size 1024 --num-attention-heads 16 \
    --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 16 \
    --vocab-size 50257 --bf16 --pipeline-model-parallel-size $A
EOF
docker run --gpus all --rm -v "$PWD:/workspace" $IMAGE bash -lc "$SCRIPT"
