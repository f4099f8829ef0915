"""The search: bound, built-ins, closed-form starts, coordinate search, annealing; until the bound is met."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hops.arrays import IntArray
from hops.bounds.lower_bound import Bound, bound_of, tails
from hops.compiled import available
from hops.program.action import Op
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.builtins import Contender, contenders
from hops.search.anneal import anneal, order_of, program_of
from hops.search.starts import first_policies, refined, tune
from hops.timing.evaluate import evaluate
from hops.timing.list_schedule import decode
from hops.timing.stage_costs import UNLIMITED, CostArrays, StageCosts, cost_arrays
from hops.units import NS_PER_S

MET = 1e-6  # a gap below is rounding: durations are whole nanoseconds, so that B and I + W may differ by one
DECODE_WORK = 4.5  # what decoding an action costs, in actions timed
DECODE_START = 60  # actions that could be decoded in the time it takes to start decoding
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
class Certificate:
    """What a program is worth.

    Attributes:
        makespan_ns: by `evaluate`.
        bound: no program has a shorter makespan.
        peak_bytes: per rank.
        builtins_ns: per built-in of the same placement; None if it breaks the memory limits.
        found_by: the built-in's name, `start`, `tune` or `anneal`.
    """

    makespan_ns: int
    bound: Bound
    peak_bytes: tuple[int, ...]
    builtins_ns: dict[str, int | None]
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


def iterations_for(budget_s: float, profile: StageCosts) -> int:
    """How many iterations fit a time budget on the machine that the rates above were measured on.

    A fixed rate instead of the clock, so that the same budget gives the same program every time. Without numba the rate
    is another, and so the program may be.
    """
    stages, size = profile.shape.num_stages, profile.shape.num_microbatches
    actions = 3 * stages * size
    rate = NS_PER_ACTION if available() else NS_PER_ACTION_PLAIN
    left_ns = budget_s * NS_PER_S - actions * NS_PER_BUILTIN_ACTION
    return max(0, int(left_ns / (rate * actions)))


def search(profile: StageCosts, *, iterations: int, seed: int = 0) -> Result:
    """The best program within so many iterations; never worse than any built-in of the same placement.

    Args:
        profile: with the placement to arrange.
        iterations: programs timed, each action counting once; decoding a policy counts as DECODE_WORK of them. The
            closed-form starts are always tried.
        seed: of the random choices, >= 0.

    Raises DoesNotFitError if one microbatch does not fit.
    """
    instance = cost_arrays(profile)
    bound = bound_of(instance)
    makespans, best_builtin = contenders(profile)
    goal = int(bound.value_ns * (1 + MET))
    program, found_by = None, ""
    if best_builtin is None or best_builtin.makespan_ns > goal:
        found = _Search(instance, goal, seed)
        found.run(iterations, best_builtin)
        if found.best < UNLIMITED:
            program, found_by = program_of(profile.shape, found.kinds, found.length), found.found_by
    if program is None or (
        best_builtin is not None and best_builtin.makespan_ns <= evaluate(program, profile).makespan_ns
    ):
        assert best_builtin is not None, "a policy with one microbatch in flight never gets stuck"
        program, found_by = best_builtin.program, best_builtin.name
    result = evaluate(program, profile)
    certificate = Certificate(
        makespan_ns=result.makespan_ns,
        bound=bound,
        peak_bytes=result.peak_bytes,
        builtins_ns=makespans,
        found_by=found_by,
    )
    return Result(program=program, certificate=certificate)


def warm_up() -> None:
    """Compile every kernel (seconds once per installation, then from numba's cache), so that searches can be timed."""
    shape = Shape.v(2, num_microbatches=4)
    uneven = StageCosts.uniform(shape, f=1e-3, i=1.1e-3, w=1.7e-3, hop_s=1e-4)
    search(replace(uneven, fused_backward_s=(2.5e-3, 2.6e-3, 2.7e-3, 2.75e-3)), iterations=200)


class _Search:
    """The best order so far, and the steps that improve it."""

    def __init__(self, instance: CostArrays, goal: int, seed: int) -> None:
        self.instance = instance
        self.goal = goal
        self.state = seed % STATES + 1
        self.tails = tails(instance)
        self.mean_action = float(instance.times[:, [Op.F, Op.I, Op.W]].mean())
        self.best = UNLIMITED
        self.found_by = ""
        shape = (instance.num_ranks, instance.longest_rank)
        self.kinds, self.length = np.zeros(shape, dtype=np.int64), np.zeros(shape[0], dtype=np.int64)
        self._kinds, self._length = self.kinds.copy(), self.length.copy()

    def run(self, iterations: int, builtin: Contender | None) -> None:
        """Starts, then rounds of tuning and annealing, each from the next best start."""
        starts = self._starts()
        decode = DECODE_WORK * (1 + DECODE_START / self.instance.num_actions)  # in iterations
        left = iterations - decode * len(starts)
        rounds = int(np.clip(left // ROUND_ITERATIONS, 1, min(len(HEAT), len(starts))))
        for number in range(rounds):
            if self.best <= self.goal or left < 1:
                return
            share = left / rounds
            self._tune(starts[number], HEAT[number], int(share * TUNE_SHARE / decode))
            if number == 0 and builtin is not None and builtin.makespan_ns < self.best:
                order_of(builtin.program, self._kinds, self._length)
                self._keep(builtin.makespan_ns, builtin.name)
            self._anneal(HEAT[number], int(share * (1 - TUNE_SHARE)) * self.instance.num_actions)

    def _starts(self) -> list[IntArray]:
        """The closed-form policies that do not get stuck, best first, one of each makespan."""
        tried: list[tuple[int, int, IntArray]] = []
        for policy in first_policies(self.instance):
            tried.append((self._decode(policy), len(tried), policy))
            if self.best <= self.goal:
                return [policy]
        tried.sort(key=_rank)
        for _, _, policy in tried[:REFINED_STARTS]:
            for other in refined(policy):
                tried.append((self._decode(other), len(tried), other))
        distinct = {makespan: policy for makespan, _, policy in sorted(tried, key=_rank, reverse=True)}
        return [distinct[makespan] for makespan in sorted(distinct) if makespan < UNLIMITED]

    def _decode(self, policy: IntArray) -> int:
        makespan = int(decode.fast(*self.instance, policy, self._kinds, self._length))
        self._keep(makespan, "start")
        return makespan

    def _tune(self, policy: IntArray, heat: float, tries: int) -> None:
        makespan = tune.fast(
            *self.instance,
            self.goal,
            tries,
            int(TUNE_THRESHOLD * heat * self.mean_action),
            self._next_state(),
            policy.copy(),
            self._kinds,
            self._length,
        )
        self._keep(int(makespan), "tune")

    def _anneal(self, heat: float, work: int) -> None:
        """From what the last step left in the scratch order."""
        makespan = anneal.fast(
            *self.instance,
            *self.tails,
            self.goal,
            work,
            int(ANNEAL_THRESHOLD * heat * self.mean_action),
            self._next_state(),
            self._kinds,
            self._length,
        )
        self._keep(int(makespan), "anneal")

    def _keep(self, makespan: int, found_by: str) -> None:
        if makespan < self.best:
            self.best, self.found_by = makespan, found_by
            self.kinds[:], self.length[:] = self._kinds, self._length

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
            for builtin, makespan in certificate.builtins_ns.items()
        },
        "search_ms": search_ms,
        "program": [[*map(str, result.program.rank(rank))] for rank in range(result.program.num_ranks)],
    }
