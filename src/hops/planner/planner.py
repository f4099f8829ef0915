"""From an open spec to ranked plans: bounds, exact starts, local search, rehearsal, simulation of the best few."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest

from hops.build.run import SimulatedRun, summarize
from hops.errors import UsageError
from hops.metrics.summary import Summary
from hops.planner.block_costs import BlockCosts, MessageTimes, block_costs
from hops.planner.candidates import Search, layouts_within
from hops.planner.layout import Candidate
from hops.planner.layout_problem import AfterPipeline, layout_problem
from hops.planner.problem import SECONDS_PER_HOUR, Objective, Pool, ScheduleFamily, groups, search_s, shortened
from hops.planner.problem_bounds import ProblemBounds
from hops.planner.result import Effort, Plan, PlanReport, fullness_of, limit_of, nothing_fits
from hops.planner.trial import Trial, rehearse, run, trial_of
from hops.spec.open import OpenSpec
from hops.spec.schedule import ScheduleChoice

MILLION = 1e6
REHEARSAL_SHARE = 0.2  # of a budget
SEARCH_SHARE = 0.15  # for rehearsals of schedules that search
TRIED_AT_LAST = 8  # so many at most of the best, when the search is interrupted before anything was simulated
SEARCHED_LAYOUTS = 8  # on so many of the best at most, schedules that search are tried
Progress = Callable[[str, int, int], None]
"""progress(what is being done, how many are done, of how many)"""


def plan(
    opened: OpenSpec,
    *,
    objective: Objective = Objective.THROUGHPUT,
    budget_s: float = 3.0,
    top: int = 5,
    progress: Progress | None = None,
) -> PlanReport:
    """The best plans of an open spec, simulated and ranked.

    The same spec, objective, budget and top give the same plans: the budget becomes numbers of evaluations at fixed
    rates, and random moves come from the spec's seed. A KeyboardInterrupt ends the search with the best so far: if
    nothing has been simulated by then, the best layout that is known is. It is raised again if none is known.

    Raises DoesNotFitError with the proof if no placement fits, UsageError if the spec leaves nothing open.
    """
    return _Planner(opened, objective, budget_s, top, progress or _silent).run()


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
    budget_s: float
    top: int
    progress: Progress
    candidates: list[tuple[int, Candidate]] = field(default_factory=list)  # with their place in their group
    trials: list[tuple[float, int, Trial]] = field(default_factory=list)  # that run, with their expected value
    simulated: list[_Simulated] = field(default_factory=list)
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
            self.interrupted = True
            if not self.simulated:
                self._simulate_one(searches, pool)
            if not self.simulated:
                raise
        if not self.simulated:
            raise nothing_fits(searches)
        return self._report(searches, pool)

    def _check_model(self) -> None:
        if self.opened.base.pipeline.model is None:
            raise UsageError(
                "hops plan needs pipeline.model: stage_times say nothing about other partitions or devices; "
                "compare schedules on stated times with hops compare"
            )
        if self.opened.base.pipeline.pair_factor != 1:
            raise UsageError(
                f"hops plan: got pipeline.pair_factor {self.opened.base.pipeline.pair_factor:g}, expected 1, as plans "
                "reckon with F + B; remove it, and simulate the plans with it by hops run"
            )
        if self.opened.base.parallel.states_axes:
            raise UsageError(
                "hops plan: got axes in parallel, expected a pipeline of single devices, which is all that plans "
                "arrange; write copies that are elsewhere as optimizer.data_parallel"
            )
        if self.opened.base.pipeline.microbatch_work is not None:
            raise UsageError(
                "hops plan: got pipeline.microbatch_work, expected none, as plans reckon with microbatches that are "
                "alike; remove it, and simulate the plans with it by hops run"
            )
        stated = self.opened.base.pipeline.partition
        if isinstance(stated, tuple) and 0 in stated:
            raise UsageError(
                f"hops plan: got pipeline.partition {list(stated)}, expected at least one layer per stage, as all "
                "plans have; leave it out to have it planned, or simulate it as it is with hops run"
            )

    def _searches(self, pool: Pool) -> list[Search]:
        """One search per group; groups that differ in schedules only share their costs."""
        shared: dict[tuple[str, int], tuple[BlockCosts, MessageTimes]] = {}
        after = AfterPipeline.of(pool)
        found = []
        for group in groups(self.opened):
            key = (group.recompute, group.batch[1])
            if key not in shared:
                blocks = block_costs(group.spec, pool)
                shared[key] = (blocks, MessageTimes.of(pool, blocks.message_bytes))
            problem = layout_problem(self.opened, group, pool, *shared[key], after)
            found.append(Search(group=group, bounds=ProblemBounds(problem=problem), objective=self.objective))
        return found

    def _trials(self, searches: Sequence[Search], pool: Pool) -> list[Trial]:
        """Candidates of all groups under all their schedules, most promising first."""
        ranks = min(len(pool.ids), searches[0].problem.num_layers)
        each = layouts_within(self.budget_s, ranks=ranks, groups=len(searches))
        self.proved = all(search.is_small(each) and search.fit_is_certain for search in searches)
        of_group: list[list[Candidate]] = []
        for number, search in enumerate(searches):
            self.progress("searching", number, len(searches))
            found = search.candidates(each, seed=self.opened.base.simulation.seed)
            if self.objective is Objective.PARETO:
                found = self._with_cheap_ones(search, found, each)
            of_group.append(found)
            self.candidates += enumerate(found)
        if not self.proved:
            self.candidates += _also_for_others(searches, of_group)
        return list(self._rehearsed(self.candidates, pool))

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
        left_s = self.budget_s * REHEARSAL_SHARE
        trials = self.trials
        turns = [
            (place, candidate.floor, number, candidate, schedule)
            for number, (place, candidate) in enumerate(candidates)
            for schedule in candidate.group.schedules
            if not search_s(schedule)
        ]
        turns.sort(key=lambda turn: turn[:3])
        for number, (_, _, _, candidate, schedule) in enumerate(turns):
            self.progress("rehearsing", number, len(turns))
            left_s -= trial_of(candidate, schedule).rehearsal_s
            if left_s < 0 and trials:
                self.proved = False
                break
            self._rehearse(candidate, schedule, pool)
        trials.sort(key=lambda entry: entry[:2])
        by_floor = sorted((candidate for _, candidate in candidates), key=lambda candidate: candidate.floor)
        by_expected = [trial.candidate for _, _, trial in trials]
        either = [each for pair in zip_longest(by_floor, by_expected) for each in pair if each is not None]
        left_s = self.budget_s * SEARCH_SHARE
        for candidate, schedule in islice(_searched(either), SEARCHED_LAYOUTS):
            self._rehearse(candidate, schedule, pool)
            left_s -= trial_of(candidate, schedule).search_rehearsal_s
            if left_s < 0:
                break
        self.proved = self.proved and not any(map(search_s, _schedules(candidates)))
        trials.sort(key=lambda entry: entry[:2])
        yield from (trial for _, _, trial in trials)

    def _rehearse(self, candidate: Candidate, schedule: ScheduleChoice, pool: Pool) -> None:
        """Add the trial with its expected value, unless it cannot run."""
        self.rehearsed += 1
        trial = rehearse(self.opened, candidate, schedule, pool)
        if trial is not None:
            self.trials.append((_expected(trial), len(self.trials), trial))

    def _simulate(self, trials: Sequence[Trial], pool: Pool) -> None:
        """Simulate in turn, until nothing left can be better and `top` have run, or the budget is spent."""
        iterations = self.opened.base.simulation.iterations
        left_s = self.budget_s * (1 - REHEARSAL_SHARE) / 2
        for number, trial in enumerate(trials):
            self.progress("simulating", number, len(trials))
            cost_s = trial.simulation_s(iterations)
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

    def _simulate_one(self, searches: Sequence[Search], pool: Pool) -> None:
        """Simulate the best that is known when the search is interrupted, if anything is."""
        rehearsed = [trial for _, _, trial in sorted(self.trials, key=lambda entry: entry[:2])]
        candidates = [candidate for _, candidate in self.candidates] or [
            search.candidate(layout) for search in searches if (layout := search.best_known) is not None
        ]
        valued = [
            trial_of(candidate, shortened(schedule))
            for candidate in sorted(candidates, key=lambda candidate: candidate.floor)
            for schedule in sorted(candidate.group.schedules, key=search_s)
        ]
        for trial in [*rehearsed, *valued][:TRIED_AT_LAST]:
            found = run(self.opened, trial, pool)
            if found is not None:
                self.simulated.append(self._judged(trial, found, pool))
                return

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
            bound_ms=1e3 * min(search.bounds.choices.seconds for search in same_batch),
            effort=Effort(
                layouts=sum(search.num_valued for search in searches),
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


def _also_for_others(
    searches: Sequence[Search], of_group: Sequence[Sequence[Candidate]]
) -> Iterator[tuple[int, Candidate]]:
    """The layouts that are best for 1F1B, whose times are known, as candidates of schedules that may do anything.

    The floors of these say little about the order of the devices, which matters to them as it does to 1F1B.
    """
    of_1f1b = {
        (search.group.recompute, search.group.batch): found
        for search, found in zip(searches, of_group, strict=True)
        if search.group.family is ScheduleFamily.ONE_F_ONE_B
    }
    for search, found in zip(searches, of_group, strict=True):
        group = search.group
        if group.family is not ScheduleFamily.ANY or group.chunks > 1 or not search.fits:
            continue
        known = {candidate.layout for candidate in found}
        for place, each in enumerate(of_1f1b.get((group.recompute, group.batch), ())):
            if each.layout not in known:
                yield place, search.candidate(each.layout)


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
