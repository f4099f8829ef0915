"""Turns a run into what the compiled engine reads: integer tables, draws, fault windows, and an empty state."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import inf, isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hops.cost.base import CostModel
from hops.engine.draws import draw_delays, draw_durations, draw_end, draw_sizes
from hops.engine.fault_windows import FaultWindows, WindowEdge
from hops.engine.records import (
    ALL_UP,
    AT_TIED,
    AWAKE,
    BEHIND_LAST,
    BRING,
    CLOSES,
    CLOSES_COUPLE,
    DELAY_BY_ACTION,
    DURATION_BY_ACTION,
    END_HIGH,
    END_LOW,
    ENDLESS,
    FEEDER,
    FIRST,
    FIRST_HOP,
    FIRST_TRANSFER,
    FOLLOWING,
    GRAD_NS,
    HELD,
    KIND,
    LAST_HOP,
    LAST_OFFER,
    LINK_BREAKS,
    LINK_CHANGES,
    LINK_RETURNS,
    MICROBATCH,
    NEED,
    NONE,
    NUM_CLOCK,
    NUM_OF_RANK,
    OFFERS,
    OPENS,
    OPENS_COUPLE,
    OPTIMIZER_NS,
    OWNER,
    PAIR,
    POSITION,
    POST_AT,
    POSTS_HIGH,
    POSTS_LOW,
    RANK_BREAKS,
    RANK_RETURNS,
    ROUTE_HIGH,
    ROUTE_LOW,
    SHARED_LOW,
    SINGLE,
    SIZE_BY_ACTION,
    STANDS_AT,
    TARGET,
    TASK,
    WOKEN,
    WOKEN_EVEN,
    Drawn,
    Floats,
    Ints,
    Rows,
    Shorts,
    State,
    Tables,
    Windows,
)  # fmt: skip
from hops.engine.settings import P2P, RunSettings
from hops.faults.plan import FOREVER
from hops.hardware.network import Network
from hops.program.action import NUM_OPS, Op
from hops.program.lowering import Lowered
from hops.program.postings import postings
from hops.program.program import Program
from hops.program.shape import Shape
from hops.program.wiring import neighbours
from hops.recent import Recent
from hops.units import NS_PER_S

Links = tuple[int, ...]


def fixed(values: Sequence[object] | NDArray[np.generic]) -> Ints:
    """A read-only array of integers: a kernel is compiled anew for arrays that differ in this."""
    array: Ints = np.ascontiguousarray(values, dtype=np.int64)
    array.setflags(write=False)
    return array


def fixed_floats(values: Sequence[float]) -> Floats:
    """The same of floats."""
    array: Floats = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


NO_FLOATS = fixed_floats([])


class Inputs(NamedTuple):
    """What a run of a program is made of.

    Attributes:
        actions: as in `Tables`, all that is kept of the lowered program: a trace leaves little room beside it.
        posts: as in `Tables`.
        num_messages: that the lowered program numbers.
    """

    program: Program
    actions: Shorts
    posts: Shorts
    num_messages: int
    costs: CostModel
    network: Network
    settings: RunSettings

    @classmethod
    def of(
        cls, program: Program, couples: Program, low: Lowered, costs: CostModel, network: Network, settings: RunSettings
    ) -> "Inputs":
        """Of a program; `low` is `couples`, the same with what stands between two calls as entries, lowered."""
        _, feeder, target = ends_of(program.shape)
        actions, posts = _actions(program, couples, low, feeder, target), _posts(couples, low, settings)
        return cls(program, actions, posts, len(low.receiver), costs, network, settings)


class _OfNetwork(NamedTuple):
    """What tables hold of network and faults, whatever the program; fields as in Tables.

    Attributes:
        ends: END_LOW and END_HIGH of `of_rank`.
    """

    kinds: Ints
    crossed: Ints
    ends: Ints
    full: Floats
    most_hops: int


_OF_NETWORKS: Recent[_OfNetwork] = Recent(64)


def make_tables(inputs: Inputs, windows: FaultWindows, *, until_stop: bool) -> Tables:
    """What does not change during the run."""
    program, actions, posts, _, _, network, settings = inputs
    shape = program.shape
    about = (network, windows)
    known = _OF_NETWORKS.of(
        about, lambda: _of_network(shape, *about), key=shape, keep=lambda _: not windows.faults.plan
    )
    timeout, fused = settings.faults.link_timeout_ns, settings.p2p is P2P.BLOCKING_FUSED
    of_rank = np.zeros((shape.num_ranks + 1, END_HIGH + 1), dtype=np.int64)
    of_rank[:, FIRST], of_rank[:-1, BEHIND_LAST] = program.first, program.first[1:]
    posted = np.searchsorted(posts[POST_AT], program.first)
    of_rank[:, POSTS_LOW], of_rank[:-1, POSTS_HIGH] = posted, posted[1:]
    of_rank[:, END_LOW:] = known.ends
    return Tables(
        actions=actions,
        kinds=known.kinds,
        crossed=known.crossed,
        of_rank=fixed(of_rank),
        posts=posts,
        full=known.full,
        most_hops=known.most_hops,
        tied_first=shape.rank_of_stage[0],
        tied_last=shape.rank_of_stage[-1],
        paired=len(actions) > PAIR,
        blocking=settings.p2p in {P2P.BLOCKING, P2P.BLOCKING_FUSED, P2P.CALLS},
        fused=fused,
        all_directions=fused and shape.num_stages > shape.num_ranks,
        posted=settings.p2p in {P2P.POSTED, P2P.CALLS},
        rest_ns=settings.host_per_action_ns,
        iterations=settings.iterations,
        until_stop=until_stop,
        timeout_ns=NONE if timeout is None else timeout,
    )


def _posts(program: Program, low: Lowered, settings: RunSettings) -> Shorts:
    table = np.empty((2, 0), dtype=np.int32)
    if settings.p2p in {P2P.POSTED, P2P.CALLS}:
        posted = postings(program, low, in_calls=settings.p2p is P2P.CALLS)
        table = np.array([low.first[posted.step], posted.message], dtype=np.int32)
    table.setflags(write=False)
    return table


def _of_network(shape: Shape, network: Network, windows: FaultWindows) -> _OfNetwork:
    owner, feeder, target = ends_of(shape)
    routes = _routes(owner, target, network)
    shared = [tuple(link for link in route if isfinite(network.links[link].bandwidth)) for route in routes]
    at_end = _crossed_at_end(windows, network, (shape.rank_of_stage[0], shape.rank_of_stage[-1]))
    crossed, ranges = _ranges(len(windows.links), [*shared, *routes, *at_end])
    kinds = len(owner)
    bandwidth = {link.name: link.bandwidth for link in network.links}
    of_kind = np.empty((kinds, ROUTE_HIGH + 1), dtype=np.int64)
    of_kind[:, OWNER], of_kind[:, FEEDER], of_kind[:, TARGET] = owner, feeder, target
    of_kind[:, SHARED_LOW:ROUTE_LOW], of_kind[:, ROUTE_LOW:] = ranges[:kinds], ranges[kinds : 2 * kinds]
    return _OfNetwork(
        kinds=fixed(of_kind),
        crossed=crossed,
        ends=ranges[2 * kinds :],
        full=fixed_floats([bandwidth.get(name, inf) / NS_PER_S for name in windows.links]),
        most_hops=max(1, *map(len, shared)),
    )


def _actions(program: Program, couples: Program, low: Lowered, feeder: Ints, target: Ints) -> NDArray[np.int32]:
    """What a rank gives itself is no message: its order sees to that."""
    kind = program.kind
    closes = np.flatnonzero(couples.closes_pair)
    table = np.empty((5 if len(closes) else 4, len(kind)), dtype=np.int32)
    table[KIND] = kind
    table[MICROBATCH] = program.microbatch
    if len(closes):
        table[PAIR] = SINGLE
        table[PAIR, closes - 1], table[PAIR, closes] = OPENS_COUPLE, CLOSES_COUPLE
        pairs = np.flatnonzero(program.closes_pair)
        table[PAIR, pairs - 1], table[PAIR, pairs] = OPENS, CLOSES
    table[NEED] = np.where(feeder[kind] == NONE, NONE, low.need)
    table[BRING] = np.where(target[kind] == NONE, NONE, low.bring)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=8)
def ends_of(shape: Shape) -> tuple[Ints, Ints, Ints]:
    """Per kind: the rank of the stage, whose output it waits for, who gets its own; NONE: nobody's, its own rank's."""
    of_stage = np.asarray(shape.rank_of_stage, dtype=np.int64)
    stage, op = np.divmod(np.arange(len(of_stage) * NUM_OPS), NUM_OPS)
    step = np.where(op == Op.F, 1, -1)
    owner = fixed(of_stage[stage])

    def other(neighbour: Ints) -> Ints:
        there = (op != Op.W) & (neighbour != NONE)
        rank = of_stage[np.where(there, neighbour, 0)]
        return np.where(there & (rank != owner), rank, NONE)

    return owner, fixed(other(neighbours(shape, stage, -step))), fixed(other(neighbours(shape, stage, step)))


def _routes(owner: Ints, target: Ints, network: Network) -> list[Links]:
    """Links that the output of each kind crosses."""
    if not network.links:
        return [()] * len(owner)
    pairs = zip(owner.tolist(), target.tolist(), strict=True)
    return [() if rank == NONE else network.routes[source, rank].links for source, rank in pairs]


def _crossed_at_end(windows: FaultWindows, network: Network, tied: tuple[int, int]) -> list[Links]:
    """Links that each rank's gradient reduction crosses, and last those of the tied reduction."""
    both = (tied, tied[::-1])
    of_tied = tuple(link for pair in both if pair in network.routes for link in network.routes[pair].links)
    return [*(windows.reduction_links or [()] * len(windows.rank_pace)), of_tied]


