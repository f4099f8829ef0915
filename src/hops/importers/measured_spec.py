"""A spec from measured runs: a program as it ran, what every op took on every stage, and what lay between actions.

Ops become distributions of what was measured. A message's time is how long after its sending a rank went on that had
waited for it; the host's time between two actions is that of a rank whose next input was there already. Both are
medians, since what disturbs them only ever adds. Several runs of one pipeline under different programs know more ops
than one: B from 1F1B, I and W from a zero-bubble schedule. Nothing here says why: no model, no rates, no bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedSeq

from hops.arrays import IntArray
from hops.errors import CatalogError, TraceError
from hops.hardware.catalog import Catalog
from hops.metrics.iterations import Iterations
from hops.program.action import ACTION_OPS, Op
from hops.program.lowering import check
from hops.program.program import Program
from hops.trace.order import producer_rows, program_from_trace
from hops.trace.trace import Stream, Trace

STEADY = 0.005  # spread over the mean below which a time is stated as one value
MOST_SAMPLES = 40
_STAND_IN = "a100"  # a device of the catalog for those that it does not know; times are stated, so it is but a name
_KEYS = {Op.F: "forward", Op.B: "backward", Op.I: "input_backward", Op.W: "weight_backward"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSpec:
    """A spec as text, the program that it names, and what a reader must know.

    Attributes:
        text: YAML.
        program: to be written beside it, under the name that `measured_spec` was given.
        notes: what was left out or filled in.
    """

    text: str
    program: Program
    notes: tuple[str, ...]


def measured_spec(runs: Sequence[Iterations], *, name: str, program_file: str) -> MeasuredSpec:
    """The spec of measured runs of the same stages on the same ranks.

    Args:
        runs: without their warm-up; the program, messages and the end of the iteration are those of the first.
        name: of the run, for the spec's first line.
        program_file: the name of the program's file in the spec.

    Raises TraceError if what ran is no program that can run again, or runs are of different pipelines.
    """
    run, trace = runs[0], runs[0].trace
    _check_alike(runs)
    program = program_from_trace(trace)
    check(program)
    others = sum(program_from_trace(trace, iteration=int(each)) != program for each in run.iterations)
    steps = _Steps.of(run)
    notes = [f"{others} of {len(run.iterations)} iterations ran in other orders; the spec has the first one's"] * (
        others > 0
    )
    devices, strange = _devices(trace)
    if strange:
        notes.append(f"the catalog has no {', '.join(strange)}: {_STAND_IN} stands in, which changes no stated time")
    document = {
        "simulation": {"iterations": max(3, min(10, len(run.iterations))), "warmup_iterations": 1},
        "pipeline": {
            "stage_times": _stage_times([each.trace for each in runs]),
            "schedule": {"name": "program", "file": program_file},
            "microbatches": trace.meta.num_microbatches,
            "host_per_action": _time(steps.host_ns),
        },
        "hardware": _hardware(trace, devices, steps.hop_ns),
        "optimizer": _optimizer(run),
    }
    writer = YAML()
    writer.width = 120
    writer.indent(mapping=2, sequence=4, offset=2)
    out = StringIO()
    out.write(f"# {name}: imported from {sum(len(each.iterations) for each in runs)} measured iterations\n")
    writer.dump(document, out)
    return MeasuredSpec(text=out.getvalue(), program=program, notes=tuple(notes))


def _check_alike(runs: Sequence[Iterations]) -> None:
    first = runs[0].trace.meta
    for run in runs[1:]:
        if run.trace.meta.rank_of_stage != first.rank_of_stage:
            raise TraceError(
                f"got runs with stages on ranks {_listed(first.rank_of_stage)} and "
                f"{_listed(run.trace.meta.rank_of_stage)}, expected runs of the same pipeline: import them apart"
            )


def _listed(ranks: Sequence[int]) -> str:
    return " ".join(map(str, ranks))


def _stage_times(traces: Sequence[Trace]) -> dict[str, Any]:
    """Distributions per op, a list with one per stage. What a stage never ran follows from its other backwards."""
    stages = range(traces[0].meta.num_stages)
    actions = [trace.where((trace.stream == Stream.COMPUTE) & (trace.op <= Op.W)) for trace in traces]
    taken = {
        (stage, op): np.concatenate([each.duration_ns[(each.stage == stage) & (each.op == op)] for each in actions])
        for stage in stages
        for op in ACTION_OPS
    }
    ran = {op for (_, op), samples in taken.items() if len(samples)}
    times: dict[str, Any] = {"forward": [_distribution(taken[stage, Op.F]) for stage in stages]}
    for op in (Op.B, Op.I, Op.W):
        if op in ran:
            times[_KEYS[op]] = [_distribution(_or_derived(taken, stage, op)) for stage in stages]
    return times


def _or_derived(taken: dict[tuple[int, Op], IntArray], stage: int, op: Op) -> IntArray:
    """What was measured; else B from I + W, or half of B for I and W."""
    own = taken[stage, op]
    if len(own):
        return own
    if op is Op.B:
        return np.array([round(taken[stage, Op.I].mean() + taken[stage, Op.W].mean())])
    return np.array([round(taken[stage, Op.B].mean() / 2)])


def _distribution(measured: IntArray) -> Any:
    """One value for what hardly varies, else samples at even steps of the sorted measurements, with their mean."""
    mean = float(measured.mean())
    if measured.std() <= STEADY * max(mean, 1.0):
        return _time(mean)
    count = min(MOST_SAMPLES, len(measured))
    chosen = np.quantile(measured, (np.arange(count) + 0.5) / count)
    chosen *= mean / chosen.mean()
    samples = CommentedSeq([_time(each) for each in chosen.tolist()])
    samples.fa.set_flow_style()
    return {"distribution": "empirical", "samples": samples}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """What lay between actions, in ns: `hop_ns` per boundary between stages of different ranks, None elsewhere."""

    hop_ns: tuple[float | None, ...]
    host_ns: float

    @classmethod
    def of(cls, run: Iterations) -> "_Steps":
        trace = run.trace.where((run.trace.stream == Stream.COMPUTE) & (run.trace.op <= Op.W))
        order = np.lexsort((trace.start_ns, trace.rank, trace.iteration))
        before = np.full(len(trace), -1)
        same = (np.diff(trace.rank[order]) == 0) & (np.diff(trace.iteration[order]) == 0)
        before[order[1:][same]] = order[:-1][same]
        producer = producer_rows(trace)
        crosses = producer >= 0
        crosses[crosses] = trace.rank[producer[crosses]] != trace.rank[crosses]
        free = np.where(before >= 0, trace.end_ns[before], np.iinfo(np.int64).min)
        made = np.where(crosses, trace.end_ns[producer], np.iinfo(np.int64).min)
        waited = crosses & (free <= made)
        boundary = np.where(trace.op == Op.F, trace.stage - 1, trace.stage)
        owner = trace.meta.rank_of_stage
        hops = []
        for number in range(len(owner) - 1):
            here = waited & (boundary == number)
            gaps = (trace.start_ns - made)[here]
            apart = owner[number] != owner[number + 1]
            hops.append((float(np.median(gaps)) if len(gaps) else 0.0) if apart else None)
        lag = np.array([hop or 0.0 for hop in [*hops, 0.0]])
        there = (before >= 0) & (~crosses | (made + lag[boundary] <= free))
        gaps = (trace.start_ns - free)[there]
        return cls(hop_ns=tuple(hops), host_ns=max(0.0, float(np.median(gaps))) if len(gaps) else 0.0)


def _devices(trace: Trace) -> tuple[list[str], list[str]]:
    """A catalog name per rank, and the names that are not in the catalog."""
    catalog, names, strange = Catalog.load(()), [], []
    for name in trace.meta.devices:
        for candidate in (name, name.split()[0].lower(), name.lower().removeprefix("nvidia ").replace(" ", "-")):
            try:
                names.append(catalog.device(candidate).name)
                break
            except CatalogError:
                continue
        else:
            names.append(_STAND_IN)
            strange.append(name)
    return names, sorted(set(strange))


def _hardware(trace: Trace, devices: Sequence[str], hop_ns: Sequence[float | None]) -> dict[str, Any]:
    """A node per rank, so that every two neighbours can have their own latency."""
    owner = trace.meta.rank_of_stage
    found: dict[tuple[int, int], list[float]] = {}
    for stage, hop in enumerate(hop_ns):
        if hop is not None:
            low, high = sorted((owner[stage], owner[stage + 1]))
            found.setdefault((low, high), []).append(hop)
    links = [
        {"between": [f"rank{low}", f"rank{high}"], "latency": _time(max(0.0, float(np.mean(hops))))}
        for (low, high), hops in found.items()
    ]
    nodes = [
        {"name": f"rank{rank}", "devices": [device], "nic": {"bandwidth": "1 Tbit/s", "latency": "0 ns"}}
        for rank, device in enumerate(devices)
    ]
    return {
        "nodes": nodes,
        "interconnect": {"bandwidth": "1 Tbit/s", "latency": "0 ns"},
        **({"links": links} if links else {}),
    }


def _optimizer(run: Iterations) -> dict[str, Any]:
    """The step, and what else passed between the last action and the next iteration's first."""
    steps = run.trace.duration_ns[run.trace.op == Op.OPTIMIZER]
    step = float(steps.mean()) if len(steps) else 0.0
    after = (run.end_ns - run.pipeline_end_ns)[run.followed]
    gap = max(0.0, float(np.median(after)) - step) if len(after) else 0.0
    if not step and not gap:
        return {"enabled": False}
    return {"update_time": _time(step), "host_gap": _time(gap), "tied_embeddings": False}


def _time(nanoseconds: float) -> str:
    """To the nanosecond, in the unit that reads best."""
    if not np.isfinite(nanoseconds) or nanoseconds < 0:
        raise TraceError(f"got a time of {nanoseconds} ns, expected one >= 0")
    if nanoseconds >= 1e6:
        return f"{nanoseconds / 1e6:.6g} ms"
    return f"{nanoseconds / 1e3:.6g} us"
