# Written on Windows: a byte order mark, and a carriage return at every line end.
LAYERS=8
torchrun --nproc_per_node 2 pretrain_gpt.py --num-layers $LAYERS --hidden-size 512 --num-attention-heads 8 \
    --seq-length 512 --max-position-embeddings 512 --micro-batch-size 1 --global-batch-size 4 \
    --vocab-size 1000 --bf16 --pipeline-model-parallel-size 2