def _ranges(num_links: int, lists: Sequence[Links]) -> tuple[Ints, Ints]:
    """All links in order, then the lists, one after the other; and where each list begins and ends."""
    starts = np.cumsum([num_links, *map(len, lists)])
    joined = [*range(num_links), *(link for links in lists for link in links)]
    return fixed(joined), np.column_stack([starts[:-1], starts[1:]])


def make_windows(known: FaultWindows, num_links: int) -> Windows:
    """The fault windows as arrays. Links from `num_links` on have no bandwidth: only reductions cross them."""
    if not known.faults.plan:
        return _calm(len(known.rank_pace) + len(known.link_pace))
    until = {(link, start): end for link, windows in enumerate(known.link_down) for start, end in windows}
    items = [list(_items(at, change, until, num_links)) for at, change in known.changes]
    lows = np.cumsum([0, *map(len, items)])
    flat = [item for several in items for item in several]
    paces = [*known.rank_pace, *known.link_pace]
    since = [() if pace is None else pace.since_ns for pace in paces]
    factors = [() if pace is None else pace.factors for pace in paces]
    return Windows(
        edges=fixed(np.column_stack([[*(at for at, _ in known.changes), ENDLESS], lows])),
        items=fixed(np.array([item[:3] for item in flat], dtype=np.int64).reshape(-1, 3)),
        parts=fixed_floats([item[3] for item in flat]),
        pace_low=fixed(np.cumsum([0, *map(len, since)])),
        pace_since=fixed([time for several in since for time in several]),
        pace_factor=fixed_floats([factor for several in factors for factor in several]),
        horizon_ns=ENDLESS if known.horizon_ns >= FOREVER else known.horizon_ns,
    )


