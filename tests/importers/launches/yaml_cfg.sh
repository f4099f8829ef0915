#!/bin/bash
# All arguments in a file of configuration.
torchrun --nproc_per_node 4 pretrain_gpt.py --yaml-cfg cfg.yaml
