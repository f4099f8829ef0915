"""The cases of `tools/net.py`: what HOPS is asked, through its facade and its command line only.

A case gives named parts, each text or an array. What it raises is a part as well, by class and message.
"""

import contextlib
import io
import json
import re
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from net_specs import PROGRAM_FILE, random_spec

import hops

NUM_RANDOM = 200
COLUMNS = ("iteration", "rank", "stream", "stage", "op", "microbatch", "peer", "start_ns", "end_ns", "bytes")
SHAPES = ((1, 1), (1, 3), (2, 2), (2, 5), (3, 6), (4, 8), (5, 10), (4, 16), (8, 24))  # ranks, microbatches
SEARCHED = re.compile("hops_hetero")  # schedules that take their time, unless told how many iterations
VARIANTS: Mapping[str, tuple[str, ...]] = {  # parameters of schedules, beside their defaults
    "interleaved_1f1b": ("chunks=1", "chunks=3", "microbatch_group_size=4"),
    "zero_bubble": ("max_activations=2", "max_activations=5"),
    "hops_hetero": ("chunks=2", "chunks=2 placement=v"),
}

# Files that commands read, beside a copy of examples/.
OPEN = """\
pipeline: { model: gpt2-large, microbatches: [8, 12], recompute: [none, full] }
hardware:
  nodes:
    - devices: [l4, l4]
    - devices: [{ type: a10g, memory: 8 GiB }]
    - devices: [a100]
  interconnect: ethernet-25
optimizer: { data_parallel: 2 }
"""
SLOWED = """\
simulation: { iterations: 6, seed: 3 }
pipeline:
  schedule: zb_h1
  microbatches: 8
  stage_times: { forward: 9 ms, backward: 18 ms, message: 30 MiB }
  jitter: { distribution: normal, mean: 1.0, std: 0.02 }
hardware:
  nodes: [{ count: 2, devices: [a100, a100] }]
  interconnect: ethernet-100
failure:
  enabled: true
  models:
    - { kind: slow, on: [node0/1], at: [900 ms], repair: 800 ms, factor: 1.5 }
    - { kind: link-slow, on: nics, between: { distribution: exponential, mean: 2 s }, repair: 200 ms, factor: 0.3 }
  horizon: 30 s
"""
PROFILES = "\n".join(
    json.dumps(profile)
    for profile in (
        {
            "name": "straight",
            "microbatches": 9,
            "forward_ms": [5, 3, 7, 4],
            "input_backward_ms": [5, 4, 6, 4],
            "weight_backward_ms": [4, 2, 3, 5],
            "fused_backward_ms": [9, 6, 9, 8],
            "hop_ms": [1, 0.5, 3],
            "activation_bytes": [5, 6, 4, 4],
            "kept_for_weight_bytes": [3, 2, 3, 1],
            "memory_bytes": [40, None, 16, 13],
        },
        {
            "name": "folded",
            "microbatches": 6,
            "forward_ms": [3, 4, 4, 5],
            "input_backward_ms": [4, 4, 4, 6],
            "weight_backward_ms": [3, 4, 3, 2],
            "fused_backward_ms": [6.5, 8, 7, 8],
            "hop_ms": [0.25, 1, 0.25],
            "activation_bytes": [2, 2, 2, 2],
            "kept_for_weight_bytes": [1, 1, 1, 1],
            "memory_bytes": [20, 14],
            "rank_of_stage": [0, 1, 1, 0],
            "blocking": True,
        },
    )
)
FILES = {
    "open.yaml": OPEN,
    "slowed.yaml": SLOWED,
    "profiles.jsonl": PROFILES,
    "right.txt": "microbatches 2, rank of stage 0 1 1 0\n"
    "0F0 0F1 3F0 3B0 3F1+0B0 3B1 0B1\n1F0 2F0 1F1 2F1 2B0 1B0 2I1 1B1 2W1",
    "deadlock.txt": "microbatches 2, rank of stage 0 1\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1",
    "incomplete.txt": "microbatches 2, rank of stage 0 1\n0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1I1",
}
OUT = "out"
WRITE = (
    "run slowed.yaml --quiet --set output.summary=out/summary.json --set output.events=out/events.csv"
    " --set output.trace=out/trace.json --set output.faults=out/faults.json"
)
COMMANDS: Mapping[str, str] = {  # some read what WRITE has written
    "plan/example": "plan examples/plan.yaml --budget 0.1s --json",
    "plan/cost": "plan examples/plan.yaml --budget 0.1s --objective cost_per_token --set pipeline.schedule=1f1b --json",
    "plan/small": "plan open.yaml --budget 0.1s --top 3 --batch 12 --json",
    "plan/pareto": "plan open.yaml --budget 0.02s --objective pareto --json",
    "goodput/month": "goodput examples/month-16k.yaml --days 2 --seeds 1 --json",
    "goodput/policies": "goodput examples/recovery.yaml --policies checkpoint_restart,spare,reroute,replan,stall"
    " --days 5 --seeds 1 --samples 8 --json",
    "goodput/sweep": "goodput examples/recovery.yaml --sweep-checkpoint-interval --days 5 --seeds 1 --json",
    "goodput/text": "goodput examples/month-16k.yaml --days 1 --seeds 2",
    "run": "run examples/minimal.yaml --json",
    "run/text": "run slowed.yaml --set simulation.iterations=2",
    "run/unreadable": "run examples/minimal.yml",
    "run/planned-faults": "run slowed.yaml --set failure.models=[] --set failure.plan=out/faults.json --json",
    "compare": "compare examples/interleaved.yaml --schedules 1f1b,interleaved_1f1b,zb_v,dualpipe_v --json",
    "compare/text": "compare examples/interleaved.yaml --schedules 1f1b,interleaved_1f1b,dualpipe_v",
    "whatif": "whatif examples/straggler.yaml --slow slow=1.2 --schedules 1f1b,zb_h1 --json",
    "whatif/text": "whatif examples/straggler.yaml --slow slow=1.2",
    "stragglers": "stragglers examples/straggler.yaml --json",
    "stragglers/over-time": "stragglers slowed.yaml --json",
    "stragglers/text": "stragglers slowed.yaml",
    "faults": "faults draw examples/recovery.yaml --seed 5 --json",
    "faults/text": "faults draw slowed.yaml",
    "trace/show": "trace show out/events.csv --json",
    "trace/diff": "trace diff out/events.csv examples/explicit-times.yaml --json",
    "trace/show/text": "trace show out/events.csv",
    "trace/diff/text": "trace diff out/events.csv examples/explicit-times.yaml",
    "search": "schedule search profiles.jsonl --budget 30ms --json",
    "bench": "bench hetero16 --budget 5ms --json",
    "check": "schedule check right.txt --json",
    "check/deadlock": "schedule check deadlock.txt",
    "check/incomplete": "schedule check incomplete.txt",
    "import/megatron": "import megatron examples/megatron-launch.sh --devices a10g,a10g,l4,l4",
}

