"""From an open spec to ranked plans: bounds, exact starts, local search, rehearsal, simulation of the best few."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest

from hops.build.run import SimulatedRun, summarize
from hops.errors import UsageError
from hops.metrics.summary import Summary
from hops.planner.block_costs import MessageTimes, Tables, build_tables
from hops.planner.budget import REHEARSAL_SHARE, SEARCH_SHARE, Budget
from hops.planner.candidates import Candidate, Search
from hops.planner.problem import SECONDS_PER_HOUR, Objective, Pool, groups, search_s
from hops.planner.result import Effort, Plan, PlanReport, fullness_of, limit_of, nothing_fits
from hops.planner.trial import Trial, rehearse, run, trial_of
from hops.spec.open import OpenSpec
from hops.spec.schedule import ScheduleChoice

MILLION = 1e6
SEARCHED_LAYOUTS = 8  # on so many of the best at most, schedules that search are tried
Progress = Callable[[str, int, int], None]
"""progress(what is being done, how many are done, of how many)"""


def plan(
    opened: OpenSpec,
    *,
    objective: Objective = Objective.THROUGHPUT,
    budget: Budget | None = None,
    top: int = 5,
    progress: Progress | None = None,
) -> PlanReport:
    """The best plans of an open spec, simulated and ranked.

    The same spec, objective, budget and top give the same plans: the budget is a number of evaluations, and random
    moves come from the spec's seed. A KeyboardInterrupt ends the search with the best so far, if anything has been
    simulated by then.

    Raises DoesNotFitError with the proof if no placement fits, UsageError if the spec leaves nothing open.
    """
    return _Planner(opened, objective, budget or Budget(seconds=3.0), top, progress or _silent).run()


def _silent(what: str, done: int, total: int) -> None:
    """Report to nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Simulated:
    """A trial that ran, and its value."""

    trial: Trial
    run: SimulatedRun
    summary: Summary
    value: float


