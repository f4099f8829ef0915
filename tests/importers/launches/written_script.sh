#!/bin/bash
# A job script that is written first, then run.
cat > job.sh <<'EOF'
#!/bin/bash
LAYERS=$1
torchrun --nproc_per_node 4 pretrain_gpt.py --num-layers $LAYERS --hidden-size 1024 --num-attention-heads 16 \
    --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 2 --global-batch-size 16 \
    --vocab-size 50257 --bf16 --pipeline-model-parallel-size 4
EOF
chmod +x job.sh
bash job.sh 28