@lru_cache(maxsize=64)
def _calm(paces: int) -> Windows:
    """No windows at all, for so many ranks and links."""
    lows = fixed(np.zeros(paces + 1, dtype=np.int64))
    edges, none = fixed(np.array([[ENDLESS, 0]])), fixed(np.zeros((0, 3), dtype=np.int64))
    return Windows(edges, none, NO_FLOATS, lows, fixed([]), NO_FLOATS, ENDLESS)


def _items(
    at: int, change: WindowEdge, until: dict[tuple[int, int], int], num_links: int
) -> Iterable[tuple[int, int, int, float]]:
    """What happens at one moment: what, which, until when, the part that is left."""
    yield from ((RANK_BREAKS, rank, 0, 0.0) for rank in change.ranks_down)
    yield from ((LINK_BREAKS, link, until[link, at], 0.0) for link in change.links_down)
    yield from ((LINK_CHANGES, link, 0, part) for link, part in change.bandwidths if link < num_links)
    yield from ((RANK_RETURNS, rank, 0, 0.0) for rank in change.ranks_up)
    yield from ((LINK_RETURNS, link, 0, 0.0) for link in change.links_up)


class Draws:
    """What is drawn for the two iterations that may be under way."""

    def __init__(self, tables: Tables, inputs: Inputs) -> None:
        shape = inputs.program.shape
        self._tables, self._shape, self._costs, self._network = tables, shape, inputs.costs, inputs.network
        self._seed, self._slots = inputs.settings.seed, min(2, inputs.settings.iterations)
        self._duration = self._delay = self._size = np.zeros((self._slots, 0), dtype=np.int64)
        self._ends = np.zeros((2, 2, shape.num_ranks), dtype=np.int64)
        self._once = np.zeros((2, 6), dtype=np.int64)

    def draw(self, number: int) -> Drawn:
        """Draw an iteration; what its slot held is over."""
        slot, given = number & 1, (number, self._shape)
        durations = draw_durations(*given, self._costs, self._seed)
        delays = draw_delays(*given, self._network, self._seed)
        self._duration = self._put(self._duration, slot, durations)
        self._delay = self._put(self._delay, slot, delays)
        sizes = draw_sizes(*given, self._costs, self._seed)
        self._size = self._put(self._size, slot, sizes)
        end = draw_end(*given, self._costs, self._seed)
        self._ends[slot, GRAD_NS], self._ends[slot, OPTIMIZER_NS] = end.grad, end.optimizer
        by_action = (grid.shape[1] > 1 for grid in (durations, delays, sizes))
        self._once[slot] = (end.tied, end.host, end.synchronized, *by_action)
        assert (DURATION_BY_ACTION, DELAY_BY_ACTION, SIZE_BY_ACTION) == (3, 4, 5), "the order of `once`"
        return Drawn(self._duration, self._delay, self._size, self._ends, self._once)

    def _put(self, into: Ints, slot: int, grid: Ints) -> Ints:
        """Values by kind if microbatches are alike, else by action."""
        if grid.shape[1] == 1:
            values = grid[:, 0]
        else:
            kind, microbatch = self._tables.actions[:2]
            values = grid[kind, microbatch]
        if into.shape[1] < len(values):
            longer = np.zeros((self._slots, len(values)), dtype=np.int64)
            longer[:, : into.shape[1]] = into
            into = longer
        into[slot, : len(values)] = values
        return into