@dataclass(slots=True)
class _Planner:
    opened: OpenSpec
    objective: Objective
    budget: Budget
    top: int
    progress: Progress
    simulated: list[_Simulated] = field(default_factory=list)
    layouts: int = 0
    rehearsed: int = 0
    proved: bool = False
    interrupted: bool = False

    def run(self) -> PlanReport:
        self._check_model()
        pool = Pool.of(self.opened.base)
        searches = self._searches(pool)
        try:
            self._simulate(self._trials(searches, pool), pool)
        except KeyboardInterrupt:
            if not self.simulated:
                raise
            self.interrupted = True
        if not self.simulated:
            raise nothing_fits(searches)
        return self._report(searches, pool)

    def _check_model(self) -> None:
        if self.opened.base.pipeline.model is None:
            raise UsageError(
                "hops plan needs pipeline.model: stage_times say nothing about other partitions or devices; "
                "compare schedules on stated times with hops compare"
            )

    def _searches(self, pool: Pool) -> list[Search]:
        """One search per group; groups that differ in schedules only share their tables."""
        shared: dict[tuple[str, int], tuple[Tables, MessageTimes]] = {}
        found = []
        for group in groups(self.opened):
            key = (group.recompute, group.batch[1])
            if key not in shared:
                tables = build_tables(group.spec, pool)
                shared[key] = (tables, MessageTimes.of(pool, tables.message_bytes))
            tables, ways = shared[key]
            found.append(
                Search(opened=self.opened, group=group, pool=pool, tables=tables, ways=ways, objective=self.objective)
            )
        return found

    def _trials(self, searches: Sequence[Search], pool: Pool) -> list[Trial]:
        """Candidates of all groups under all their schedules, most promising first."""
        ranks = min(len(pool.ids), searches[0].tables.num_layers)
        each = self.budget.layouts(ranks=ranks, groups=len(searches))
        candidates: list[tuple[int, Candidate]] = []  # with their place in their group
        self.proved = all(search.is_small(each) and search.fit_is_certain for search in searches)
        for number, search in enumerate(searches):
            self.progress("searching", number, len(searches))
            found = search.candidates(each, seed=self.opened.base.simulation.seed)
            if self.objective is Objective.PARETO:
                found = self._with_cheap_ones(search, found, each)
            candidates += ((place, candidate) for place, candidate in enumerate(found))
            self.layouts += search.num_valued
        return list(self._rehearsed(candidates, pool))

    def _with_cheap_ones(self, search: Search, found: list[Candidate], evaluations: int) -> list[Candidate]:
        """The fast candidates and those that are cheap per token, in turn."""
        thrifty = replace(search, objective=Objective.COST_PER_TOKEN, _known={}, _expected={}, _steps=[])
        seed = self.opened.base.simulation.seed
        cheap = [search.candidate(each.layout) for each in thrifty.candidates(evaluations, seed=seed)]
        return [each for pair in zip_longest(found, cheap) for each in pair if each is not None]

    def _rehearsed(self, candidates: Sequence[tuple[int, Candidate]], pool: Pool) -> Iterator[Trial]:
        """Trials by expected value, as many as the budget allows: the first of every group, then the second of each.

        Where each has one schedule, and all layouts or exact times are known, there is nothing to rehearse.
        """
        known = self.proved or all(candidate.is_exact for _, candidate in candidates)
        if known and all(len(candidate.group.schedules) == 1 for _, candidate in candidates):
            alone = [trial_of(candidate, candidate.group.schedules[0]) for _, candidate in candidates]
            yield from sorted(alone, key=_expected)
            return
        left_s = self.budget.seconds * REHEARSAL_SHARE
        trials: list[tuple[float, int, Trial]] = []
        turns = [
            (place, candidate.floor, number, candidate, schedule)
            for number, (place, candidate) in enumerate(candidates)
            for schedule in candidate.group.schedules
            if not search_s(schedule)
        ]
        turns.sort(key=lambda turn: turn[:3])
        for number, (_, _, _, candidate, schedule) in enumerate(turns):
            self.progress("rehearsing", number, len(turns))
            left_s -= self.budget.rehearsal_s(trial_of(candidate, schedule))
            if left_s < 0 and trials:
                self.proved = False
                break
            trials += self._rehearse(candidate, schedule, len(trials), pool)
        trials.sort(key=lambda entry: entry[:2])
        by_floor = sorted((candidate for _, candidate in candidates), key=lambda candidate: candidate.floor)
        by_expected = [trial.candidate for _, _, trial in trials]
        either = [each for pair in zip_longest(by_floor, by_expected) for each in pair if each is not None]
        left_s = self.budget.seconds * SEARCH_SHARE
        for candidate, schedule in islice(_searched(either), SEARCHED_LAYOUTS):
            trials += self._rehearse(candidate, schedule, len(trials), pool)
            left_s -= self.budget.search_rehearsal_s(trial_of(candidate, schedule))
            if left_s < 0:
                break
        self.proved = self.proved and not any(map(search_s, _schedules(candidates)))
        trials.sort(key=lambda entry: entry[:2])
        yield from (trial for _, _, trial in trials)

    def _rehearse(
        self, candidate: Candidate, schedule: ScheduleChoice, number: int, pool: Pool
    ) -> list[tuple[float, int, Trial]]:
        """The trial with its expected value, or nothing if it cannot run."""
        self.rehearsed += 1
        trial = rehearse(self.opened, candidate, schedule, pool)
        return [] if trial is None else [(_expected(trial), number, trial)]

    def _simulate(self, trials: Sequence[Trial], pool: Pool) -> None:
        """Simulate in turn, until nothing left can be better and `top` have run, or the budget is spent."""
        iterations = self.opened.base.simulation.iterations
        left_s = self.budget.seconds * (1 - REHEARSAL_SHARE) / 2
        for number, trial in enumerate(trials):
            self.progress("simulating", number, len(trials))
            cost_s = self.budget.simulation_s(trial, iterations)
            enough = len(self.simulated) >= self.top and self.objective is not Objective.PARETO
            best = min((each.value for each in self.simulated), default=float("inf"))
            if enough and trial.candidate.floor >= best:
                continue
            if left_s < cost_s and self.simulated:
                self.proved = self.proved and trial.candidate.floor >= best
                continue
            left_s -= cost_s
            found = run(self.opened, trial, pool)
            if found is not None:
                self.simulated.append(self._judged(trial, found, pool))

    def _judged(self, trial: Trial, found: SimulatedRun, pool: Pool) -> _Simulated:
        summary = summarize(found)
        value = self.objective.of(
            summary.iteration_time.mean_ms / 1e3,
            samples=trial.candidate.group.samples,
            price_per_hour=_price(trial.candidate, pool),
        )
        return _Simulated(trial=trial, run=found, summary=summary, value=value)

    def _report(self, searches: Sequence[Search], pool: Pool) -> PlanReport:
        fitting = [search for search in searches if search.fits]
        bound = min(search.bound() for search in fitting)
        plans = [self._plan(each, bound, pool) for each in sorted(self.simulated, key=lambda each: each.value)]
        shown = plans[: self.top]
        if self.objective is Objective.PARETO:
            shown = [plan for plan in plans if not any(_beats(other, plan) for other in plans)]
        best = plans[0].spec.pipeline
        same_batch = [s for s in fitting if s.group.batch == (best.microbatches, best.microbatch_size)]
        return PlanReport(
            objective=self.objective,
            plans=tuple(shown),
            others=tuple(plan for plan in plans if plan not in shown),
            bound=bound,
            bound_ms=1e3 * min(search.choices.seconds for search in same_batch),
            effort=Effort(
                layouts=self.layouts,
                rehearsed=self.rehearsed,
                simulated=len(self.simulated),
                exhaustive=self.proved and not self.interrupted,
                interrupted=self.interrupted,
            ),
        )

    def _plan(self, each: _Simulated, bound: float, pool: Pool) -> Plan:
        summary = each.summary
        group = each.trial.candidate.group
        spec = each.run.setup.spec
        price = _price(each.trial.candidate, pool)
        per_sample = group.samples * (spec.pipeline.sequence_length or 1)
        seconds = summary.iteration_time.mean_ms / 1e3
        return Plan(
            spec=spec,
            run=each.run,
            summary=summary,
            value=each.value,
            gap=each.value / bound - 1,
            cost_per_million=seconds * price / SECONDS_PER_HOUR / per_sample * MILLION,
            price_per_hour=price * spec.optimizer.data_parallel,
            fullness=fullness_of(summary),
            limit=limit_of(summary),
        )


def _expected(trial: Trial) -> float:
    """What is expected of a trial, in the objective's unit."""
    return trial.candidate.floor * trial.expected_s / trial.candidate.floor_s


def _schedules(candidates: Sequence[tuple[int, Candidate]]) -> Iterator[ScheduleChoice]:
    return (schedule for _, candidate in candidates for schedule in candidate.group.schedules)


def _searched(candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, ScheduleChoice]]:
    """Candidates, each once, with the schedules of their groups that search."""
    for candidate in dict.fromkeys(candidates):
        yield from ((candidate, schedule) for schedule in candidate.group.schedules if search_s(schedule))


def _price(candidate: Candidate, pool: Pool) -> float:
    """Per hour, of the devices of one pipeline."""
    return float(pool.prices[pool.kind_of[list(candidate.layout.devices)]].sum())


def _beats(one: Plan, other: Plan) -> bool:
    """Whether a plan is at least as good in throughput, memory and cost, and better in one of them."""
    pairs = [
        (one.value, other.value),
        (one.fullness or 0.0, other.fullness or 0.0),
        (one.cost_per_million, other.cost_per_million),
    ]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)
