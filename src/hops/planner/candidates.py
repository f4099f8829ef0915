"""The layouts of one group that are worth a simulation: exact starts, local search, or all of them if they are few."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import numpy as np

from hops.build.costs import host_gap
from hops.model.partition import Partition
from hops.planner.anneal import annealed
from hops.planner.block_costs import MessageTimes, Tables
from hops.planner.bottleneck import Bottleneck, Problem, least_bottleneck
from hops.planner.bound import Choices, Items, by_place
from hops.planner.budget import compiled_steps
from hops.planner.layout import all_layouts, how_many, layout_of_pick, place
from hops.planner.layout_bound import Layout, LayoutBound
from hops.planner.local_search import Freedom, improve
from hops.planner.problem import Group, IntArray, Objective, Pool, ScheduleFamily
from hops.spec.open import OpenSpec

STARTS = 3  # that the local search begins from
KEPT = 12  # layouts of a group that go on
PICKS = 12
HEAT = 0.01  # of the search from the starts; later searches go downhill
WARM, COOL = 0.003, 0.001  # of compiled searches, which take many more steps
EXACT_COST = 2  # an exact search step costs as much as so many others, as most are refused by their floor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A layout of a group. No run of it can beat `floor_s`, nor `floor`, the same in the objective's unit.

    `pipeline_s` is the part of the floor up to the last backward. `expected_s` is what its run takes but for shared
    links and jitter, if `is_exact`, else the floor.
    """

    group: Group
    layout: Layout
    floor: float
    floor_s: float
    pipeline_s: float
    expected_s: float
    is_exact: bool