def empty_state(tables: Tables, num_messages: int, num_transfers: int) -> State:
    """The state at time 0: every rank about to decide on its first iteration, no transfer under way."""
    is_posted = tables.blocking or tables.posted
    num_ranks, num_links = len(tables.of_rank) - 1, len(tables.full)
    clock = np.zeros(NUM_CLOCK, dtype=np.int64)
    clock[ALL_UP] = 1
    ranks = np.zeros((num_ranks, NUM_OF_RANK), dtype=np.int64)
    ranks[:, [HELD, TASK, OFFERS, LAST_OFFER]] = NONE
    ranks[:, POSITION] = tables.of_rank[:-1, FIRST]
    ranks[:, WOKEN_EVEN], ranks[:, AWAKE], clock[WOKEN] = np.arange(num_ranks), 1, num_ranks
    links = np.zeros((num_links, 5), dtype=np.int64)
    links[:, [FIRST_HOP, LAST_HOP]] = NONE
    meeting = np.zeros((2, 4), dtype=np.int64)
    meeting[:, AT_TIED] = NONE
    return State(
        clock=clock,
        timers=np.full((num_ranks + FIRST_TRANSFER + num_transfers, STANDS_AT + 1), NONE),
        ranks=ranks,
        transfers=empty_transfers(num_transfers),
        moving=np.zeros((num_transfers, 2)),
        hops=np.full((num_transfers * tables.most_hops, 2), NONE),
        links=links,
        rates=tables.full.copy(),
        messages=np.zeros((4 if is_posted else min(2, tables.iterations), num_messages), dtype=np.int8),
        meeting=meeting,
    )


def empty_transfers(count: int) -> Ints:
    """All of them free."""
    transfers = np.full((count, 8), NONE)
    transfers[:, FOLLOWING] = np.arange(1, count + 1)
    return transfers


def empty_rows(count: int) -> Rows:
    """Room for `count` rows."""
    return Rows(
        shorts=np.empty((6, count), dtype=np.int32),
        flags=np.empty((2, count), dtype=np.int8),
        longs=np.empty((3, count), dtype=np.int64),
    )


assert BEHIND_LAST == FIRST + 1, "the order of `of_rank`"
