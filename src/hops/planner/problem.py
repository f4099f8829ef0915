"""What the planner chooses from: groups of settings that share costs, memory and bounds."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cached_property

import numpy as np

from hops.arrays import FloatArray, IntArray
from hops.build.figures import Figures, rates_of, resolve
from hops.cost.roofline import DeviceRates
from hops.errors import UsageError
from hops.hardware.cluster import Cluster
from hops.hardware.devices import DeviceKind
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS
from hops.spec.open import OpenSpec
from hops.spec.schedule import ScheduleChoice
from hops.spec.spec import Spec


@dataclass(frozen=True, kw_only=True)
class Pool:
    """All devices of a cluster; index d in every array is `ids[d]`.

    Attributes:
        ids, nodes: of every device.
        kinds: devices with equal figures (catalog and what the spec replaces, price included) that attain the same in
            their hosts are one kind.
        kind_of: kind of every device, an index into `kinds`.
        known: everything that the spec names.
    """

    ids: tuple[str, ...]
    nodes: tuple[str, ...]
    kinds: tuple[DeviceKind, ...]
    kind_of: IntArray
    known: Figures

    @classmethod
    def of(cls, spec: Spec) -> "Pool":
        """All devices of a spec, in its order."""
        figures = resolve(spec)
        devices = figures.cluster.devices
        different: list[tuple[DeviceKind, DeviceRates]] = []
        kind_of = []
        for device, rates in zip(devices, rates_of(figures, devices), strict=True):
            kind = (device.kind, rates)
            if kind not in different:
                different.append(kind)
            kind_of.append(different.index(kind))
        return cls(
            ids=tuple(device.id for device in devices),
            nodes=tuple(device.node for device in devices),
            kinds=tuple(kind for kind, _ in different),
            kind_of=np.array(kind_of, dtype=np.int64),
            known=figures,
        )

    @property
    def cluster(self) -> Cluster:
        """Where they are."""
        return self.known.cluster

    @cached_property
    def counts(self) -> IntArray:
        """How many devices of each kind there are."""
        return np.bincount(self.kind_of, minlength=len(self.kinds)).astype(np.int64)

    @cached_property
    def memory_bytes(self) -> IntArray:
        """Of each kind."""
        return np.array([kind.memory_bytes for kind in self.kinds], dtype=np.int64)

    @cached_property
    def prices(self) -> FloatArray:
        """Per hour, of each kind."""
        return np.array([kind.price_per_hour for kind in self.kinds])

    @cached_property
    def classes(self) -> tuple[tuple[object, ...], ...]:
        """What tells devices apart: kind and node; each is alone where sockets, NICs or links of its own matter."""
        plain = not self.cluster.links and all(node.nics == 1 and node.sockets == 1 for node in self.cluster.nodes)
        return tuple(
            (int(kind), node) if plain else (int(kind), node, device)
            for device, (kind, node) in enumerate(zip(self.kind_of, self.nodes, strict=True))
        )

    def of_kind(self, kind: int) -> list[int]:
        """The devices of a kind, node by node."""
        return [int(device) for device in np.flatnonzero(self.kind_of == kind)]


SECONDS_PER_HOUR = 3600.0


class Objective(StrEnum):
    """What is made best. `pareto` keeps every plan that no other beats in throughput, memory and cost at once."""

    THROUGHPUT = "throughput"
    ITERATION_TIME = "iteration_time"
    COST_PER_TOKEN = "cost_per_token"  # noqa: S105 (no password)
    PARETO = "pareto"

    @classmethod
    def named(cls, name: str) -> "Objective":
        """Raises UsageError for another name."""
        if name not in list(cls):
            raise UsageError(f"--objective: got {name!r}, expected one of {', '.join(cls)}")
        return cls(name)

    def of(self, seconds: float, *, samples: int, price_per_hour: float) -> float:
        """Seconds per sample, seconds, or price per sample; pareto ranks by seconds per sample.

        `seconds` and `samples` are of an iteration, `price_per_hour` of all devices in use.
        """
        if self is Objective.ITERATION_TIME:
            return seconds
        if self is Objective.COST_PER_TOKEN:
            return seconds * price_per_hour / SECONDS_PER_HOUR / samples
        return seconds / samples


class ScheduleFamily(Enum):
    """What a bound may assume of a schedule."""

    ONE_F_ONE_B = "1f1b"  # fused backwards, at most p - s microbatches in flight on stage s
    GPIPE = "gpipe"  # fused backwards, all forwards first
    FUSED = "fused"  # fused backwards in any order
    ANY = "any"  # any order, fused or split


_FAMILIES = {
    "1f1b": ScheduleFamily.ONE_F_ONE_B,
    "gpipe": ScheduleFamily.GPIPE,
    "interleaved_1f1b": ScheduleFamily.FUSED,
}


def family_of(schedule: ScheduleChoice) -> ScheduleFamily:
    """The family of a schedule; of one that is not ours, nothing is assumed."""
    known = schedule.name in _FAMILIES
    return _FAMILIES[schedule.name] if known else ScheduleFamily.ANY


# A file of one's own; choosers among what is tried; what is here to compare with.
NOT_TRIED = ("program", "zb_or_1f1b", "zero_bubble_paper", "hops_hetero_adaptive")
SHORT_SEARCH_MS = 40.0  # enough to tell which layouts are worth a long search
SEARCHING = "budget_ms"  # the parameter of schedules that search, and so take their time on every layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Schedules of one family and placement, at one recompute option and one batch."""

    spec: Spec
    recompute: str
    batch: tuple[int, int]
    family: ScheduleFamily
    chunks: int
    v_shaped: bool
    schedules: tuple[ScheduleChoice, ...]

    @property
    def size(self) -> int:
        """Microbatches."""
        return self.batch[0]

    @property
    def samples(self) -> int:
        """Per iteration and pipeline."""
        return self.batch[0] * self.batch[1]


