"""The spec as text: fully written out, as a commented starter, as JSON Schema."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import reduce
from io import StringIO
from operator import getitem
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from hops.spec.spec import Spec


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


def starter(*, nodes: str = "") -> str:
    """A commented spec to start from; it loads and runs as it is. `nodes`: lines of YAML instead of its two hosts."""
    if not nodes:
        return _STARTER
    return _STARTER.replace(_NODES, nodes).replace(_LINKS, "").replace("[fast/0]", "[here/0]")


_NODES = """\
    - name: fast
      devices: [{type: h100, count: 2}]     # `hops list devices`; figures can be replaced: {type: h100, memory: 64 GiB}
    - name: slow
      devices: [a100, a100]
"""
_LINKS = """\
  # links:
  #   - between: [fast, slow]
  #     latency: {distribution: pareto, mean: 50 us, alpha: 2.5}
  #     stall: {probability: 0.01, extra: 200 ms}
  # placement: [fast/0, slow/0, slow/1, fast/1]
"""
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
  p2p: overlapped           # or posted (PyTorch), blocking_fused (Megatron-LM without overlap), blocking
  # host_per_action: 20 us                                   # the host's time between two actions of a rank
  # microbatch_work: {distribution: lognormal, mean: 1, std: 0.3}   # or a list, one factor per microbatch
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
  # trace: output/trace.json.gz       # open in https://ui.perfetto.dev
  # dashboard: output/dashboard.png
"""


_HEAD = """\
# The spec, key by key

Generated from the code; a test keeps it current. `hops schema` prints the same as JSON Schema for editors,
`hops init` a commented starter, `hops show SPEC` a spec with every default written out.

A spec is one YAML 1.2 document. Quantities are text with a unit; a bare number where a unit is due is an error.

| Quantity | Written | Units |
|---|---|---|
| memory | `80 GiB`, `80 GB` | B; kB MB GB TB PB (powers of 1000); KiB MiB GiB TiB PiB (powers of 1024) |
| bandwidth | `25 Gbit/s`, `3.35 TB/s` | bit/s and B/s with k M G T P E; B/s with Ki Mi Gi Ti Pi |
| time | `15 us`, `1.5 ms` | ns us ms s min h d |
| compute rate | `312 TFLOP/s` | FLOP/s with k M G T P E |

- Where a key takes a *random time* or *random factor*, it takes a bare value, or a distribution (last chapter).
- Where it takes a value *or a list of* such values, one value holds for all stages, and a list has one per stage.
- Where it takes *text or keys*, the text stands for the first key: `schedule: 1f1b` is `schedule: {name: 1f1b}`.
- For `hops plan`, `partition`, `placement`, `schedule` and `recompute` may be `auto`; `schedule`, its parameters,
  `recompute`, `microbatches` and `microbatch_size` may be lists of choices (docs/how-to/plan-a-cluster.md).
- Files that a spec names are looked for in its own folder; outputs are written relative to where you run.
"""
_WORDS = {"integer": "whole number", "number": "number", "boolean": "true or false", "string": "text", "null": "null"}
_UNIT_TITLES = ("amount of memory", "bandwidth", "time", "compute rate")


def reference() -> str:
    """The reference page in Markdown."""
    page = _Page(json_schema())
    return "\n".join([_HEAD, *page.sections(), "## Distributions\n", *page.distributions()])


