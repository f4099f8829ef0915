"""What a rank runs next: the next of a program, or what a policy says."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from hops.engine.iteration import Iteration
from hops.errors import ProgramError
from hops.program.action import Action, Op, Pair
from hops.program.lowering import lower_complete
from hops.program.policy import Policy
from hops.program.postings import postings
from hops.program.program import Program
from hops.program.wiring import NONE, Wiring


class RankOrder(ABC):
    """The order of actions, asked rank by rank while the run goes on."""

    is_policy: ClassVar[bool]

    @abstractmethod
    def peek(self, rank: int) -> Action | None:
        """The action the rank shall run next; None: nothing now."""

    @abstractmethod
    def take(self, rank: int) -> None:
        """The action that `peek` showed has started."""

    @abstractmethod
    def can_start(self, iteration: Iteration, rank: int, action: Action) -> bool:
        """Whether all inputs of the action are there."""

    @abstractmethod
    def lacks(self, iteration: Iteration, rank: int, action: Action) -> int:
        """Key of what an action that cannot start (a pair: one of both) waits for."""

    @abstractmethod
    def is_done(self, rank: int) -> bool:
        """Whether the rank has run all actions of its iteration."""

    @abstractmethod
    def begin(self, rank: int, iteration: Iteration) -> None:
        """The rank enters an iteration."""

    @abstractmethod
    def arrived(self, rank: int, iteration: Iteration, key: int) -> None:
        """Something has arrived for the rank."""

    @abstractmethod
    def finished(self, rank: int, action: Action) -> None:
        """An action of the rank has ended."""

    @abstractmethod
    def in_pair(self, rank: int) -> bool:
        """Whether the action taken last has opened a pair or a couple, so that its output waits for the next one's."""

    @abstractmethod
    def is_paired(self, rank: int) -> bool:
        """Whether the action taken last is one of a pair."""

    @abstractmethod
    def receives(self, rank: int) -> Sequence[int]:
        """Keys of the messages whose receives the rank posts now that it has got to its next action; each once."""

    @abstractmethod
    def next_receive(self, rank: int, iteration: Iteration) -> int | None:
        """Key of the message the rank needs before it sends again, if it is known and not there yet."""


class FixedOrder(RankOrder):
    """A program's order. Programs are checked before they run, so local dependencies hold by position."""

    is_policy = False

    def __init__(self, program: Program, wiring: Wiring, couples: Program | None = None) -> None:
        """`couples`: the same with couples as entries, where messages are sent in calls (`hops.program.calls`)."""
        ranks = range(program.num_ranks)
        self._ranks = [program.actions(rank) for rank in ranks]
        self._position = [0] * program.num_ranks
        paired = program.split(program.in_pair.astype(np.int64))
        self._pairs = [set(np.flatnonzero(mine).tolist()) for mine in paired]
        self._in_calls, program = couples is not None, couples or program
        closes = program.split(program.closes_pair)
        self._opens = [set((np.flatnonzero(closes[rank]) - 1).tolist()) for rank in ranks]
        self._needs = wiring.needs
        self._wiring = wiring
        self._program = program
        self._posted = [0] * program.num_ranks

    def peek(self, rank: int) -> Action | None:
        actions, position = self._ranks[rank], self._position[rank]
        return actions[position] if position < len(actions) else None

    def take(self, rank: int) -> None:
        self._position[rank] += 1

    def can_start(self, iteration: Iteration, rank: int, action: Action) -> bool:
        return self.lacks(iteration, rank, action) < 0

    def lacks(self, iteration: Iteration, rank: int, action: Action) -> int:
        stage, op, microbatch = action
        base = self._needs[stage][op]
        if base >= 0 and not iteration.arrived[base + microbatch]:
            return base + microbatch
        position = self._position[rank]
        if position not in self._opens[rank]:
            return NONE
        stage, op, microbatch = self._ranks[rank][position + 1]
        base = self._needs[stage][op]
        return base + microbatch if base >= 0 and not iteration.arrived[base + microbatch] else NONE

    def in_pair(self, rank: int) -> bool:
        return self._position[rank] - 1 in self._opens[rank]

    def is_paired(self, rank: int) -> bool:
        return self._position[rank] - 1 in self._pairs[rank]

    def is_done(self, rank: int) -> bool:
        return self._position[rank] == len(self._ranks[rank])

    def begin(self, rank: int, iteration: Iteration) -> None:
        self._position[rank] = self._posted[rank] = 0

    def arrived(self, rank: int, iteration: Iteration, key: int) -> None:
        """Nothing to note: `can_start` looks at what has arrived."""

    def finished(self, rank: int, action: Action) -> None:
        """Nothing to note: the position says it."""

    @cached_property
    def _postings(self) -> list[list[tuple[int, int]]]:
        """Per rank, the position at which it posts a receive, and its key."""
        low, first = lower_complete(self._program), self._program.first
        posted = postings(self._program, low, in_calls=self._in_calls)
        ranks: list[list[tuple[int, int]]] = [[] for _ in self._ranks]
        for step, key in zip(posted.step.tolist(), posted.message.tolist(), strict=True):
            rank = low.rank[step]
            ranks[rank].append((int(low.first[step] - first[rank]), key))
        return ranks

    def receives(self, rank: int) -> Sequence[int]:
        rows, begin, position = self._postings[rank], self._posted[rank], self._position[rank]
        end = begin
        while end < len(rows) and rows[end][0] <= position:
            end += 1
        self._posted[rank] = end
        return [key for _, key in rows[begin:end]]

    def next_receive(self, rank: int, iteration: Iteration) -> int | None:
        begin, sends = self._position[rank], False
        for position, (stage, op, microbatch) in enumerate(self._ranks[rank][begin:], start=begin):
            base = self._needs[stage][op]
            if base >= 0 and not self._from_own_rank(stage, op) and not iteration.arrived[base + microbatch]:
                return base + microbatch
            sends = sends or self._wiring.sends(stage, op)
            if sends and position not in self._opens[rank]:  # a pair takes the inputs of both before it sends
                return None
        return None

    def _from_own_rank(self, stage: int, op: Op) -> bool:
        producer = self._wiring.producer(stage, op)
        owners = self._wiring.shape.rank_of_stage
        return producer is not None and owners[producer] == owners[stage]


