#!/bin/sh
# Flags with underscores, as forks write them, and the older launcher.
python -m torch.distributed.launch --nproc_per_node=4 --nnodes=1 --node_rank=0 --use_env \
    pretrain_gpt.py \
    --num_layers=16 --hidden_size=1024 --num_attention_heads 16 \
    --seq_length 1024 --max_position_embeddings 1024 \
    --micro_batch_size 2 --global_batch_size 16 --vocab_size 50257 --bf16 \
    --pipeline_model_parallel_size 4 --lr_warmup_iters 10
