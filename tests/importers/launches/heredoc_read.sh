#!/bin/bash
# Flags in a here-document that `read` takes; `<<-` drops tabs.
read -r -d '' GPT <<EOF || true
--num-layers 12 --hidden-size 768
--num-attention-heads 12
--seq-length 1024 --max-position-embeddings 1024
EOF
read -d '' TRAIN << EOM
  --micro-batch-size 4 --global-batch-size 32
  --vocab-size 50257 --bf16
EOM
if true; then
	PIPE=$(cat <<-EOT
	--pipeline-model-parallel-size 3
	EOT
	)
fi
torchrun --nproc_per_node 3 pretrain_gpt.py $GPT $TRAIN $PIPE
