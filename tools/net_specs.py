"""Random specs for `tools/net.py`: the same number always gives the same text, whatever HOPS has become.

Nothing of HOPS is imported here: names of devices, links, models and schedules stand below as text. Most specs can run,
many stall, do not fit or lose a link for good, and some are wrong on purpose.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

SCHEDULES = (
    "1f1b",
    "gpipe",
    "zb_h1",
    "zb_h2",
    "zero_bubble",
    "zb_or_1f1b",
    "interleaved_1f1b",
    "zb_v",
    "v_half",
    "dualpipe_v",
    "hops_hetero",
    "hops_hetero_adaptive",
    "program",
)
FOLDED = ("zb_v", "v_half", "dualpipe_v")  # two stages per rank, placed as a V
DEVICES = ("l4", "a10g", "a100", "a100-pcie-40", "h100", "l40s", "rtx-4090", "mi300x", "cpu")
OLDER = ("v100", "t4")  # without bf16, which models need unless stated otherwise
OF_PROFILE = ("l4", "a10g")  # seen by the profile megatron-aws
NETWORKS = ("ethernet-10", "ethernet-25", "ethernet-100", "infiniband-hdr")
INSIDE = ("pcie3", "pcie4", "nvlink2", "nvlink3", "host-memory", "infinity-fabric")
MODELS = ("gpt2", "gpt2-medium", "gpt2-large", "llama2-7b", "llama3-8b", "llama2-70b")
EVEN = {"bandwidth": "1 GB/s", "latency": "0 us"}  # a megabyte takes a millisecond
PROGRAM_FILE = "program.txt"

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSpec:
    """A spec, what overrides it, and the program beside it ("" if it names none)."""

    text: str
    overrides: tuple[str, ...]
    program: str


def random_spec(number: int) -> RandomSpec:
    """The spec of that number. Schedules take turns."""
    draw = Random(f"hops net {number}")  # noqa: S311 (no secrets are made of it)
    name = SCHEDULES[number % len(SCHEDULES)]
    ranks = draw.choice((1, 2, 2, 3, 4, 4, 5, 6))
    microbatches = _microbatches(draw, name, ranks)
    schedule, chunks, program = _schedule(draw, name, ranks, microbatches)
    stated = draw.random() < 0.55
    even = stated and _chance(draw, 0.5)  # whole milliseconds throughout, so that much happens at the same instant
    profiled = not stated and _chance(draw, 0.25)
    iterations = draw.randint(1, 4)
    document: Document = {
        "simulation": {
            "iterations": iterations,
            "warmup_iterations": draw.randrange(iterations),
            "seed": draw.randrange(1000),
        },
        "pipeline": {
            "schedule": schedule,
            "microbatches": microbatches,
            **_some(draw, 0.3, microbatch_size=draw.randint(2, 4)),
            "p2p": draw.choice(("overlapped", "overlapped", "blocking_fused", "blocking_fused", "blocking")),
            **_some(draw, 0.0 if even else 0.5, jitter=_spread(draw, "", mean=1.0)),
            **_some(draw, 0.3, split_overhead=draw.choice((1.05, 1.15, 1.3))),
            **_some(draw, 0.3, first_stage_splits=False),
            **(_stage_times(draw, ranks * chunks, even=even) if stated else _model(draw, ranks * chunks)),
        },
        "hardware": _hardware(
            draw, ranks, (*DEVICES, *OLDER) if stated else OF_PROFILE if profiled else DEVICES, even=even
        ),
        "optimizer": _optimizer(draw, tied=not stated),
    }
    if profiled:
        document["hardware"]["profile"] = "megatron-aws"
    if _chance(draw, 0.4):
        document["failure"] = _failure(draw, latest_ms=300 if even else 900)
    if _chance(draw, 0.08):
        _spoil(draw, document)
    return RandomSpec(text=json.dumps(document, indent=1), overrides=_overrides(draw), program=program)


def _chance(draw: Random, share: float) -> bool:
    return draw.random() < share


def _some(draw: Random, share: float, **values: object) -> Document:
    """These keys, or now and then none of them."""
    return values if _chance(draw, share) else {}


def _microbatches(draw: Random, name: str, ranks: int) -> int:
    if name == "dualpipe_v" and _chance(draw, 0.9):
        return draw.randint(2 * ranks, 3 * ranks)
    if name == "interleaved_1f1b" and _chance(draw, 0.9):
        return ranks * draw.randint(1, 4)
    return draw.randint(1, 14)


def _schedule(draw: Random, name: str, ranks: int, microbatches: int) -> tuple[Document, int, str]:
    """The schedule with parameters, how many stages a rank has, and the text of its program file."""
    if name in FOLDED:
        return {"name": name}, 2, ""
    if name == "interleaved_1f1b":
        chunks = draw.choice((2, 2, 3))
        return {"name": name, "chunks": chunks, **_some(draw, 0.2, microbatch_group_size=ranks)}, chunks, ""
    if name == "zero_bubble":
        return {"name": name, **_some(draw, 0.5, max_activations=draw.randint(1, 2 * ranks))}, 1, ""
    if name.startswith("hops_hetero"):
        chunks = draw.choice((1, 1, 2))
        placement = draw.choice(("loop", "v")) if chunks == 2 else "loop"
        searched = {"iterations": draw.choice((0, 20, 150)), "seed": draw.randrange(9)}
        noisy = _some(draw, 0.3, jitter=0.05, profile_error=draw.choice((0.0, 0.1)))
        return {"name": name, "chunks": chunks, "placement": placement, **searched, **noisy}, chunks, ""
    if name == "program":
        chunks = draw.choice((1, 2))
        return {"name": name, "file": PROGRAM_FILE}, chunks, _program(draw, ranks, chunks, microbatches)
    return {"name": name}, 1, ""


def _program(draw: Random, ranks: int, chunks: int, microbatches: int) -> str:
    """A complete program in an order that one rank after the other could follow, stages dealt to ranks at random."""
    rank_of_stage = [stage % ranks for stage in range(ranks * chunks)]
    draw.shuffle(rank_of_stage)
    stages = len(rank_of_stage)
    split = [_chance(draw, 0.5) for _ in rank_of_stage]
    forward, backward = [0] * stages, [0] * stages  # how many are done
    weights: list[tuple[int, int]] = []
    rows: list[list[str]] = [[] for _ in range(ranks)]
    while True:
        ready = [("F", stage) for stage in range(stages) if forward[stage] < _before(forward, stage, microbatches)]
        above = [*backward[1:], microbatches]
        ready += [("B", stage) for stage in range(stages) if backward[stage] < min(forward[stage], above[stage])] * 2
        ready += [("W", index) for index in range(len(weights))]
        if not ready:
            return "\n".join(
                [
                    f"microbatches {microbatches}, rank of stage {' '.join(map(str, rank_of_stage))}",
                    *map(" ".join, rows),
                ]
            )
        op, which = draw.choice(ready)
        if op == "W":
            stage, microbatch = weights.pop(which)
        else:
            stage, done = which, forward if op == "F" else backward
            microbatch = done[stage]
            done[stage] += 1
            if op == "B" and split[stage]:
                op = "I"
                weights.append((stage, microbatch))
        rows[rank_of_stage[stage]].append(f"{stage}{op}{microbatch}")


def _before(done: Sequence[int], stage: int, all_of_them: int) -> int:
    return done[stage - 1] if stage else all_of_them


def _spread(draw: Random, unit: str, *, mean: float) -> Document:
    """A distribution of that mean, in a unit of time or (with "") as a factor."""

    def of(value: float) -> str | float:
        return f"{value:.4f} {unit}" if unit else round(value, 4)

    kind = draw.choice(("normal", "lognormal", "exponential", "pareto", "weibull", "poisson", "empirical"))
    if kind in ("normal", "lognormal"):
        return {"distribution": kind, "mean": of(mean), "std": of(mean * draw.choice((0.02, 0.1, 0.4)))}
    if kind == "pareto":
        return {"distribution": kind, "mean": of(mean), "alpha": draw.choice((2.5, 6.0))}
    if kind == "weibull":
        return {"distribution": kind, "mean": of(mean), "shape": draw.choice((0.8, 3.0))}
    if kind == "poisson":
        return {"distribution": kind, "mean": of(mean), "unit": of(mean / 20)}
    if kind == "empirical":
        return {"distribution": kind, "samples": [of(mean * part) for part in (0.9, 0.95, 1.0, 1.0, 1.15)]}
    return {"distribution": kind, "mean": of(mean)}


def _stage_times(draw: Random, stages: int, *, even: bool) -> Document:
    """Stated times and sizes: one for all stages, or each its own, or random."""

    def each(value: Any) -> Any:
        return value() if _chance(draw, 0.4) else [value() for _ in range(stages)]

    def time(low: float, high: float) -> Any:
        def one() -> str | Document:
            if even:
                return f"{draw.choice((4, 4, 6, 8))} ms"
            mean = draw.uniform(low, high)
            return _spread(draw, "ms", mean=mean) if _chance(draw, 0.15) else f"{mean:.4f} ms"

        return each(one)

    def size(most_mib: int) -> Any:
        return each(lambda: f"{draw.randint(0, most_mib)} MiB")

    halves = {"input_backward": time(5, 25), "weight_backward": time(3, 20)}
    times: Document = {"forward": time(4, 25), **(halves if _chance(draw, 0.6) else {"backward": time(10, 45)})}
    times |= _some(draw, 0.85, message=f"{draw.randint(0, 3)} MB" if even else size(draw.choice((1, 24, 200))))
    if _chance(draw, 0.6):
        times |= {"activation": f"{draw.randint(100, 2500)} MiB", "kept_for_weight": f"{draw.randint(0, 100)} MiB"}
    times |= _some(draw, 0.5, weights=size(2000), gradients=size(2000), optimizer_state=size(4000))
    return {"stage_times": times}


def _model(draw: Random, stages: int) -> Document:
    """A model by name, cut down, or by shape, with how it is implemented."""
    name = draw.choice(MODELS)
    model: object = {"name": name, "layers": stages * draw.randint(1, 4)}
    partition: object = draw.choice(("even", "balanced"))
    layers = stages * draw.randint(1, 4) + draw.randrange(3)
    if _chance(draw, 0.2):
        model = name
    elif _chance(draw, 0.5):
        hidden = 64 * draw.randint(4, 30)
        model = {"layers": layers, "hidden": hidden, "heads": hidden // 64, "vocab": draw.choice((32000, 50304))}
        if _chance(draw, 0.5):
            model |= {"gated": True, "norm": "rms", "positions": "rotary", "biases": False, "tied": False}
        if _chance(draw, 0.6):
            cuts = sorted(draw.sample(range(1, layers), stages - 1))
            partition = [end - start for start, end in zip([0, *cuts], [*cuts, layers], strict=True)]
    return {
        "model": model,
        "partition": partition,
        **_some(draw, 0.6, sequence_length=draw.choice((256, 1000, 1024))),
        **_some(draw, 0.4, recompute=draw.choice(("selective", "full"))),
        **_some(draw, 0.3, attention="unfused"),
        **_some(draw, 0.3, precision=draw.choice(("fp16", "fp32"))),
        **_some(draw, 0.2, cross_entropy="fused"),
        **_some(draw, 0.2, dropout=False),
        **_some(draw, 0.2, fused_gradient_accumulation=False),
    }


def _connection(draw: Random, names: Sequence[str], *, varies: bool = False) -> object:
    """An interconnect by name, by figures, or by both; messages may take random time where that can be stated."""
    if _chance(draw, 0.55):
        return draw.choice(names)
    figures: Document = {"bandwidth": f"{draw.choice((2, 10, 25, 80))} Gbit/s", "latency": f"{draw.randint(0, 90)} us"}
    if _chance(draw, 0.4 if varies else 0.01):
        figures["latency"] = _spread(draw, "us", mean=draw.uniform(20, 400))
    if _chance(draw, 0.4 if varies else 0.01):
        extra = _spread(draw, "ms", mean=draw.uniform(2, 20))
        figures["stall"] = {"probability": draw.choice((0.02, 0.2)), "extra": extra}
    return figures if _chance(draw, 0.7) else {"name": draw.choice(names), **figures}


def _hardware(draw: Random, ranks: int, kinds: Sequence[str], *, even: bool) -> Document:
    """Hosts whose devices share NICs and buses; default names, so that placement and links can name them."""
    nodes: list[Document] = []
    names: list[str] = []
    while len(names) < ranks:
        size = draw.randint(1, min(4, ranks - len(names)))
        node: Document = {"devices": [_device(draw, kinds) for _ in range(size)]}
        if even:
            node |= {"interconnect": EVEN, "nic": EVEN}
        else:
            node |= _some(draw, 0.4, interconnect=_connection(draw, INSIDE))
            node |= _some(draw, 0.4, nic=_connection(draw, NETWORKS))
        if size > 1 and _chance(draw, 0.3):
            node |= {"nics": 2} if _chance(draw, 0.5) else {"sockets": 2, "socket_bus": "upi"}
        names += [f"node{len(nodes)}/{number}" for number in range(size)]
        nodes.append(node)
    if even:
        return {"nodes": nodes, "interconnect": EVEN}
    hardware: Document = {"nodes": nodes, **_some(draw, 0.7, interconnect=_connection(draw, NETWORKS, varies=True))}
    if _chance(draw, 0.3) and len(names) > 1:
        figures = {"bandwidth": f"{draw.choice((1, 8, 40))} Gbit/s", "latency": f"{draw.randint(1, 50)} us"}
        hardware["links"] = [{"between": draw.sample(names, 2), **figures, **_some(draw, 0.3, both_ways=False)}]
    if _chance(draw, 0.3):
        hardware["placement"] = draw.sample(names, len(names))
    return {**hardware, **_some(draw, 0.2, transport="sockets")}


def _device(draw: Random, kinds: Sequence[str]) -> object:
    kind = draw.choice(kinds)
    if _chance(draw, 0.75):
        return kind
    changed = draw.choice(
        (
            {"memory": "18 GiB"},
            {"memory_bandwidth": "500 GB/s"},
            {"peak": "100 TFLOP/s"},
            {"launch_overhead": "9 us", "layer_overhead": "120 us"},
            {"price_per_hour": 2.5},
        )
    )
    return {"type": kind, **changed}


def _optimizer(draw: Random, *, tied: bool) -> Document:
    update: object = _spread(draw, "ms", mean=8.0) if _chance(draw, 0.5) else "7 ms"
    optimizer = {
        **_some(draw, 0.1, enabled=False),
        **_some(draw, 0.3, kind=draw.choice(("sgd", "sgd_momentum"))),
        **_some(draw, 0.2, state_bytes=draw.choice((4, 12))),
        **_some(draw, 0.2, fused=False),
        **_some(draw, 0.2, gradient_bytes=2),
        **_some(draw, 0.5 * tied, tied_embeddings=draw.choice((True, True, False))),
        **_some(draw, 0.3, synchronized=False),
        **_some(draw, 0.3, update_time=update),
        **_some(draw, 0.4, host_gap=f"{draw.randint(1, 9)} ms"),
    }
    if _chance(draw, 0.45):
        optimizer |= {"data_parallel": draw.choice((2, 3, 8)), **_some(draw, 0.5, distributed=True)}
        optimizer |= _some(draw, 0.5, gradient_reduction=draw.choice(("tree", "none")))
        optimizer |= _some(draw, 0.3, reduction_interconnect=_connection(draw, NETWORKS))
    return optimizer


def _failure(draw: Random, *, latest_ms: int) -> Document:
    return {
        "enabled": True,
        "models": [_fault(draw, number, latest_ms) for number in range(draw.randint(1, 3))],
        "horizon": draw.choice(("30 s", "5 min")),
        **_some(draw, 0.2, link_timeout=f"{draw.choice((20, 400))} ms"),
    }


def _fault(draw: Random, number: int, latest_ms: int) -> Document:
    kind = draw.choice(("stop", "slow", "link-slow", "link-down"))
    on = draw.choice(("devices", "hosts", "node0/0") if kind in ("stop", "slow") else ("nics", "links", "hosts"))
    fault: Document = {"kind": kind, "on": on, **_some(draw, 0.9, name=f"fault {number}")}
    when = draw.random()
    if when < 0.45:
        fault["at"] = [f"{at} ms" for at in sorted(draw.sample(range(latest_ms), draw.randint(1, 3)))]
    elif when < 0.9 or kind in ("stop", "link-down"):
        fault["between"] = _spread(draw, "ms", mean=draw.uniform(300, 3000))
    else:
        fault["share"] = draw.choice((0.2, 1.0))
    if "share" not in fault and _chance(draw, 0.93):
        fault["repair"] = _spread(draw, "ms", mean=draw.uniform(20, 300)) if _chance(draw, 0.5) else "90 ms"
    if kind == "slow":
        fault["factor"] = _spread(draw, "", mean=2.0) if _chance(draw, 0.3) else draw.choice((1.1, 1.5, 3.0))
    if kind == "link-slow":
        fault["factor"] = draw.choice((0.1, 0.5, 0.9))
    return fault


def _overrides(draw: Random) -> tuple[str, ...]:
    right = (
        f"simulation.seed={draw.randrange(99)}",
        f"pipeline.microbatches={draw.randint(1, 12)}",
        "optimizer.host_gap=2 ms",
        "hardware.interconnect=ethernet-10",
        "pipeline.jitter={distribution: normal, mean: 1.0, std: 0.05}",
        "pipeline.p2p=blocking",
    )
    wrong = ("pipeline.microbatch=4", "simulation.seed", "optimizer.kind=adm", "hardware.nodes.0.devices.9=l4")
    if _chance(draw, 0.25):
        return tuple(draw.sample(right, draw.randint(1, 2)))
    return (draw.choice(wrong),) if _chance(draw, 0.04) else ()


def _spoil(draw: Random, document: Document) -> None:
    """Make one to three mistakes, as people do."""
    mistakes: tuple[tuple[str, str, object], ...] = (
        ("pipeline", "microbatches", "8"),
        ("pipeline", "microbatchsize", 2),
        ("pipeline", "schedule", "1f1c"),
        ("pipeline", "schedule", {"name": "zb_h1", "chunks": 2}),
        ("pipeline", "partition", [1, 2, 3, 4, 5, 6, 7]),
        ("pipeline", "model", "gpt5"),
        ("pipeline", "split_overhead", 0.5),
        ("pipeline", "jitter", {"distribution": "normal", "mean": 1.0}),
        ("hardware", "interconnect", "ethernet-26"),
        ("hardware", "interconnect", {"bandwidth": 25}),
        ("hardware", "placement", ["node0/0", "node0/0"]),
        ("hardware", "nodes", []),
        ("hardware", "links", [{"between": ["node0", "nowhere"], "bandwidth": "1 Gbit/s"}]),
        ("simulation", "warmup_iterations", 9),
        ("simulation", "seed", -1),
        ("optimizer", "host_gap", 5),
        ("optimizer", "kind", "lion"),
        ("failure", "models", [{"kind": "slow", "on": "devices"}]),
        ("failure", "enabled", "yes"),
    )
    for section, key, value in draw.sample(mistakes, draw.randint(1, 3)):
        document.setdefault(section, {})[key] = value
