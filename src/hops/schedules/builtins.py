"""What every built-in schedule makes of a profile, under its memory limits."""

from dataclasses import dataclass

from hops.errors import ProgramError, UsageError
from hops.program.program import Program
from hops.schedules.base import SCHEDULERS, Scheduler, StaticScheduler
from hops.timing.evaluate import evaluate
from hops.timing.memory_peaks import fits_budget
from hops.timing.stage_costs import StageCosts

CHOOSERS = ("hops_hetero", "hops_hetero_adaptive", "zb_or_1f1b")  # they choose among the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A built-in's program and its makespan by `evaluate`."""

    name: str
    program: Program
    makespan_ns: int


def contenders(profile: StageCosts) -> tuple[dict[str, int | None], Contender | None]:
    """The makespan (ns) of every built-in for one placement, and the best.

    None stands for one that breaks the memory limits or deadlocks. Built-ins that need another placement, or other
    numbers of ranks and microbatches, are left out.
    """
    makespans: dict[str, int | None] = {}
    best: Contender | None = None
    for name in SCHEDULERS.names():
        if name in CHOOSERS:
            continue
        scheduler = _suited(SCHEDULERS.get(name), profile)
        if scheduler is None:
            continue
        makespans[name] = None
        program = _built(scheduler, profile)
        if program is None or not fits_budget(program, profile):
            continue
        try:
            makespan_ns = evaluate(program, profile).makespan_ns
        except ProgramError:  # some greedy orders deadlock on stages that differ much
            continue
        makespans[name] = makespan_ns
        if best is None or makespan_ns < best.makespan_ns:
            best = Contender(name=name, program=program, makespan_ns=makespan_ns)
    return makespans, best


def _suited(family: type[Scheduler], profile: StageCosts) -> StaticScheduler | None:
    scheduler = family()
    if not isinstance(scheduler, StaticScheduler):
        return None
    try:
        shape = scheduler.shape(profile.shape.num_ranks, profile.shape.num_microbatches)
    except UsageError:
        return None
    return scheduler if shape == profile.shape else None


def _built(scheduler: StaticScheduler, profile: StageCosts) -> Program | None:
    """None if it refuses: not even one microbatch as it would run them fits."""
    try:
        scheduler.configure(profile)
    except UsageError:
        return None
    return scheduler.program