Part = str | np.ndarray[Any, Any]
Case = Callable[[], Mapping[str, Part]]


def cases() -> Iterator[tuple[str, Case]]:
    """Every case by name. They run in a folder that has a copy of `examples`, FILES, and an empty folder OUT."""
    written = _command(WRITE)
    written |= {f"file {path.name}": path.read_text(encoding="utf-8") for path in sorted(Path(OUT).iterdir())}
    yield "command/run/files", lambda: written
    for path in sorted(Path("examples").glob("*.yaml")):
        yield f"example/{path.stem}", partial(_loaded, partial(hops.load, path))
        yield f"show/{path.stem}", partial(_command, f"show {path}")
    for what in ("devices", "links", "models", "schedules", "recoveries"):
        yield f"list/{what}", partial(_command, f"list {what} --json")
    yield from _schedules()
    for name, call in COMMANDS.items():
        yield f"command/{name}", partial(_command, call)
    for number in range(NUM_RANDOM):
        yield f"random/{number:03}", partial(_random, number)


def _schedules() -> Iterator[tuple[str, Case]]:
    """The program text of every schedule there is, at several shapes, and its grid over time."""
    for name in (each["name"] for each in json.loads(str(_command("list schedules --json")["output"]))):
        for own in ("", *VARIANTS.get(name, ())):
            settings = [*own.split(), *(["iterations=60"] if SEARCHED.match(name) else [])]
            call = " ".join([f"schedule show {name}", *(f"--set {setting}" for setting in settings)])
            title = "/".join(["schedule", name, *([own.replace(" ", ",")] if own else [])])
            for ranks, microbatches in SHAPES:
                shape = f"-p {ranks} -m {microbatches}"
                yield f"{title}/{ranks}x{microbatches}", partial(_command, f"{call} {shape} --program")
            yield f"{title}/grid", partial(_command, f"{call} -p 3 -m 6")


def _command(call: str) -> dict[str, Part]:
    """What `hops CALL` prints, and its exit code."""
    output, errors = io.StringIO(), io.StringIO()
    code: object = 0
    with (
        patch.object(sys, "argv", ["hops", *call.split()]),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        try:
            runpy.run_module("hops", run_name="__main__")
        except SystemExit as end:
            code = end.code
        except Exception as error:  # noqa: BLE001 (a case that breaks must not hide the others)
            code = _said(error)
    return {"output": output.getvalue(), "errors": errors.getvalue(), "exit code": str(code)}


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _random(number: int) -> dict[str, Part]:
    spec = random_spec(number)
    Path(PROGRAM_FILE).write_text(spec.program, encoding="utf-8")
    what = "\n".join([spec.text, *spec.overrides, spec.program])
    return {"spec": what, **_loaded(partial(hops.loads, spec.text, overrides=spec.overrides))}


def _loaded(load: Callable[[], Any]) -> dict[str, Part]:
    """Trace and summary of a spec, or why there is none."""
    try:
        run = hops.simulate(load())
        summary = hops.summarize(run)
    except Exception as error:  # noqa: BLE001 (whatever it says, it is to say it again)
        return {"error": _said(error)}
    columns = {f"trace.{name}": getattr(run.trace, name) for name in COLUMNS}
    meta = run.trace.meta
    about = {
        "source": meta.source,
        "schedule": meta.schedule,
        "num_microbatches": meta.num_microbatches,
        "rank_of_stage": meta.rank_of_stage,
        "devices": meta.devices,
        "hosts": meta.hosts,
        "links": [(link.name, link.bandwidth) for link in meta.links],
        "routes": sorted((*pair, list(links)) for pair, links in meta.routes.items()),
    }
    return {
        **columns,
        "trace.meta": json.dumps(about, indent=1),
        "summary": json.dumps(summary.to_dict(), indent=1),
    }
