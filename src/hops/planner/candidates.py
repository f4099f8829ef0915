"""The layouts of one group that are worth a simulation: exact starts, local search, or all of them if they are few."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import inf

import numpy as np

from hops.planner.anneal import annealed, compiled_steps
from hops.planner.layout import Candidate, Layout, all_layouts, how_many, layout_of_pick, place
from hops.planner.layout_bound import bound_parts, expected_s, is_exact, layout_bound
from hops.planner.layout_problem import LayoutProblem, layers_by_rule
from hops.planner.local_search import layout_s, local_search
from hops.planner.problem import Group, Objective, Pool
from hops.planner.problem_bounds import ProblemBounds

STARTS = 3  # that the local search begins from
KEPT = 12  # layouts of a group that go on
PICKS = 12
HEAT = 0.01  # of the search from the starts; later searches go downhill
WARM, COOL = 0.003, 0.001  # of compiled searches, which take many more steps
EXACT_COST = 2  # an exact search step costs as much as so many others, as most are refused by their floor
LAYOUT_SHARE = 0.4  # of a budget
LEAST_LAYOUTS = 100


def layouts_within(budget_s: float, *, ranks: int, groups: int) -> int:
    """Layouts to value in each of so many groups."""
    return max(LEAST_LAYOUTS, int(budget_s * LAYOUT_SHARE / groups / layout_s(ranks)))


@dataclass(frozen=True, kw_only=True)
class Search:
    """The search in one group: its problem, what holds for all of its layouts, and what is known of each."""

    group: Group
    bounds: ProblemBounds
    objective: Objective
    _known: dict[Layout, float] = field(default_factory=dict, repr=False)
    _expected: dict[Layout, float] = field(default_factory=dict, repr=False)
    _steps: list[int] = field(default_factory=list, repr=False)  # of compiled searches

    @property
    def problem(self) -> LayoutProblem:
        return self.bounds.problem

    @property
    def fits(self) -> bool:
        """Whether anything may fit."""
        return self.bounds.fits

    @property
    def fit_is_certain(self) -> bool:
        """Whether a layout that is left out for its memory fits under no schedule: in V schedules that is estimated."""
        return not self.problem.v_shaped

    @property
    def num_valued(self) -> int:
        """Layouts valued so far."""
        return len(self._known) + sum(self._steps)

    @property
    def best_known(self) -> Layout | None:
        """The best layout valued so far that fits; None if there is none."""
        best = min(self._known, key=self.value, default=None)
        return None if best is None or self._known[best] == inf else best

    def bound(self) -> float:
        """No plan of the group has a better value."""
        choices = self.bounds.choices
        if self.objective is Objective.COST_PER_TOKEN:
            return self.objective.of(1.0, samples=self.group.samples, price_per_hour=choices.price_seconds)
        return self.objective.of(choices.seconds, samples=self.group.samples, price_per_hour=0.0)

    def value(self, layout: Layout) -> float:
        """The floor of a layout in the objective's unit."""
        if layout not in self._known:
            self._known[layout] = self._in_unit(layout, layout_bound(self.problem, layout))
        return self._known[layout]

    def expected(self, layout: Layout) -> float:
        """The value to expect of a layout: exact but for shared links where that is known, else the floor."""
        if not is_exact(self.problem):
            return self.value(layout)
        if layout not in self._expected:
            self._expected[layout] = self._in_unit(layout, expected_s(self.problem, layout))
        return self._expected[layout]

    def _in_unit(self, layout: Layout, seconds: float) -> float:
        price = float(self.problem.pool.prices[self.problem.pool.kind_of[list(layout.devices)]].sum())
        return self.objective.of(seconds, samples=self.group.samples, price_per_hour=price)

    def is_small(self, evaluations: int) -> bool:
        """Whether all layouts can be valued."""
        problem = self.problem
        return how_many(problem.pool, problem.num_layers, problem.freedom, problem.stated) <= evaluations

    def candidates(self, evaluations: int, seed: int) -> list[Candidate]:
        """The best layouts, best first; all of them, if they are few enough."""
        if not self.fits:
            return []
        if self.is_small(evaluations):
            layouts = list(self._all_layouts())
        else:
            self._search(evaluations, seed)
            layouts = list(self._expected) or list(self._known)
        fitting = [layout for layout in layouts if np.isfinite(self.value(layout))]
        if self.is_small(evaluations):
            kept = sorted(fitting, key=self.value)
        else:
            kept = _different(sorted(fitting, key=self.expected), self.problem.pool, KEPT)
        return [self.candidate(layout) for layout in kept]

    def candidate(self, layout: Layout) -> Candidate:
        """A layout with its floors."""
        pipeline_s, floor_s = bound_parts(self.problem, layout)
        exact = is_exact(self.problem)
        return Candidate(
            group=self.group,
            layout=layout,
            floor=self.value(layout),
            floor_s=floor_s,
            pipeline_s=pipeline_s,
            expected_s=expected_s(self.problem, layout) if exact else floor_s,
            is_exact=exact,
        )

    def _all_layouts(self) -> Iterator[Layout]:
        problem = self.problem
        for layout in all_layouts(problem.pool, problem.num_layers, problem.freedom, problem.stated):
            yield layout if problem.freedom.rule is None else self._by_rule(layout.devices)

    def _by_rule(self, devices: tuple[int, ...]) -> Layout:
        return Layout(devices=devices, layers=layers_by_rule(self.problem, devices))

    def _search(self, evaluations: int, seed: int) -> None:
        """A third of the evaluations on each of: the best starts, the best of these, and that by exact values.

        Where exact steps are compiled, the best starts share half of them, the best of these gets the other half.
        """
        problem = self.problem
        starts = sorted(dict.fromkeys(self.starts()), key=self.value)[:STARTS]
        if not starts:
            return
        if is_exact(problem) and problem.freedom.rule is None:
            steps = compiled_steps(evaluations, ranks=problem.most_ranks, size=problem.size) // 2
            found = [self._annealed(start, steps // STARTS, seed + number, WARM) for number, start in enumerate(starts)]
            self._annealed(min(found, key=self.expected), steps, seed + STARTS, COOL)
            return
        third = evaluations // 3
        found = [
            local_search(problem, self._floor, start, steps=third // STARTS, seed=seed, heat=HEAT) for start in starts
        ]
        best = local_search(problem, self._floor, min(found, key=self.value), steps=third, seed=seed + 1)
        if is_exact(problem):
            local_search(problem, self._screened, best, steps=third // EXACT_COST, seed=seed + 2)
        else:
            local_search(problem, self._floor, best, steps=third, seed=seed + 2)

    def _annealed(self, start: Layout, steps: int, seed: int, heat: float) -> Layout:
        """The best that the compiled search finds from a layout; its improvements become known."""
        by_price = self.objective is Objective.COST_PER_TOKEN
        found = annealed(self.problem, start, by_price=by_price, steps=steps, heat=heat, seed=seed)
        self._steps.append(steps)
        return min([start, *found], key=self.expected)

    def _floor(self, layout: Layout, limit: float) -> float:
        return self.value(layout)

    def _screened(self, layout: Layout, limit: float) -> float:
        """The expected value, where the floor is not already reason enough to refuse."""
        floor = self.value(layout)
        return floor if floor > limit else self.expected(layout)

    def starts(self) -> Iterator[Layout]:
        """Layouts to begin from: the exact least bottleneck, and sets of items with little fill or a low price."""
        problem = self.problem
        if not problem.freedom.devices:
            yield self._by_rule(problem.devices)
            return
        if problem.layers is not None and not problem.freedom.layers:
            yield _devices_for(problem, problem.layers)
            return
        for layout in list(self._one_chunk_starts()):
            if problem.freedom.chunks == 1 and problem.freedom.rule is None:
                yield layout
            elif len(layout.devices) * problem.freedom.chunks <= problem.num_layers:
                yield self._by_rule(layout.devices)

    def _one_chunk_starts(self) -> Iterator[Layout]:
        choices, pool = self.bounds.choices, self.problem.pool
        if self.bounds.bottleneck is not None:
            exact = self.bounds.bottleneck.layout
            yield place(zip(exact.kinds, exact.layers, strict=True), pool)
        for pick in islice(choices.picks(), PICKS):
            yield layout_of_pick(pick, choices.items, pool)
        if self.objective in (Objective.COST_PER_TOKEN, Objective.PARETO):
            limits = choices.bottlenecks[np.unique(np.linspace(0, len(choices.bottlenecks) - 1, PICKS).astype(int))]
            cheapest = choices.cheapest(limits)
            for index in np.flatnonzero(np.isfinite(cheapest.values)).tolist():
                yield layout_of_pick(cheapest.pick(index), choices.items, pool)


def _devices_for(problem: LayoutProblem, layers: tuple[int, ...]) -> Layout:
    """Stated layers: the most layers for the fastest devices."""
    blocks, pool = problem.blocks, problem.pool
    ranks = len(layers) // problem.freedom.chunks
    per_rank = [sum(layers[rank :: max(ranks, 1)]) for rank in range(ranks)]
    one_layer = blocks.whole[:, 1, 2] if problem.num_layers > 2 else blocks.whole[:, 0, -1]
    fast_first = sorted(range(len(pool.ids)), key=lambda device: float(one_layer[pool.kind_of[device]]))
    devices = [0] * ranks
    for device, rank in zip(fast_first, sorted(range(ranks), key=lambda rank: -per_rank[rank]), strict=False):
        devices[rank] = device
    return Layout(devices=tuple(devices), layers=layers)


def _different(layouts: list[Layout], pool: Pool, most: int) -> list[Layout]:
    """The first so many that differ in the kinds of their devices, or in their layers, and not in names alone."""
    seen: dict[tuple[tuple[int, ...], tuple[int, ...]], Layout] = {}
    for layout in layouts:
        key = (tuple(pool.kind_of[list(layout.devices)].tolist()), layout.layers)
        seen.setdefault(key, layout)
        if len(seen) == most:
            break
    return list(seen.values())
