"""The spec as text: fully written out, as a commented starter, as JSON Schema."""

import json
import re
from collections.abc import Mapping
from functools import reduce
from io import StringIO
from operator import getitem
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from hops.config.spec import Spec


def dump(spec: Spec, remarks: Mapping[tuple[str | int, ...], str] | None = None) -> str:
    """The spec as YAML with every default visible. `loads` of it gives an equal spec.

    Remarks, by path of a key, become comments beside it, such as what an open value comes out as.
    """
    writer = YAML()
    writer.representer.add_representer(type(None), _null)
    writer.width = 120
    writer.indent(mapping=2, sequence=4, offset=2)
    stream = StringIO()
    document = _laid_out(spec.model_dump(mode="json"))
    for (*above, key), remark in (remarks or {}).items():
        reduce(getitem, above, document).yaml_add_eol_comment(remark, key, column=0)
    writer.dump(document, stream)
    return stream.getvalue()


def _null(representer: Any, _: None) -> Any:
    return representer.represent_scalar("tag:yaml.org,2002:null", "null")


def _laid_out(value: Any) -> Any:
    """Lists of plain values in one line, everything else in blocks."""
    if isinstance(value, dict):
        return CommentedMap((key, _laid_out(each)) for key, each in value.items())
    if isinstance(value, list):
        laid_out = CommentedSeq(_laid_out(each) for each in value)
        if not any(isinstance(each, dict | list) for each in value):
            laid_out.fa.set_flow_style()
        return laid_out
    return value


def json_schema() -> dict[str, Any]:
    """JSON Schema of the document, for editors (`# yaml-language-server: $schema=...`)."""
    schema = Spec.model_json_schema()
    text = json.dumps(schema)
    for name, definition in schema["$defs"].items():
        text = text.replace(json.dumps(name)[1:-1], re.sub(r"\W+", "_", definition["title"]).strip("_"))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **json.loads(text)}


def starter() -> str:
    """A commented spec to start from; it loads and runs as it is."""
    return _STARTER


_STARTER = """\
# A run for HOPS: `hops run spec.yaml`. Every key with unit and default: docs/reference/spec.md.
# Quantities carry their unit: 80 GiB, 25 Gbit/s, 1.5 ms, 312 TFLOP/s.

simulation:
  iterations: 5             # optimizer steps to simulate
  warmup_iterations: 1      # left out of the figures
  seed: 0                   # the same seed gives the same run, byte for byte

pipeline:
  model: llama2-7b          # `hops list models`; or a shape: {layers: 24, hidden: 1024, heads: 16, vocab: 50304}
  schedule: 1f1b            # `hops list schedules`; with parameters: {name: interleaved_1f1b, chunks: 2}
  microbatches: 16          # per iteration
  microbatch_size: 1        # samples in each
  partition: balanced       # layers per stage: even, balanced by cost on the devices, or a list such as [10, 10, 6, 6]
  precision: bf16           # bf16, fp16 or fp32
  recompute: none           # none, selective or full
  p2p: overlapped           # overlapped, blocking, or blocking_fused as Megatron-LM does it
  # jitter: {distribution: lognormal, mean: 1, std: 0.03}    # noise on the time of every action

  # Known times instead of a model: one value for all stages, or a list with one per stage.
  # stage_times:
  #   forward: [10 ms, 10 ms, {distribution: normal, mean: 14 ms, std: 1 ms}, 14 ms]
  #   backward: 20 ms
  #   message: 8 MiB

hardware:
  nodes:                    # ranks go to the devices in this order, unless `placement` says otherwise
    - name: fast
      devices: [{type: h100, count: 2}]     # `hops list devices`; figures can be replaced: {type: h100, memory: 64 GiB}
    - name: slow
      devices: [a100, a100]
  interconnect: ethernet-100    # between nodes; `hops list links`, or {bandwidth: 25 Gbit/s, latency: 30 us}
  # links:
  #   - between: [fast, slow]
  #     latency: {distribution: pareto, mean: 50 us, alpha: 2.5}
  #     stall: {probability: 0.01, extra: 200 ms}
  # placement: [fast/0, slow/0, slow/1, fast/1]

optimizer:
  kind: adam                # adam, sgd_momentum or sgd
  data_parallel: 1          # copies of this pipeline
  gradient_reduction: ring  # ring, tree or none

failure:
  enabled: false            # what breaks; models say when: docs/explanation/faults.md
  # models:
  #   - {kind: stop, on: hosts, between: {distribution: exponential, mean: 30 d}, repair: 2 h}
  #   - {kind: slow, on: [fast/0], at: [100 ms], repair: 1 s, factor: 1.3}

output:                     # files to write; relative to where you run
  summary: output/summary.json
  timeline: output/timeline.png
  # events: output/events.csv
  # trace: output/trace.json          # open in https://ui.perfetto.dev
  # dashboard: output/dashboard.png
"""
