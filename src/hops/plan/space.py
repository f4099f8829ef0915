"""What the planner chooses from: groups of settings that share costs, memory and bounds."""

from collections.abc import Iterator
from dataclasses import dataclass

from hops.config.opened import OpenSpec
from hops.config.schedule import ScheduleChoice
from hops.config.spec import Spec
from hops.errors import UsageError
from hops.plan.family import Family, family_of
from hops.schedule import SCHEDULERS, Shape

NOT_TRIED = ("program", "zb_or_1f1b", "hops_hetero_adaptive")  # a file of one's own; choosers among what is tried
SHORT_SEARCH_MS = 40.0  # enough to tell which layouts are worth a long search
SEARCHING = "budget_ms"  # the parameter of schedules that search, and so take their time on every layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Schedules of one family and placement, at one recompute option and one batch."""

    spec: Spec
    recompute: str
    batch: tuple[int, int]
    family: Family
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
            by_shape: dict[tuple[Family, int, bool], list[ScheduleChoice]] = {}
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
