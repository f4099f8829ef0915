#!/bin/bash
#SBATCH -N 2
#SBATCH --ntasks-per-node=8
#SBATCH --gres=gpu:h100:8
# A task per device, no torchrun; the type of device is in the header.
export MASTER_PORT=12340
export WORLD_SIZE=$SLURM_NTASKS
srun python -u pretrain_gpt.py \
    --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8 \
    --ffn-hidden-size 14336 --swiglu --normalization RMSNorm --disable-bias-linear \
    --position-embedding-type rope --rotary-base 500000 --untie-embeddings-and-output-weights \
    --attention-dropout 0.0 --hidden-dropout 0.0 --no-masked-softmax-fusion \
    --seq-length 8192 --max-position-embeddings 8192 --micro-batch-size 1 --global-batch-size 64 \
    --tokenizer-type HuggingFaceTokenizer --tokenizer-model meta/llama --bf16 \
    --pipeline-model-parallel-size 16 --distributed-timeout-minutes $((60)) --exit-duration-in-mins 230
