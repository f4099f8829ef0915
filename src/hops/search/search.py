"""The search: bound, incumbents, closed-form starts, coordinate search, annealing; until the bound is met."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from hops.arrays import IntArray
from hops.bounds.lower_bound import Bound, least_arrays, lower_bound, tails_of
from hops.compiled import available
from hops.errors import ProgramError, UsageError
from hops.program.action import Op
from hops.program.program import Program
from hops.program.shape import Shape
from hops.search.anneal import Cooling, anneal
from hops.search.starts import first_policies, refined, tune
from hops.timing.list_schedule import list_schedule, rules_of
from hops.timing.longest_path import evaluate
from hops.timing.memory_peaks import fits_budget
from hops.timing.order_rows import blank_rows, copy_rows, fill_rows, program_of
from hops.timing.retiming import Tails, order_ns
from hops.timing.stage_costs import UNLIMITED, CostArrays, StageCosts, cost_arrays

MET = 1e-6  # a gap below is rounding: durations are whole nanoseconds, so that B and I + W may differ by one
DECODE_WORK = 4.5  # what decoding an action costs, in actions timed
DECODE_START = 60  # actions that could be decoded in the time it takes to start decoding
START_ACTIONS = (
    8_000_000  # actions decoded of all starts at most: half a second; above 100,000 actions some are left out
)
TUNE_SHARE = 0.35
REFINED_STARTS = 3
TUNE_THRESHOLD = 0.1  # of a mean action: how much worse a step may be at first
ANNEAL_THRESHOLD = 0.2
HEAT = (1.0, 0.3, 3.0, 1.0, 5.0, 0.5, 8.0, 2.0)  # of these, round by round: what one misses, another may find
ROUND_ITERATIONS = 3000  # a second round from another start pays only once the first had so many
NS_PER_ACTION = 9.0  # measured, benchmarks/search.py: one action timed, compiled
NS_PER_ACTION_PLAIN = 2500.0  # and interpreted
NS_PER_BUILTIN_ACTION = 16_000.0  # building and evaluating all built-ins, per action of a program
STATES = 2147483646  # of the random sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Incumbent:
    """A program that is there before the search, and its makespan by `evaluate`."""

    name: str
    program: Program
    makespan_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What a program is worth.

    Attributes:
        makespan_ns: by `evaluate`.
        bound: no program has a shorter makespan.
        peak_bytes: per rank.
        incumbents_ns: the makespan of each incumbent; None if it breaks the activation budget or cannot run.
        found_by: the incumbent's name, `start`, `tune` or `anneal`.
    """

    makespan_ns: int
    bound: Bound
    peak_bytes: tuple[int, ...]
    incumbents_ns: dict[str, int | None]
    found_by: str

    @property
    def gap(self) -> float:
        """How far above the bound, as a fraction of it."""
        return self.bound.gap(self.makespan_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The best program found, and its certificate."""

    program: Program
    certificate: Certificate


def judge(costs: StageCosts, programs: Mapping[str, Program | None]) -> tuple[dict[str, int | None], Incumbent | None]:
    """The makespan (ns) of each program, and the best; the first of equals.

    None stands for one that there is not, that breaks the activation budget, or that deadlocks (as some greedy orders
    do on stages that differ much).
    """
    makespans: dict[str, int | None] = {}
    best: Incumbent | None = None
    for name, program in programs.items():
        makespans[name] = None
        if program is None or not fits_budget(program, costs):
            continue
        try:
            makespan_ns = evaluate(program, costs).makespan_ns
        except ProgramError:
            continue
        makespans[name] = makespan_ns
        if best is None or makespan_ns < best.makespan_ns:
            best = Incumbent(name=name, program=program, makespan_ns=makespan_ns)
    return makespans, best


def iterations_for(budget_s: float, profile: StageCosts) -> int:
    """How many iterations fit a time budget on the machine that the rates above were measured on.

    A fixed rate instead of the clock, so that the same budget gives the same program every time. Without numba the rate
    is another, and so the program may be.
    """
    stages, size = profile.shape.num_stages, profile.shape.num_microbatches
    actions = 3 * stages * size
    rate = NS_PER_ACTION if available() else NS_PER_ACTION_PLAIN
    left_ns = budget_s * 1e9 - actions * NS_PER_BUILTIN_ACTION
    return max(0, int(left_ns / (rate * actions)))


def search(costs: StageCosts, incumbents: Mapping[str, Program | None], *, iterations: int, seed: int = 0) -> Result:
    """The best program within so many iterations; within the activation budget, and never worse than an incumbent.

    Args:
        costs: with the placement to arrange.
        incumbents: programs of this placement by name; None stands for one that refused these costs.
        iterations: programs timed, each action counting once; making one from a policy counts as DECODE_WORK of them.
            Closed-form starts are tried in any case.
        seed: of the random choices, >= 0.

    Raises DoesNotFitError if one microbatch does not fit; UsageError for several copies of the model. Of slices, whose
    order within a microbatch is fixed, it gives the best of the incumbents, of which one must fit.
    """
    if costs.shape.copies > 1:
        raise UsageError(
            f"the search arranges one copy of the model, but got {costs.shape.copies}; search a V of two stages per "
            "rank instead, which needs half of the weights"
        )
    arrays = cost_arrays(costs)
    bound = lower_bound(costs)
    makespans, best = judge(costs, incumbents)
    goal = int(bound.value_ns * (1 + MET))
    program, found_by = None, ""
    if costs.shape.slices == 1 and (best is None or best.makespan_ns > goal):
        found = _Search(arrays, tails_of(least_arrays(costs)), goal, seed)
        found.run(iterations, best)
        if found.best < UNLIMITED:
            program, found_by = program_of(costs.shape, found.rows), found.found_by
    if program is None or (best is not None and best.makespan_ns <= evaluate(program, costs).makespan_ns):
        assert best is not None, "a policy with one microbatch in flight never gets stuck"
        program, found_by = best.program, best.name
    result = evaluate(program, costs)
    certificate = Certificate(
        makespan_ns=result.makespan_ns,
        bound=bound,
        peak_bytes=result.peak_bytes,
        incumbents_ns=makespans,
        found_by=found_by,
    )
    return Result(program=program, certificate=certificate)


def warm_up() -> None:
    """Compile every kernel (seconds once per installation, then from numba's cache), so that searches can be timed."""
    shape = Shape.v(2, num_microbatches=4)
    uneven = StageCosts.uniform(shape, f=1e-3, i=1.1e-3, w=1.7e-3, hop_s=1e-4)
    search(replace(uneven, fused_backward_s=(2.5e-3, 2.6e-3, 2.7e-3, 2.75e-3)), {}, iterations=200)


class _Search:
    """The best order so far, and the steps that improve it."""

    def __init__(self, costs: CostArrays, tails: Tails, goal: int, seed: int) -> None:
        self.costs = costs
        self.goal = goal
        self.state = seed % STATES + 1
        self.tails = tails
        self.mean_action = float(costs.times[:, [Op.F, Op.I, Op.W]].mean())
        self.best = UNLIMITED
        self.found_by = ""
        self.rows, self._rows = blank_rows(costs), blank_rows(costs)

    def run(self, iterations: int, incumbent: Incumbent | None) -> None:
        """Starts, then rounds of tuning and annealing, each from the next best start."""
        starts = self._starts()
        decode = DECODE_WORK * (1 + DECODE_START / self.costs.num_actions)  # in iterations
        left = iterations - decode * len(starts)
        rounds = int(np.clip(left // ROUND_ITERATIONS, 1, min(len(HEAT), len(starts))))
        for number in range(rounds):
            if self.best <= self.goal or left < 1:
                return
            share = left / rounds
            self._tune(starts[number], HEAT[number], int(share * TUNE_SHARE / decode))
            if number == 0 and incumbent is not None and incumbent.makespan_ns < self.best:
                fill_rows(incumbent.program, self._rows)
                self._keep(incumbent.makespan_ns, incumbent.name)
            self._anneal(HEAT[number], int(share * (1 - TUNE_SHARE)) * self.costs.num_actions)

    def _starts(self) -> list[IntArray]:
        """The closed-form policies that do not get stuck, best first, one of each makespan."""
        tried: list[tuple[int, int, IntArray]] = []
        most = max(1, START_ACTIONS // self.costs.num_actions)
        for policy in islice(first_policies(self.costs), most):
            tried.append((self._decode(policy), len(tried), policy))
            if self.best <= self.goal:
                return [policy]
        tried.sort(key=_rank)
        for other in [other for _, _, policy in tried[:REFINED_STARTS] for other in refined(policy)][
            : most - len(tried)
        ]:
            tried.append((self._decode(other), len(tried), other))
        distinct = {makespan: policy for makespan, _, policy in sorted(tried, key=_rank, reverse=True)}
        return [distinct[makespan] for makespan in sorted(distinct) if makespan < UNLIMITED]

    def _decode(self, policy: IntArray) -> int:
        makespan = self._exact(int(list_schedule.fast(self.costs, rules_of(policy), self._rows)))
        self._keep(makespan, "start")
        return makespan

    def _tune(self, policy: IntArray, heat: float, tries: int) -> None:
        threshold = int(TUNE_THRESHOLD * heat * self.mean_action)
        trial = policy.copy()
        makespan = tune.fast(self.costs, self.goal, tries, threshold, self._next_state(), trial, self._rows)
        self._keep(self._exact(int(makespan)), "tune")

    def _anneal(self, heat: float, work: int) -> None:
        """From what the last step left in the scratch order."""
        threshold = int(ANNEAL_THRESHOLD * heat * self.mean_action)
        cooling = Cooling(self.goal, work, threshold, self._next_state())
        self._keep(int(anneal.fast(self.costs, self.tails, cooling, self._rows)), "anneal")

    def _exact(self, makespan: int) -> int:
        """The makespan of the scratch order; making an order from a policy counts with actions of mean work alone."""
        return makespan if makespan == UNLIMITED or self.costs.is_plain else order_ns(self.costs, self._rows)

    def _keep(self, makespan: int, found_by: str) -> None:
        if makespan < self.best:
            self.best, self.found_by = makespan, found_by
            copy_rows(self._rows, self.rows)

    def _next_state(self) -> int:
        """A start for a step's own random sequence; consecutive ones are far apart."""
        self.state = self.state * 16807 % (STATES + 1)
        return self.state


def _rank(entry: tuple[int, int, IntArray]) -> tuple[int, int]:
    return entry[:2]


NS_PER_MS = 1e6


def search_report(name: str, result: Result, search_ms: float) -> dict[str, Any]:
    """One instance: times in ms, peaks in bytes per rank, the gap in percent, the program as texts such as 2F0."""
    certificate = result.certificate
    return {
        "name": name,
        "makespan_ms": certificate.makespan_ns / NS_PER_MS,
        "bound_ms": certificate.bound.value_ns / NS_PER_MS,
        "gap_pct": 100.0 * certificate.gap,
        "peak_bytes": list(certificate.peak_bytes),
        "builtins_ms": {
            builtin: None if makespan is None else makespan / NS_PER_MS
            for builtin, makespan in certificate.incumbents_ns.items()
        },
        "search_ms": search_ms,
        "program": [[*map(str, result.program.rank(rank))] for rank in range(result.program.num_ranks)],
    }
