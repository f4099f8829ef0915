"""What a whole job exchanges: its mesh and groups, every collective with bytes and seconds, what is exposed by axis."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from hops.axes import Axis
from hops.build.reductions import shard_parts, sharing_of
from hops.build.setup import Setup
from hops.cost.analytic import AnalyticCosts
from hops.cost.base import CostModel, WrappedCosts
from hops.cost.data_parallel import at_end, held_by, seconds
from hops.cost.exchange import DeviceGroups
from hops.cost.roofline import DeviceRates
from hops.hardware.span import Span
from hops.model.kernels import Collective, collectives
from hops.model.workload import StageWork
from hops.program.action import Op
from hops.units import format_bytes, format_time

REDUCED = "data"  # gradients are reduced over data x context


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    """One kind of collective of a stage: when, over which group, how often, how much, and how long a call takes."""

    when: str
    collective: Collective
    span: Span
    seconds: float

    def __str__(self) -> str:
        each = self.collective
        times = f"{each.calls} x " if each.calls > 1 else ""
        hides = f", beside {each.hides_under}" if each.hides_under else ""
        size = f"{times}{format_bytes(each.bytes)}"
        took = f"{times}{format_time(self.seconds)}"
        return f"{self.when:4} {each.axis}: {each.kind} of {size} in {took}{hides}"


def job_lines(setup: Setup) -> tuple[str, ...]:
    """The mesh, the groups of the first pipeline position, and every collective of one of its stages."""
    mesh = setup.spec.mesh()
    if mesh.stage_ranks == 1:
        return ()
    sizes = {axis: mesh.size(axis) for axis in (Axis.TENSOR, Axis.CONTEXT, Axis.DATA, Axis.PIPELINE)}
    product = " x ".join(f"{axis} {size}" for axis, size in sizes.items())
    lines = [f"mesh: {prod(sizes.values())} devices = {product}, order {mesh.order}"]
    if mesh.expert > 1:
        lines.append(f"experts: expert_tensor {mesh.expert_tensor} x expert {mesh.expert} x {mesh.expert_data} copies")
    costs = analytic(setup.costs)
    routed = costs is not None and any(work.expert_parameters for work in costs.works)
    for axis, part, span in setup.known.exchanges[0].spans:
        if axis in (Axis.EXPERT, Axis.EXPERT_TENSOR, Axis.EXPERT_DATA) and not routed:
            continue
        group = mesh.groups(axis)[0].tolist() if part == "whole" and axis is not Axis.DATA else None
        ranks = "" if group is None else f": ranks {_ranks(group)} and likewise"
        name = "data x context" if axis is Axis.DATA and mesh.context > 1 else str(axis)
        lines.append(f"{name}{'' if part == 'whole' else f' ({part})'}: {span}{ranks}")
    if costs is None:
        return tuple(lines)
    stage = min(1, costs.num_stages - 1)
    lines.append(f"stage {stage} exchanges, per microbatch (F, I, W; R: computed again) and per iteration:")
    lines += [f"  {each}" for each in exchanged(setup, costs, stage)]
    shares = exposed_by_axis(setup)
    if shares:
        lines.append("exposed per rank and iteration: " + exposed_text(shares))
    return tuple(lines)


def exchanged(setup: Setup, costs: AnalyticCosts, stage: int) -> Iterator[Exchanged]:
    """Every collective of a stage; those alike counted together."""
    work, exchange = costs.works[stage], costs.rates[stage].exchange
    ops = {"F": work.forward, "R": work.recompute, "I": work.input_backward, "W": work.weight_backward}
    for when, op in ops.items():
        calls: Counter[Collective] = Counter()
        for each in collectives(op.kernels):
            calls[replace(each, calls=1)] += each.calls
        for each, count in calls.items():
            span, once = exchange.span(each.axis, each.part), exchange.seconds(each)
            yield Exchanged(when=when, collective=replace(each, calls=count), span=span, seconds=once)
    section = setup.spec.optimizer
    if not section.enabled:
        return
    held = held_by(work, gradient_bytes=section.gradient_bytes, element_bytes=_element_bytes(setup))
    end = at_end(held, sharing_of(setup.spec))
    for each in collectives((*end.reduce, *end.gather)):
        span = exchange.span(each.axis, each.part)
        if span.members > 1:
            once = seconds((each,), exchange, inner=shard_parts(setup.spec))
            yield Exchanged(when="end", collective=each, span=span, seconds=once)


def exposed_by_axis(setup: Setup) -> dict[str, float]:
    """Seconds that the collectives of each axis add to an iteration, mean over ranks: what is left if they were free.

    Those of actions are F + B with and without the axis; reductions of gradients are what is exposed of them.
    """
    costs = analytic(setup.costs)
    if costs is None or setup.spec.mesh().stage_ranks == 1:
        return {}
    ranks, count = setup.shape.num_ranks, setup.shape.num_microbatches / setup.shape.copies
    axes = dict.fromkeys(axis for exchange in setup.known.exchanges for axis, _, _ in exchange.spans)
    found: dict[str, float] = {}
    for axis in axes:
        if any(each.axis is axis for work in costs.works for each in _all(work)):
            free = replace(costs, rates=_without(costs, axis))
            added = sum(
                costs.seconds(stage, op) - free.seconds(stage, op)
                for stage in range(costs.num_stages)
                for op in (Op.F, Op.B)
            )
            found[str(axis)] = added * count / ranks
    reduced = sum(costs.step(0, setup.settings.seed).grad_reduce_s) / ranks
    if reduced:
        found = Counter(found) + Counter({REDUCED: reduced})  # type: ignore[assignment]
    return found


def exposed_text(shares: dict[str, float]) -> str:
    """Such as `tensor 1.2 s, data 30 ms`, the longest first."""
    return ", ".join(f"{axis} {format_time(each)}" for axis, each in sorted(shares.items(), key=lambda pair: -pair[1]))


def analytic(costs: CostModel) -> AnalyticCosts | None:
    """The costs of a model under whatever changes their draws; None where times are stated."""
    while isinstance(costs, WrappedCosts):
        costs = costs.inner
    return costs if isinstance(costs, AnalyticCosts) else None


def _all(work: StageWork) -> tuple[Collective, ...]:
    ops = (work.forward, work.recompute, work.input_backward, work.weight_backward)
    return tuple(each for op in ops for each in collectives(op.kernels))


def _without(costs: AnalyticCosts, axis: Axis) -> tuple[DeviceRates, ...]:
    """The rates of every stage with groups of one along the axis; stages alike share one object."""
    alike: dict[int, DeviceRates] = {}
    for rates in costs.rates:
        if id(rates) not in alike:
            spans = tuple(each for each in rates.exchange.spans if each[0] is not axis)
            exchange = DeviceGroups(spans=spans, overlap_slowdown=rates.exchange.overlap_slowdown)
            alike[id(rates)] = replace(rates, exchange=exchange)
    return tuple(alike[id(rates)] for rates in costs.rates)


def _element_bytes(setup: Setup) -> int:
    assert setup.known.work is not None, "costs of a model have one"
    return setup.known.work.how.element_bytes


def _ranks(group: list[int]) -> str:
    """Such as `0, 8, 16, ..., 120`."""
    shown = [*group[:3], "...", group[-1]] if len(group) > 5 else group
    return ", ".join(map(str, shown))