class _Page:
    """Chapters of the page, from the schema's definitions."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.top = schema
        self.definitions: dict[str, dict[str, Any]] = schema["$defs"]

    def sections(self) -> Iterator[str]:
        """One chapter per kind of mapping, under all paths where it stands."""
        paths: dict[str, list[str]] = {}
        for name, schema in self.top["properties"].items():
            self.collect(name, schema["$ref"], paths)
        for reference, places in paths.items():
            definition = self.definition({"$ref": reference})
            yield f"## {', '.join(f'`{place}`' for place in places)}\n"
            yield f"{definition['description']}{' Required.' if places[0] in self.top['required'] else ''}\n"
            yield self.table(definition)

    def collect(self, path: str, reference: str, paths: dict[str, list[str]]) -> None:
        """Note the paths at which every kind of mapping stands, in order of their first appearance."""
        paths.setdefault(reference, []).append(path)
        for name, schema in self.definition({"$ref": reference})["properties"].items():
            for inner, index in self.inner(schema):
                self.collect(f"{path}.{name}{index}", inner, paths)

    def distributions(self) -> Iterator[str]:
        yield "Each is written for times; factors take plain numbers in place of times.\n"
        for name, definition in self.definitions.items():
            if name.endswith("Form_times"):
                yield f"### `distribution: {definition['properties']['distribution']['const']}`\n"
                yield f"{definition['description']}\n"
                yield self.table(definition)

    def table(self, definition: dict[str, Any]) -> str:
        rows = ["| Key | Takes | Default | Meaning |", "|---|---|---|---|"]
        for name, schema in definition["properties"].items():
            if "const" in schema and name == "distribution":
                continue
            default = "required" if name in definition.get("required", ()) else _written(schema.get("default"))
            meaning = schema.get("description", "")
            rows.append(f"| `{name}` | {_cell(self.takes(schema))} | {_cell(default)} | {_cell(meaning)} |")
        return "\n".join(rows) + "\n"

    def inner(self, schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """References to the mappings that a key takes, with `[]` if they stand in a list."""
        for each in _alternatives(schema):
            if "$ref" in each and "Form_" not in each["$ref"]:
                yield each["$ref"], ""
            elif each.get("type") == "array" and "prefixItems" not in each:
                yield from ((found, "[]") for found, _ in self.inner(each["items"]))

    def takes(self, schema: dict[str, Any]) -> str:
        """What a key takes, in words."""
        choices = _alternatives(schema)
        if any("Form_" in each.get("$ref", "") for each in choices):
            kinds = [each for each in choices if "$ref" not in each]
            factor = any(each.get("type") == "number" for each in kinds)
            lists = [f"list of random {'factors' if factor else 'times'}"] * any(
                each.get("type") == "array" for each in kinds
            )
            return " or ".join([f"random {'factor' if factor else 'time'}", *lists])
        words = list(dict.fromkeys(self.one(each) for each in choices))
        if len(words) == 2 and words[1] == f"list, each {words[0]}":
            words[1] = "list of such"
        return " or ".join(words)

    def one(self, schema: dict[str, Any]) -> str:
        """One alternative in words."""
        if "$ref" in schema:
            return "keys, below"
        if "enum" in schema or "const" in schema:
            return ", ".join(_written(each) for each in schema.get("enum", [schema.get("const")]))
        if schema.get("type") == "array":
            return f"list, each {self.takes(schema['items'])}" if "items" in schema else "pair of names"
        if schema.get("title") in _UNIT_TITLES:
            return f"{schema['title']}, such as `{schema['examples'][0]}`"
        words = {
            "integer": "whole number",
            "number": "number",
            "boolean": "true or false",
            "string": "text",
            "null": "null",
        }
        return words[schema["type"]] + _bounds(schema)

    def definition(self, schema: dict[str, Any]) -> dict[str, Any]:
        return self.definitions[schema["$ref"].removeprefix("#/$defs/")]


def _alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The forms of a value, nested choices taken apart, null left out."""
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return [form for each in schema[key] for form in _alternatives(each) if form.get("type") != "null"]
    return [schema]


def _bounds(schema: dict[str, Any]) -> str:
    low = [f"at least {schema['minimum']}"] if "minimum" in schema else []
    low += [f"above {schema['exclusiveMinimum']}"] if "exclusiveMinimum" in schema else []
    high = [f"at most {schema['maximum']}"] if schema.get("maximum", 1e30) <= 1_000_000 else []
    return f" ({', '.join([*low, *high])})" if low or high else ""


def _written(value: object) -> str:
    if isinstance(value, dict):
        return _written(value["name"]) if "name" in value else "its keys' defaults"
    if isinstance(value, list):
        return "`[]`"
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else "null" if value is None else str(value)
    return f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
