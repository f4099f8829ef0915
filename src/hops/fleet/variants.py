"""Pipelines that carry more or fewer microbatches than the spec's, or run on fewer devices."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import cycle, islice

import numpy as np

from hops.build.prepared import PreparedRun, checked
from hops.build.setup import Setup, build
from hops.cost.base import WrappedCosts
from hops.distributions import FloatArray
from hops.errors import HopsError
from hops.faults.plan import FaultPlan
from hops.fleet.recovery.base import Variant
from hops.spec.schedule import ScheduleChoice
from hops.spec.spec import Spec

Replanner = Callable[[Spec, tuple[str, ...]], Spec | None]  # the spec on these devices, in rank order; None: impossible
SPLIT_SCHEDULE = "zb_h1"  # as much memory as 1F1B, backwards in halves
_MOST_PLACES = 8


def rebalanced(spec: Spec, devices: tuple[str, ...]) -> Spec | None:
    """The simplest replanner: the same order of devices, layers balanced anew. Stated stage times cannot be cut."""
    if spec.pipeline.model is None or not devices:
        return None
    hardware = spec.hardware.model_copy(update={"placement": devices})
    pipeline = spec.pipeline.model_copy(update={"partition": "balanced"})
    return spec.model_copy(update={"hardware": hardware, "pipeline": pipeline})


@dataclass(frozen=True, slots=True, kw_only=True)
class WithExtraMicrobatches(WrappedCosts):
    """Costs of a pipeline that takes some microbatches of other copies, which cost time on few of its stages only.

    Elsewhere they take no time, because there their own copy runs them.

    Attributes:
        extra: per microbatch of another copy, its number and the stages on which it is worked on.
    """

    extra: tuple[tuple[int, frozenset[int]], ...]

    def draw(self, iteration: int, num_microbatches: int, seed: int) -> FloatArray:
        times = np.array(self.inner.draw(iteration, num_microbatches, seed))
        for number, worked_on in self.extra:
            for stage in range(self.num_stages):
                if stage not in worked_on:
                    times[stage, :, number] = 0.0
        return times


class Pipelines:
    """Builds every variant once."""

    def __init__(self, setup: Setup, *, split_backward: bool, replan: Replanner = rebalanced) -> None:
        self._setup, self._split, self._replan = setup, split_backward, replan
        self._built: dict[Variant, PreparedRun | None] = {}
        self._replanned: dict[tuple[str, ...], Spec | None] = {}

    def get(self, variant: Variant) -> PreparedRun | None:
        """The pipeline of a variant; None if it cannot run."""
        if variant not in self._built:
            self._built[variant] = self._build(variant)
        return self._built[variant]

    def _build(self, variant: Variant) -> PreparedRun | None:
        spec = self._setup.spec
        if variant == Variant():
            return checked(self._setup)
        if variant.without:
            devices = tuple(dict.fromkeys(spec.hardware.ranks()))
            left = tuple(each for place, each in enumerate(devices) if place not in variant.without)
            if left not in self._replanned:
                self._replanned[left] = self._replan(spec, left)
            replanned = self._replanned[left]
            if replanned is None:
                return None
            spec = replanned
        if variant.microbatches is not None:
            spec = _with_microbatches(spec, variant.microbatches)
        try:
            return checked(build(spec)) if not any(variant.extra) else self._with_extra(spec, variant.extra)
        except HopsError:
            return None

    def _with_extra(self, spec: Spec, extra: tuple[int, ...]) -> PreparedRun:
        """The slowest of the copies that take extra microbatches: they differ in where these stand."""
        own = spec.pipeline.microbatches
        most = max(extra)
        if self._split:
            split = ScheduleChoice(name=SPLIT_SCHEDULE)
            spec = spec.model_copy(update={"pipeline": spec.pipeline.model_copy(update={"schedule": split})})
        setup = build(_with_microbatches(spec, own + most))
        last = (own + most - 1) - (most - 1) * ((own + most) // most)
        places = sorted({round(place) for place in np.linspace(0, last, _MOST_PLACES)})
        candidates = [PreparedRun.of(_extra_at(setup, extra, place)) for place in places]
        candidates[0].check_fit()
        return max(candidates, key=lambda each: int(each.lengths_ns(1, spec.simulation.seed, FaultPlan())[0]))


def _with_microbatches(spec: Spec, count: int) -> Spec:
    """The spec with another number of microbatches; a list of their work begins anew where it ends."""
    work = spec.pipeline.microbatch_work
    if isinstance(work, tuple):
        work = tuple(islice(cycle(work), count))
    pipeline = spec.pipeline.model_copy(update={"microbatches": count, "microbatch_work": work})
    return spec.model_copy(update={"pipeline": pipeline})


def _extra_at(setup: Setup, extra: tuple[int, ...], place: int) -> Setup:
    """Extra microbatches stand at microbatch `place` and then in equal distances."""
    most, total = max(extra), setup.shape.num_microbatches
    devices = tuple(dict.fromkeys(setup.spec.hardware.ranks()))
    device_of_rank = [devices.index(each) for each in setup.spec.hardware.ranks()]
    taken = tuple(
        (
            place + number * (total // most),
            frozenset(
                stage for stage, rank in enumerate(setup.shape.rank_of_stage) if extra[device_of_rank[rank]] > number
            ),
        )
        for number in range(most)
    )
    return replace(setup, costs=WithExtraMicrobatches(inner=setup.costs, extra=taken))
