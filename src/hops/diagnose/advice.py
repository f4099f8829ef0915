"""Advice: single changes of a spec, each simulated, ranked by what it gains."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from hops.build.costs import partition
from hops.build.run import SimulatedRun, simulate, summarize
from hops.build.setup import Setup
from hops.diagnose.changes import Change, balanced, of_size, shared_states, to_schedule
from hops.errors import HopsError
from hops.metrics.summary import Summary
from hops.schedules.base import SCHEDULERS
from hops.spec.spec import Spec

LEAST_GAIN = 0.001  # of the throughput; what gains less is not advised
LEFT_OUT = ("program", "zero_bubble_paper", "zb_or_1f1b", "hops_hetero_adaptive")
"""Not to be chosen: a file, the variants of papers, and what plans as hops_hetero does."""


class Advice(NamedTuple):
    """A change that ran.

    Attributes:
        gain: more samples (or microbatches, if their number is all that is known) per second, as a part.
        iteration_ms: with the change.
        peak_bytes: most that a rank's device holds; None: unknown.
        more_bytes: how much more that is than without the change.
    """

    change: Change
    gain: float
    iteration_ms: float
    peak_bytes: int | None
    more_bytes: int | None


class Advised(NamedTuple):
    """All that was tried: what helps, the best first; what does not; and what cannot run, with the reason."""

    helps: tuple[Advice, ...]
    no_help: tuple[Advice, ...]
    refused: tuple[tuple[Change, str], ...]


def advise(run: SimulatedRun, *, on_trial: Callable[[int, int], None] | None = None) -> Advised:
    """Simulate every single change of a run's spec that is known to help sometimes.

    Args:
        run: as it is.
        on_trial: called with how many changes were tried, of how many.
    """
    spec, before = run.setup.spec, summarize(run)
    found: list[Advice] = []
    refused: list[tuple[Change, str]] = []
    changes = list(changes_of(run.setup, before))
    for number, change in enumerate(changes, start=1):
        try:
            found.append(_tried(spec, change, before))
        except HopsError as error:
            refused.append((change, str(error).splitlines()[0]))
        if on_trial is not None:
            on_trial(number, len(changes))
    found.sort(key=lambda each: -each.gain)
    return Advised(
        helps=tuple(each for each in found if each.gain >= LEAST_GAIN),
        no_help=tuple(each for each in found if each.gain < LEAST_GAIN),
        refused=tuple(refused),
    )


def _tried(spec: Spec, change: Change, before: Summary) -> Advice:
    after = summarize(simulate(spec.with_(dict(change.settings))))
    peaks = [peak_bytes(summary) for summary in (before, after)]
    return Advice(
        change=change,
        gain=rate(after) / rate(before) - 1,
        iteration_ms=after.iteration_time.mean_ms,
        peak_bytes=peaks[1],
        more_bytes=None if peaks[0] is None or peaks[1] is None else peaks[1] - peaks[0],
    )


def rate(summary: Summary) -> float:
    """Samples per second, or microbatches where their size is not known."""
    samples = summary.throughput.samples_per_s
    return summary.throughput.microbatches_per_s if samples is None else samples


def peak_bytes(summary: Summary) -> int | None:
    """The most that the device of any rank holds."""
    known = [rank.memory.peak_bytes for rank in summary.ranks if rank.memory is not None]
    return max(known, default=None)


def changes_of(setup: Setup, summary: Summary) -> Iterator[Change]:
    """Every single change that the spec allows, in no order of merit."""
    spec = setup.spec
    yield from _schedules(spec)
    yield from _batches(spec)
    if spec.pipeline.model is not None:
        yield from _partitions(setup, summary)
        yield from _kernels(spec)
    yield from _network(spec)
    yield from shared_states(spec)
    yield from _devices(setup, summary)
    yield from _mesh(spec)


def _schedules(spec: Spec) -> Iterator[Change]:
    own = spec.pipeline.schedule.name
    for name in SCHEDULERS.names():
        if name not in (own, *LEFT_OUT):
            yield to_schedule(name)


def _batches(spec: Spec) -> Iterator[Change]:
    """Microbatches of half and of twice the size."""
    size = spec.pipeline.microbatch_size
    if size % 2 == 0:
        yield from of_size(spec, size // 2)
    yield from of_size(spec, 2 * size)


def _partitions(setup: Setup, summary: Summary) -> Iterator[Change]:
    """Layers balanced; and one layer moved from the stage whose rank is busiest to each of the others."""
    spec, shape = setup.spec, setup.shape
    yield from balanced(spec)
    layers = list(partition(setup.known, shape).layers)
    busiest = max(summary.ranks, key=lambda rank: rank.busy_ms).rank
    source = max(shape.stages_of(busiest), key=lambda stage: layers[stage])
    if layers[source] < 2:
        return
    for target in range(len(layers)):
        if shape.rank_of_stage[target] != busiest:
            moved = list(layers)
            moved[source] -= 1
            moved[target] += 1
            yield Change(f"one layer from stage {source} to stage {target}", {"pipeline.partition": moved})


def _kernels(spec: Spec) -> Iterator[Change]:
    """Less recomputation, and fused kernels where they are not."""
    recompute = spec.pipeline.recompute
    for lighter in ("none", "selective"):
        if recompute == "full" or (recompute == "selective" and lighter == "none"):
            yield Change(f"recompute {lighter}", {"pipeline.recompute": lighter})
    if spec.pipeline.attention == "unfused":
        yield Change("flash attention", {"pipeline.attention": "flash"})
    if spec.pipeline.cross_entropy == "unfused":
        yield Change("fused cross-entropy", {"pipeline.cross_entropy": "fused"})


def _network(spec: Spec) -> Iterator[Change]:
    if spec.pipeline.p2p in ("blocking", "blocking_fused"):
        yield Change("messages beside computing", {"pipeline.p2p": "overlapped"})
    between = spec.hardware.interconnect
    if between is not None and between.bandwidth is not None:
        faster = f"{2 * between.bandwidth * 8 / 1e9:g} Gbit/s"
        yield Change(f"twice the bandwidth between hosts, {faster}", {"hardware.interconnect.bandwidth": faster})


def _devices(setup: Setup, summary: Summary) -> Iterator[Change]:
    """The busiest rank's entry of devices replaced by the fastest type that the spec has."""
    hardware, precision = setup.spec.hardware, setup.spec.pipeline.precision
    if any(entry.peak is not None for node in hardware.nodes for entry in node.devices):
        return  # another type would keep the stated figures of this one
    fastest = max(setup.known.devices, key=lambda device: device.kind.rate(precision)).kind.name
    busiest = max(summary.ranks, key=lambda rank: rank.busy_ms).rank
    host = next(each for each in hardware.hosts() if hardware.ranks()[busiest] in each.device_ids)
    entry = host.devices[host.device_ids.index(hardware.ranks()[busiest])]
    if setup.known.devices[busiest].kind.name == fastest:
        return
    number, place = hardware.nodes.index(host.entry), host.entry.devices.index(entry)
    copies = entry.count * host.entry.count
    some = f", all {copies} of them" if copies > 1 else ""
    yield Change(
        f"{fastest} instead of {entry.type} on {host.name}{some}",
        {f"hardware.nodes[{number}].devices[{place}].type": fastest},
    )


def _mesh(spec: Spec) -> Iterator[Change]:
    """Tensor parallelism halved or doubled, data parallelism the other way, at the same samples per iteration."""
    mesh, number = spec.mesh(), spec.pipeline.microbatches
    if mesh.tensor % 2 == 0 and number % 2 == 0:
        yield _resized(mesh.tensor // 2, mesh.data * 2, number // 2)
    if mesh.data % 2 == 0 and spec.pipeline.model is not None:
        yield _resized(mesh.tensor * 2, mesh.data // 2, number * 2)


def _resized(tensor: int, data: int, microbatches: int) -> Change:
    return Change(
        f"tensor {tensor} and data {data}",
        {"parallel.tensor": tensor, "parallel.data": data, "pipeline.microbatches": microbatches},
    )
