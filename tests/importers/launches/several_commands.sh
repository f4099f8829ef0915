#!/bin/bash
# Preparing data, training, evaluating and converting: four commands, one of which trains.
python tools/preprocess_data.py --input corpus.json --output-prefix corpus --tokenizer-type GPT2BPETokenizer \
    --vocab-file vocab.json --merge-file merges.txt --workers 8 --append-eod

torchrun --nproc_per_node 2 pretrain_gpt.py --num-layers 6 --hidden-size 512 --num-attention-heads 8 \
    --seq-length 512 --max-position-embeddings 512 --micro-batch-size 4 --global-batch-size 32 \
    --train-iters 100 --data-path corpus_text_document --vocab-size 50257 --bf16 --pipeline-model-parallel-size 2

torchrun --nproc_per_node 1 tasks/main.py --task WIKITEXT103 --num-layers 6 --hidden-size 512 \
    --num-attention-heads 8 --seq-length 512 --max-position-embeddings 512 --micro-batch-size 8
python tools/checkpoint/convert.py --model-type GPT --target-pipeline-parallel-size 1