class RankView:
    """What a policy sees of its rank (see hops.program.policy.View)."""

    def __init__(self, rank: int, wiring: Wiring) -> None:
        self.rank = rank
        self.iteration = 0
        self.now_ns = 0
        self.in_flight = 0
        self.ended_microbatches = 0
        self._wiring = wiring
        self._stages = wiring.shape.stages_of(rank)
        self._ready: dict[Action, None] = {}
        self._done: set[Action] = set()
        self._started: set[Action] = set()
        self._gradients: set[tuple[int, int]] = set()

    def ready(self) -> Sequence[Action]:
        return sorted(self._ready, key=lambda action: (action.op, action.stage, action.microbatch))

    def done(self, action: Action) -> bool:
        return action in self._done

    def is_used_up(self, action: Action) -> bool:
        """Whether the action has started, or its B has started in place of it, or its I or W in place of it."""
        stage, op, microbatch = action
        rivals = {Op.F: (Op.F,), Op.B: (Op.B, Op.I, Op.W), Op.I: (Op.B, Op.I), Op.W: (Op.B, Op.W)}
        return any(Action(stage, rival, microbatch) in self._started for rival in rivals[op])

    @property
    def num_final(self) -> int:
        """Backwards that end a microbatch (B or W) in a whole iteration."""
        shape = self._wiring.shape
        return len(self._stages) * shape.num_microbatches // shape.copies

    def begin(self, iteration: Iteration) -> None:
        """Enter an iteration; count what has arrived for it already."""
        self.iteration, self.in_flight, self.ended_microbatches = iteration.number, 0, 0
        self._ready.clear()
        self._done.clear()
        self._started.clear()
        self._gradients.clear()
        count = self._wiring.shape.num_microbatches
        for stage in self._stages:
            needed = self._wiring.needs[stage]
            for microbatch in range(count):
                if needed[Op.F] == NONE or iteration.arrived[needed[Op.F] + microbatch]:
                    self._ready[Action(stage, Op.F, microbatch)] = None
                if needed[Op.B] == NONE or iteration.arrived[needed[Op.B] + microbatch]:
                    self._gradients.add((stage, microbatch))

    def arrive(self, key: int) -> None:
        """A message (or a local output) is there."""
        stage, is_gradient, microbatch = self._wiring.key_of(key)
        if is_gradient:
            self._gradients.add((stage, microbatch))
            self._offer_backward(stage, microbatch)
        else:
            self._ready[Action(stage, Op.F, microbatch)] = None

    def start(self, action: Action) -> None:
        """The action begins."""
        stage, op, microbatch = action
        del self._ready[action]
        self._started.add(action)
        if op is Op.F:
            self.in_flight += 1
        elif op is not Op.W:
            self._ready.pop(Action(stage, Op.I if op is Op.B else Op.B, microbatch), None)

    def finish(self, action: Action) -> None:
        """The action ends."""
        stage, op, microbatch = action
        self._done.add(action)
        if op is Op.F:
            self._offer_backward(stage, microbatch)
        elif op is Op.I:
            self._ready[Action(stage, Op.W, microbatch)] = None
        else:
            self.in_flight -= 1
            self.ended_microbatches += 1

    def _offer_backward(self, stage: int, microbatch: int) -> None:
        if (stage, microbatch) in self._gradients and Action(stage, Op.F, microbatch) in self._done:
            self._ready[Action(stage, Op.B, microbatch)] = None
            self._ready[Action(stage, Op.I, microbatch)] = None