def groups(opened: OpenSpec) -> tuple[Group, ...]:
    """All groups of an open spec. Raises UsageError where no schedule can arrange anything."""
    found = []
    refused: list[str] = []
    for recompute in dict.fromkeys(opened.recomputes):
        for batch in opened.batches:
            by_shape: dict[tuple[ScheduleFamily, int, bool], list[ScheduleChoice]] = {}
            for schedule in opened.schedules or tuple(every_schedule()):
                try:
                    key = (family_of(schedule), *_arrangement(schedule, batch[0]))
                except UsageError as error:
                    refused.append(str(error))
                    continue
                by_shape.setdefault(key, []).append(schedule)
            for (family, chunks, v_shaped), schedules in by_shape.items():
                spec = opened.close(
                    schedule=schedules[0],
                    recompute=recompute,
                    batch=batch,
                    placement=opened.base.hardware.ranks(),
                    partition=opened.base.pipeline.partition,
                )
                found.append(
                    Group(
                        spec=spec,
                        recompute=recompute,
                        batch=batch,
                        family=family,
                        chunks=chunks,
                        v_shaped=v_shaped,
                        schedules=tuple(schedules),
                    )
                )
    if not found:
        raise UsageError("\n".join(["no schedule can arrange the microbatches:", *dict.fromkeys(refused)]))
    return tuple(found)


def every_schedule() -> Iterator[ScheduleChoice]:
    """All schedules by name, with their defaults; those with several chunks with twice as many, too."""
    for name in SCHEDULERS.names():
        if name in NOT_TRIED:
            continue
        plain = ScheduleChoice(name=name)
        defaults = plain.defaults()
        yield plain.model_copy(update={"parameters": defaults})
        if "chunks" in defaults and defaults["chunks"] > 1:
            doubled = {**defaults, "chunks": 2 * defaults["chunks"]}
            yield plain.model_copy(update={"parameters": doubled})


def search_s(schedule: ScheduleChoice) -> float:
    """Seconds that a schedule searches for on every layout; 0 for most."""
    return float(schedule.parameters[SEARCHING]) / 1e3 if SEARCHING in schedule.parameters else 0.0


def shortened(schedule: ScheduleChoice) -> ScheduleChoice:
    """The same schedule, searching for a short time only, if it searches."""
    if not search_s(schedule):
        return schedule
    shorter = min(SHORT_SEARCH_MS, float(schedule.parameters[SEARCHING]))
    return schedule.model_copy(update={"parameters": {**schedule.parameters, SEARCHING: shorter}})


def _arrangement(schedule: ScheduleChoice, size: int) -> tuple[int, bool]:
    """Chunks, and whether they are placed down and up again. Raises UsageError."""
    scheduler = schedule.make()
    try:
        ranks = 2
        shape = scheduler.shape(ranks, size)
    except UsageError:
        ranks = 1
        shape = scheduler.shape(ranks, size)
    chunks = shape.num_stages // shape.num_ranks
    if shape == Shape.loop(ranks, num_microbatches=size, chunks=chunks):
        return chunks, False
    if shape == Shape.v(ranks, num_microbatches=size):
        return chunks, True
    raise UsageError(f"{schedule.name}: its placement is neither in turn nor down and up; plan it by hand")