@dataclass(frozen=True, kw_only=True)
class Search:
    """The search in one group."""

    opened: OpenSpec
    group: Group
    pool: Pool
    tables: Tables
    ways: MessageTimes
    objective: Objective
    _known: dict[Layout, float] = field(default_factory=dict, repr=False)
    _expected: dict[Layout, float] = field(default_factory=dict, repr=False)
    _steps: list[int] = field(default_factory=list, repr=False)  # of compiled searches

    @cached_property
    def floor(self) -> LayoutBound:
        group = self.group
        return LayoutBound(
            spec=group.spec,
            pool=self.pool,
            tables=self.tables,
            ways=self.ways,
            family=group.family,
            size=group.size,
            chunks=group.chunks,
            v_shaped=group.v_shaped,
        )

    @cached_property
    def counts(self) -> IntArray:
        """Devices of each kind that may be used."""
        if self.opened.placement:
            return self.pool.counts
        return np.bincount(self.pool.kind_of[list(self.stated_devices)], minlength=len(self.pool.kinds)).astype(
            np.int64
        )

    @cached_property
    def stated_devices(self) -> tuple[int, ...]:
        return tuple(self.pool.ids.index(each) for each in self.group.spec.hardware.ranks())

    @cached_property
    def problem(self) -> Problem:
        """The bottleneck's problem, with the microbatches in flight that the family is certain of, by position."""
        tables, size = self.tables, self.group.size
        longest = self._most_ranks
        flight = {
            ScheduleFamily.ONE_F_ONE_B: np.minimum(np.arange(1, longest + 1), size),
            ScheduleFamily.GPIPE: np.array([size]),
        }.get(self.group.family, np.array([1]))
        needed = (tables.static[None] + flight[:, None, None] * tables.activation[None]).astype(np.int64)
        return Problem(seconds=tables.whole, needed=needed, memory=self.pool.memory_bytes, counts=self.counts)

    @cached_property
    def bottleneck(self) -> Bottleneck | None:
        """None if nothing fits. For several chunks it is only a start: what it proves is for one stage per rank."""
        return least_bottleneck(self.problem)

    @cached_property
    def choices(self) -> Choices:
        """The bound over all choices."""
        group, spec = self.group, self.group.spec
        hop_s = self.ways.nearest_s(self.pool)
        items = Items.of(self.tables, self.pool, self.counts, hop_s)
        found = self.bottleneck
        exact = found is not None and found.exact and group.chunks == 1
        least = found.seconds if exact and found is not None else self._by_capacity()
        return Choices(
            items=items,
            family=group.family,
            size=group.size,
            least=least,
            gap_s=host_gap(self.pool.known, 1) if spec.optimizer.enabled else 0.0,
            end_s=self._least_end(),
            tied_s=self._least_tied(),
            ends_together=spec.optimizer.enabled and spec.optimizer.synchronized,
            chunked=group.chunks > 1,
        )

    def _by_capacity(self) -> float:
        """The least time within which all devices together could hold the layers, whatever else they would need."""
        tables = self.tables
        fits = tables.static[None] <= self.pool.memory_bytes[:, None, None]
        per_length = by_place(np.where(fits, tables.whole, np.inf)).min(axis=1)
        times = np.unique(per_length[np.isfinite(per_length)])
        length = np.arange(tables.num_layers + 1)
        low, high = 0, len(times) - 1
        while low < high:
            middle = (low + high) // 2
            most = np.where(per_length <= times[middle], length, 0).max(axis=1)
            low, high = (low, middle) if (most * self.counts).sum() >= tables.num_layers else (middle + 1, high)
        return float(times[low]) if len(times) else 0.0

    def _least_end(self) -> float:
        """The step that every iteration needs: where all ranks wait, some hold the average share of layers at least."""
        section = self.group.spec.optimizer
        if not section.enabled:
            return 0.0
        available = max(1, int(self.counts.sum()))
        share = -(-self.tables.num_layers // available) if section.synchronized and self.group.chunks == 1 else 1
        steps = by_place(self.tables.step)[:, :, share:]
        return float(steps.min())

    def _least_tied(self) -> float:
        """Of two devices; 0 where the reduction may begin before all backwards have ended."""
        if self.group.family is ScheduleFamily.ANY or self.group.chunks > 1 or len(self.pool.ids) == 1:
            return 0.0
        tied = self.floor.tied
        return float(tied[~np.eye(len(tied), dtype=bool)].min())

    @property
    def fits(self) -> bool:
        """Whether anything may fit: with several chunks, what is known of one stage per rank does not decide."""
        return self.group.chunks > 1 or self.bottleneck is not None

    @property
    def fit_is_certain(self) -> bool:
        """Whether a layout that is left out for its memory fits under no schedule: in V schedules that is estimated."""
        return not self.group.v_shaped

    @property
    def num_valued(self) -> int:
        """Layouts valued so far."""
        return len(self._known) + sum(self._steps)

    def bound(self) -> float:
        """No plan of the group has a better value."""
        seconds = self.choices.seconds
        if self.objective is Objective.COST_PER_TOKEN:
            return self.objective.of(1.0, samples=self.group.samples, price_per_hour=self.choices.price_seconds)
        return self.objective.of(seconds, samples=self.group.samples, price_per_hour=0.0)

    def value(self, layout: Layout) -> float:
        """The floor of a layout in the objective's unit."""
        if layout not in self._known:
            price = float(self.pool.prices[self.pool.kind_of[list(layout.devices)]].sum())
            self._known[layout] = self.objective.of(
                self.floor.seconds(layout), samples=self.group.samples, price_per_hour=price
            )
        return self._known[layout]

    def expected(self, layout: Layout) -> float:
        """The value to expect of a layout: exact but for shared links where that is known, else the floor."""
        if not self.floor.is_exact:
            return self.value(layout)
        if layout not in self._expected:
            price = float(self.pool.prices[self.pool.kind_of[list(layout.devices)]].sum())
            self._expected[layout] = self.objective.of(
                self.floor.exact(layout), samples=self.group.samples, price_per_hour=price
            )
        return self._expected[layout]

    @cached_property
    def freedom(self) -> Freedom:
        opened = self.opened
        stated = self.group.spec.pipeline.partition
        rule = None if opened.partition or isinstance(stated, tuple) else self._rule(str(stated))
        return Freedom(
            devices=opened.placement,
            layers=opened.partition,
            subset=opened.placement and not isinstance(stated, tuple),
            chunks=self.group.chunks,
            rule=rule,
        )

    def _rule(self, stated: str) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
        def layers(devices: tuple[int, ...]) -> tuple[int, ...]:
            if stated == "even":
                return Partition.even(self.tables.num_layers, len(devices) * self.group.chunks).layers
            return self.balanced(devices)

        return layers

    def balanced(self, devices: tuple[int, ...]) -> tuple[int, ...]:
        """The layers that `partition: balanced` gives these devices."""
        rank_of = self.floor.shape(len(devices)).rank_of_stage
        kinds = self.pool.kind_of[[devices[rank] for rank in rank_of]]
        table = (self.tables.forward + self.tables.fused)[kinds]
        return Partition.balanced_by_table(table).layers

    def is_small(self, evaluations: int) -> bool:
        """Whether all layouts can be valued."""
        return how_many(self.pool, self.tables.num_layers, self.freedom, self._first_start()) <= evaluations

    def candidates(self, evaluations: int, seed: int) -> list[Candidate]:
        """The best layouts, best first; all of them, if they are few enough."""
        if not self.fits:
            return []
        if self.is_small(evaluations):
            layouts = list(all_layouts(self.pool, self.tables.num_layers, self.freedom, self._first_start()))
        else:
            self._search(evaluations, seed)
            layouts = list(self._expected) or list(self._known)
        fitting = [layout for layout in layouts if np.isfinite(self.value(layout))]
        if self.is_small(evaluations):
            kept = sorted(fitting, key=self.value)
        else:
            kept = _different(sorted(fitting, key=self.expected), self.pool, KEPT)
        return [self.candidate(layout) for layout in kept]

    def _search(self, evaluations: int, seed: int) -> None:
        """A third of the evaluations on each of: the best starts, the best of these, and that by exact values.

        Where exact steps are compiled, the best starts share half of them, the best of these gets the other half.
        """
        starts = sorted(dict.fromkeys(self.starts()), key=self.value)[:STARTS]
        if self.floor.is_exact and self.freedom.compiled_moves:
            steps = compiled_steps(evaluations, ranks=self._most_ranks, size=self.group.size) // 2
            seeds = range(seed, seed + STARTS)
            found = [
                self._annealed(start, steps // STARTS, each, WARM) for start, each in zip(starts, seeds, strict=False)
            ]
            if found:
                self._annealed(min(found, key=self.expected), steps, seed + STARTS, COOL)
            return
        found = [self._improved(start, evaluations // 3 // STARTS, seed, HEAT) for start in starts]
        if not found:
            return
        best = self._improved(min(found, key=self.value), evaluations // 3, seed + 1)
        if self.floor.is_exact:
            tries = evaluations // 3 // EXACT_COST
            improve(best, self._screened(), self.pool, self.freedom, evaluations=tries, seed=seed + 2)
        else:
            self._improved(best, evaluations // 3, seed + 2)

    @property
    def _most_ranks(self) -> int:
        return min(int(self.counts.sum()), self.tables.num_layers)

    def _annealed(self, start: Layout, steps: int, seed: int, heat: float) -> Layout:
        """The best that the compiled search finds from a layout; its improvements become known."""
        by_price = self.objective is Objective.COST_PER_TOKEN
        prices = self.pool.prices[self.pool.kind_of] if by_price else None
        moves = self.freedom.compiled_moves
        found = annealed(self.floor, start, moves=moves, prices=prices, steps=steps, heat=heat, seed=seed)
        self._steps.append(steps)
        return min([start, *found], key=self.expected)

    def candidate(self, layout: Layout) -> Candidate:
        """A layout with its floors."""
        pipeline_s, floor_s = self.floor.parts(layout)
        value = self.value(layout)
        exact = self.floor.is_exact
        return Candidate(
            group=self.group,
            layout=layout,
            floor=value,
            floor_s=floor_s,
            pipeline_s=pipeline_s,
            expected_s=self.floor.exact(layout) if exact else floor_s,
            is_exact=exact,
        )

    def _screened(self) -> Callable[[Layout], float]:
        """Expected values for a search that goes downhill: a floor above the best so far is reason enough to refuse."""
        best = float("inf")

        def value(layout: Layout) -> float:
            nonlocal best
            floor = self.value(layout)
            if floor > best:
                return floor
            expected = self.expected(layout)
            best = min(best, expected)
            return expected

        return value

    def _improved(self, start: Layout, evaluations: int, seed: int, heat: float = 0.0) -> Layout:
        found = improve(start, self.value, self.pool, self.freedom, evaluations=evaluations, seed=seed, heat=heat)
        return found.layout

    def _first_start(self) -> Layout:
        """The layout that the spec states, as far as it states one."""
        stated = self.group.spec.pipeline.partition
        devices = self.stated_devices
        if isinstance(stated, tuple):
            return Layout(devices=devices, layers=stated)
        return Layout(devices=devices, layers=(self.tables.num_layers,) * len(devices))

    def starts(self) -> Iterator[Layout]:
        """Layouts to begin from: the exact least bottleneck, and sets of items with little fill or a low price."""
        freedom = self.freedom
        stated = self.group.spec.pipeline.partition
        if not freedom.devices:
            yield Layout(devices=self.stated_devices, layers=self._layers_on(self.stated_devices))
            return
        if isinstance(stated, tuple) and not self.opened.partition:
            yield self._devices_for(stated)
            return
        one_chunk = list(self._one_chunk_starts())
        for layout in one_chunk:
            if self.group.chunks == 1 and freedom.rule is None:
                yield layout
            elif len(layout.devices) * self.group.chunks <= self.tables.num_layers:
                yield Layout(devices=layout.devices, layers=self._layers_on(layout.devices))

    def _layers_on(self, devices: tuple[int, ...]) -> tuple[int, ...]:
        rule = self.freedom.rule
        return self.balanced(devices) if rule is None else rule(devices)

    def _one_chunk_starts(self) -> Iterator[Layout]:
        choices = self.choices
        if self.bottleneck is not None:
            exact = self.bottleneck.layout
            yield place(zip(exact.kinds, exact.layers, strict=True), self.pool)
        for pick in islice(choices.picks(), PICKS):
            yield layout_of_pick(pick, choices.items, self.pool)
        if self.objective in (Objective.COST_PER_TOKEN, Objective.PARETO):
            limits = choices.bottlenecks[np.unique(np.linspace(0, len(choices.bottlenecks) - 1, PICKS).astype(int))]
            cheapest = choices.cheapest(limits)
            for index in np.flatnonzero(np.isfinite(cheapest.values)).tolist():
                yield layout_of_pick(cheapest.pick(index), choices.items, self.pool)

    def _devices_for(self, layers: tuple[int, ...]) -> Layout:
        """Stated layers: the most layers for the fastest devices."""
        ranks = len(layers) // self.group.chunks
        per_rank = [sum(layers[rank :: max(ranks, 1)]) for rank in range(ranks)]
        one_layer = self.tables.whole[:, 1, 2] if self.tables.num_layers > 2 else self.tables.whole[:, 0, -1]
        fast_first = sorted(range(len(self.pool.ids)), key=lambda device: float(one_layer[self.pool.kind_of[device]]))
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