class PolicyOrder(RankOrder):
    """What a policy decides, checked action by action."""

    is_policy = True

    def __init__(self, policy: Policy, wiring: Wiring) -> None:
        self._policy = policy
        self._wiring = wiring
        ranks = wiring.shape.num_ranks
        self.views = [RankView(rank, wiring) for rank in range(ranks)]
        self._queues: list[deque[Action]] = [deque() for _ in range(ranks)]
        self._seconds: list[dict[Action, Action]] = [{} for _ in range(ranks)]  # by rank: of pairs, by their first
        self._taken: list[Action | None] = [None] * ranks
        self._current: list[Iteration | None] = [None] * ranks
        self.clock: Callable[[], int] = lambda: 0

    def peek(self, rank: int) -> Action | None:
        queue, view = self._queues[rank], self.views[rank]
        if not queue and not self.is_done(rank):
            view.now_ns = self.clock()
            for entry in self._policy.next_actions(view):
                for action in entry if isinstance(entry, Pair) else (entry,):
                    self._check(view, action)
                    queue.append(action)
                if isinstance(entry, Pair):
                    self._check_pair(view, entry)
                    self._seconds[rank][entry.first] = entry.second
        return queue[0] if queue else None

    def take(self, rank: int) -> None:
        action = self._taken[rank] = self._queues[rank].popleft()
        self.views[rank].start(action)

    def can_start(self, iteration: Iteration, rank: int, action: Action) -> bool:
        ready = self.views[rank]._ready  # noqa: SLF001 (the fast form of `in ready()`)
        return action in ready and self._seconds[rank].get(action, action) in ready

    def lacks(self, iteration: Iteration, rank: int, action: Action) -> int:
        if action in self.views[rank]._ready:  # noqa: SLF001 (then it is the other one of its pair)
            action = self._seconds[rank][action]
        return self._wiring.needs[action.stage][action.op] + action.microbatch

    def is_done(self, rank: int) -> bool:
        view = self.views[rank]
        return view.ended_microbatches == view.num_final

    def begin(self, rank: int, iteration: Iteration) -> None:
        self._current[rank] = iteration
        self._seconds[rank].clear()
        self.views[rank].begin(iteration)

    def arrived(self, rank: int, iteration: Iteration, key: int) -> None:
        if iteration is self._current[rank]:
            self.views[rank].arrive(key)

    def finished(self, rank: int, action: Action) -> None:
        self.views[rank].finish(action)

    def in_pair(self, rank: int) -> bool:
        return self._taken[rank] in self._seconds[rank]

    def is_paired(self, rank: int) -> bool:
        seconds, taken = self._seconds[rank], self._taken[rank]
        return taken in seconds or taken in seconds.values()

    def receives(self, rank: int) -> Sequence[int]:
        return ()

    def next_receive(self, rank: int, iteration: Iteration) -> int | None:
        return None

    def _where(self, view: RankView) -> str:
        return f"{type(self._policy).__name__}.next_actions on rank {view.rank} at {view.now_ns / 1e6:.3f} ms"

    def _check_pair(self, view: RankView, pair: Pair) -> None:
        first, second = pair
        if first.op is not Op.F or second.op not in (Op.B, Op.I) or first[::2] == second[::2]:
            raise ProgramError(
                f"{self._where(view)}: returned the pair {pair}, expected a forward and then a backward (B or I) that "
                "does not need it"
            )

    def _check(self, view: RankView, action: Action) -> None:
        shape = self._wiring.shape
        where = self._where(view)
        if not (0 <= action.stage < shape.num_stages and 0 <= action.microbatch < shape.num_microbatches):
            raise ProgramError(
                f"{where}: returned {action}, but there are {shape.num_stages} stages and "
                f"{shape.num_microbatches} microbatches"
            )
        if shape.rank_of_stage[action.stage] != view.rank:
            owner = shape.rank_of_stage[action.stage]
            raise ProgramError(
                f"{where}: returned {action}, which belongs to rank {owner}; return only its own actions"
            )
        if view.is_used_up(action) or action in self._queues[view.rank]:
            raise ProgramError(f"{where}: returned {action} a second time; each action runs once an iteration")
