#!/bin/bash
#SBATCH --nodes=2
# A process per device by mpirun.
NP=8
mpirun -np $NP --bind-to none -x PATH -x LD_LIBRARY_PATH \
    python pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 \
    --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 16 --vocab-size 50257 --bf16 \
    --pipeline-model-parallel-size 8
