"""A bound over all choices: no placement and partition, however chosen, can beat it under a family of schedules.

A device of some kind with some layers is an item: it takes c = f + b (b the cheaper form of the backward), and holds
the embedding, the head, both or neither. A plan is a set of items, at most as many of a kind as there are devices,
whose layers sum to the model's. Where links, memory or order could only cost time they are left out: the bound holds.

1F1B with P < m stages, the slowest one C. Of the stages that take g <= C or more, F being at most the part r of that,
K are not the first stage. The closed form in `floor`, for the slowest stage and for the last of those K, comes to

    m C,    (m - 1) C + sum over stages of (2 c - C),    (m - 1 + r) g + K r g + sum over stages of (c - r g)

at least, and so to any mixture of the last two. Each stage adds its message down and back, which is at least what the
nearest neighbour of its kind costs, shared by two. For each C, g and mixture the sum is least for a knapsack over items
that take no longer than C, solved exactly. The bound is the least over C of the largest over g and mixtures.
With m stages or more it is the sum over stages of c, messages included, and (m - 1) b of the slowest.

Any schedule: the stages as slow as c or slower take their turn in some order, so that the last of them to begin waits
for the F of the others: the sum of f over stages with time >= c is at most T - m c + f. For a T, each c and each price
lambda on that sum, the layers that devices can hold are at most lambda (T - m c + f) + the sum over devices of the best
item by (layers - lambda f). If this is less than the model's layers for some c and lambda, T is impossible.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush

import numpy as np

from hops.arrays import FloatArray, IntArray
from hops.planner.block_costs import BlockCosts
from hops.planner.knapsack import FIRST, INNER, LAST, WHOLE, Knapsack, Pick
from hops.planner.problem import Pool, ScheduleFamily

BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
MOST_CANDIDATES = 48
BISECTIONS = 24
PRICES = 48
MIXTURES = (0.0, 0.25, 0.5, 0.75, 1.0)  # those between bind on no instance tried, but their sets are good starts
NEARLY = (1.0, 0.995, 0.97)  # g as parts of C


@dataclass(frozen=True, kw_only=True)
class Items:
    """What devices of each kind could do. Arrays have the shape (kinds, 4 places, layers + 1); infinite: impossible.

    Places are inner, first, last and whole. Of blocks of one length the cheapest counts, so that for layers that differ
    the bound holds as well.
    """

    whole: FloatArray
    forward: FloatArray
    step: FloatArray
    price: FloatArray
    hop_s: FloatArray
    counts: IntArray

    @classmethod
    def of(cls, blocks: BlockCosts, pool: Pool, counts: IntArray, hop_s: FloatArray) -> "Items":
        """Items that fit into memory with one microbatch in flight.

        `hop_s`: per kind, of a message to its nearest neighbour.
        """
        memory, prices = pool.memory_bytes, pool.prices
        fits = (blocks.static + blocks.activation)[None] <= memory[:, None, None]
        whole = by_place(np.where(fits, blocks.whole, np.inf))
        return cls(
            whole=whole,
            forward=by_place(np.where(fits, blocks.forward, np.inf)),
            step=by_place(blocks.step + blocks.norm),
            hop_s=hop_s,
            price=np.where(np.isfinite(whole), prices[:, None, None], np.inf),
            counts=counts,
        )

    @property
    def num_layers(self) -> int:
        return int(self.whole.shape[2]) - 1


def by_place(table: FloatArray) -> FloatArray:
    """The cheapest block of each place and length: (kinds, layers + 1, layers + 1) -> (kinds, 4, layers + 1)."""
    kinds, size, _ = table.shape
    layers = size - 1
    places = np.full((kinds, 4, size), np.inf)
    for length in range(1, size):
        if length <= layers - 2:
            inner = [table[:, start, start + length] for start in range(1, layers - length)]
            places[:, INNER, length] = np.min(inner, axis=0)
        if length < layers:
            places[:, FIRST, length] = table[:, 0, length]
            places[:, LAST, length] = table[:, layers - length, layers]
    places[:, WHOLE, layers] = table[:, 0, layers]
    return places


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The bound over all choices of one family, its terms by bottleneck, and sets of items that are good for each.

    Attributes:
        items: what devices can do.
        family, size: of schedules, and microbatches per iteration.
        least: the exact least bottleneck, below which nothing fits.
        gap_s: of the host, in every iteration.
        end_s: the optimizer step that every iteration needs at least.
        tied_s: of the tied-embedding reduction at least, where it cannot begin before the pipeline has ended.
        ends_together: whether that includes the optimizer step of the slowest stage.
        chunked: whether ranks have several stages, of which less is known: their own work alone.
    """

    items: Items
    family: ScheduleFamily
    size: int
    least: float
    gap_s: float
    end_s: float
    tied_s: float = 0.0
    ends_together: bool = True
    chunked: bool = False

    @cached_property
    def bottlenecks(self) -> FloatArray:
        """The times that the slowest stage can have, from the least on."""
        times = np.unique(self.items.whole)
        return times[np.isfinite(times) & (times >= self.least * (1 - 1e-12))]

    @cached_property
    def floors(self) -> FloatArray:
        """Least seconds of an iteration whose slowest stage takes bottlenecks[k], for as many k as can matter."""
        loads = self.size * self.bottlenecks
        if self.family is ScheduleFamily.ONE_F_ONE_B:
            fill = self._fill.reshape(-1, len(MIXTURES) * len(NEARLY)).max(axis=1)
            few = np.maximum(loads[: len(fill)], fill)
            if np.isinf(self._crowded):
                return np.asarray(few + self.ends[: len(fill)])
            many = np.maximum(self._crowded, self._path(self.bottlenecks[: len(fill)]))
            return np.asarray(np.minimum(few, many) + self.ends[: len(fill)])
        return np.asarray(np.maximum(loads, self.any_order) + self.ends)

    @property
    def _crowded(self) -> float:
        """Least seconds of the pipeline with m stages or more, where what is said of P < m does not hold.

        The slowest of so many devices has a layer, too. Infinite if there are not so many devices or layers.
        """
        one_layer = self.items.whole[:, :, 1].min(axis=1)
        each = np.sort(np.repeat(one_layer, self.items.counts))
        if min(len(each), self.items.num_layers) < self.size:
            return float("inf")
        return float(self.size * each[self.size - 1])

    def _path(self, limits: FloatArray) -> FloatArray:
        """Least seconds of 1F1B with any number of stages: a microbatch's whole way, and the slowest's other backwards.

        Both sums of `floor` come to H + c + R + (m - 1) b at least.
        """
        items = self.items
        way = items.whole + 2 * items.hop_s[:, None, None]
        within = items.whole[None] <= limits[:, None, None, None]
        least = Knapsack(np.where(within, way[None], np.inf), items.counts).values
        slowest = [items.whole == limit for limit in limits]
        backward = [float((items.whole[those] - items.forward[those]).min()) for those in slowest]
        return np.asarray(least - 2 * items.hop_s.max() + (self.size - 1) * np.array(backward))

    @cached_property
    def ends(self) -> FloatArray:
        """What follows the pipeline, per bottleneck: where all ranks wait, the step of the slowest stage at least."""
        if not self.ends_together:
            return np.full(len(self.bottlenecks), self.gap_s + self.end_s)
        steps = [float(self.items.step[self.items.whole == limit].min()) for limit in self.bottlenecks]
        return np.asarray(self.gap_s + np.maximum(self.end_s, np.array(steps)))

    @cached_property
    def filled(self) -> Knapsack:
        """Sets with the least fill, for each bottleneck that matters, each g and each mixture."""
        return self._least_fill(self._weightings)

    def _least_fill(self, weightings: tuple[FloatArray, ...]) -> Knapsack:
        limits, nearly, mixture, rest = (column[:, None, None, None] for column in weightings)
        whole, hop_s = self.items.whole[None], self.items.hop_s[None, :, None, None]
        waits = whole * (1 + mixture) - limits * mixture - nearly * rest * (1 - mixture) + 2 * hop_s
        behind_first = np.isin(np.arange(4), (INNER, LAST))[None, None, :, None]
        waits = waits + np.where((whole >= nearly) & behind_first, (1 - mixture) * rest * nearly, 0.0)
        return Knapsack(np.where(whole <= limits, waits, np.inf), self.items.counts)

    @cached_property
    def _weightings(self) -> tuple[FloatArray, ...]:
        """C, g, mixture and r of every weighting of `filled`.

        A bottleneck whose microbatches alone take longer than all with the first one cannot have the least floor.
        """
        first = self._weighted(self.bottlenecks[:1])
        enough = float(self._fill_of(first, self._least_fill(first)).max()) + float(self.ends[0])
        least_end = self.gap_s + self.end_s
        matter = int((self.size * self.bottlenecks + least_end <= enough).sum())
        return self._weighted(self.bottlenecks[: min(max(matter, 1), MOST_CANDIDATES)])

    def _weighted(self, limits: FloatArray) -> tuple[FloatArray, ...]:
        whole, forward = self.items.whole, self.items.forward
        columns: list[tuple[float, float, float, float]] = []
        for limit in limits.tolist():
            for part in NEARLY:
                slow = (whole >= part * limit) & (whole <= limit)
                rest = float((forward[slow] / whole[slow]).max())
                columns += [(limit, part * limit, mixture, rest) for mixture in MIXTURES]
        return tuple(np.array(columns).T)

    @property
    def _fill(self) -> FloatArray:
        """Least seconds of the pipeline, per weighting of `filled`."""
        return self._fill_of(self._weightings, self.filled)

    def _fill_of(self, weightings: tuple[FloatArray, ...], filled: Knapsack) -> FloatArray:
        limits, nearly, mixture, rest = weightings
        own = (self.size - 1) * limits * mixture + (self.size - 1 + rest) * nearly * (1 - mixture)
        return np.asarray(own + filled.values - 2 * self.items.hop_s.max())

    def picks(self) -> Iterator[Pick]:
        """Sets that are good starts, the most promising first."""
        values = self._fill.reshape(-1, len(MIXTURES) * len(NEARLY))
        hardest = values.argmax(axis=1)  # the g and the mixture that bind
        for limit in np.argsort(values.max(axis=1), kind="stable").tolist():
            if np.isfinite(values[limit]).all():
                yield self.filled.pick(limit * values.shape[1] + int(hardest[limit]))

    def cheapest(self, limits: FloatArray) -> Knapsack:
        """Sets with the least price per hour among items that take at most each limit."""
        allowed = self.items.whole[None] <= limits[:, None, None, None]
        return Knapsack(np.where(allowed, self.items.price[None], np.inf), self.items.counts)

    @property
    def seconds(self) -> float:
        """No plan has a shorter iteration."""
        if self.chunked:
            return self.size * self.least + self.gap_s + self.end_s
        floors = self.floors
        later = self.bottlenecks[len(floors) :]
        beyond = self.size * float(later[0]) + self.gap_s + self.end_s if len(later) else np.inf
        alone = self.size * float(self.items.whole[:, WHOLE].min()) + self.gap_s + self.end_s
        return min(alone, self.tied_s + float(min(floors.min(), beyond)))

    @cached_property
    def price_seconds(self) -> float:
        """No plan has a smaller product of iteration seconds and price per hour of its devices.

        Between two bottlenecks the price is at least that of the later, the time at least that of the earlier. The
        interval with the least such product is halved until nothing is left between.
        """
        if self.chunked:
            return self._price_of_layers()
        last = len(self.bottlenecks) - 1
        known: dict[int, float] = {}

        def price(index: int) -> float:
            if index not in known:
                known[index] = float(self.cheapest(self.bottlenecks[index : index + 1]).values[0])
            return known[index]

        def time(index: int) -> float:
            return max(self.size * float(self.bottlenecks[index]) + self.gap_s + self.end_s, self.seconds)

        heap = [(time(0) * price(last), 0, last)]  # the product, and bottlenecks first to last
        for _ in range(MOST_CANDIDATES):
            product, first, end = heap[0]
            if first == end:
                return product
            heappop(heap)
            middle = (first + end) // 2
            heappush(heap, (time(first) * price(middle), first, middle))
            heappush(heap, (time(middle + 1) * price(end), middle + 1, end))
        return heap[0][0]

    def _price_of_layers(self) -> float:
        """A device with n layers is paid for m c at least, so that a layer costs at least m x price x c / n."""
        items = self.items
        per_layer = items.price * items.whole / np.maximum(np.arange(items.num_layers + 1), 1)
        return float(self.size * items.num_layers * per_layer.min())

    @cached_property
    def any_order(self) -> float:
        """Least seconds of the pipeline under any schedule, by bisection; see the head of this file."""
        low = self.size * self.least
        high = low + float(np.where(np.isfinite(self.items.forward), self.items.forward, 0).max()) * len(
            self.items.counts
        ) * max(1, int(self.items.counts.max()))
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            if self._impossible(middle):
                low = middle
            else:
                high = middle
        return low

    def _impossible(self, seconds: float) -> bool:
        items = self.items
        forward = items.forward + items.hop_s.min()
        limit = seconds / self.size
        allowed = items.whole <= limit
        if not allowed[:, INNER].any() and not allowed[:, WHOLE].any() and items.num_layers > 2:
            return True
        times = np.unique(items.whole[allowed])[-PRICES:]
        length = np.arange(items.num_layers + 1.0)
        slow = allowed & (items.whole[None] >= times[:, None, None, None] * (1 - 1e-12))  # by time, kind, place, length
        prices = _prices(slow[:, :, INNER], allowed[:, INNER], forward[:, INNER])
        largest = np.where(slow, forward, 0.0).max(axis=(1, 2, 3))
        paid = np.where(slow, forward[None], 0.0)[None] * prices[:, None, None, None, None]
        worth = np.where(allowed, length - paid, -np.inf).max(axis=4)  # by price, time, kind, place
        inner = np.maximum(worth[..., INNER], 0.0)
        ends = np.where(np.isfinite(worth[..., [FIRST, LAST]]), worth[..., [FIRST, LAST]] - inner[..., None], -np.inf)
        held = (inner * items.counts).sum(axis=2) + ends.max(axis=2).sum(axis=2)
        alone = np.where(allowed[:, WHOLE, items.num_layers].any(), items.num_layers, -np.inf)
        budget = prices[:, None] * (seconds - self.size * times + largest)[None]
        return bool((np.maximum(held, alone) + budget < items.num_layers - 1e-9).any())


def _prices(slow: BoolArray, allowed: BoolArray, forward: FloatArray) -> FloatArray:
    """Prices of a second of F in layers, at which a slow item is worth as much as the best that is not slow.

    `slow` has the shape (times, kinds, layers + 1), the others (kinds, layers + 1).
    """
    length = np.arange(forward.shape[-1])
    fast = np.where(allowed & ~slow, length, 0).max(axis=2)
    gained = length - fast[:, :, None]
    rates = np.unique((gained / np.where(slow, forward, 1.0))[slow & (gained > 0)])
    return rates[np.linspace(0, len(rates) - 1, min(PRICES, len(rates))).astype(int)] if len(rates) else rates
