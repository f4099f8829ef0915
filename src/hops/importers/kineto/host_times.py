"""When an action computed, as its host saw it: annotated ranges hold the wait for what they take and the sending, too.

PyTorch's runtime waits for a receive inside the range of the action that takes it, before its first operator; GPipe
also posts the receive there, and the send after the last one. So an action begins when the last receive that ended
before its first operator had ended, and ends where sending begins. A range of a pair is cut at the first operator of
its second action: those of a backward are called by autograd.

Receives are seen as annotations of the backend (`gloo:recv`); where only `c10d::recv_` shows, which says when they
were posted, an action begins with its first operator.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from hops.importers.kineto.annotations import Named
from hops.importers.kineto.profile import HOST, OPERATOR, Timed
from hops.program.action import Op

_POSTED = "c10d::recv"
_COMMUNICATION = ("c10d::", "gloo:", "nccl:", "mpi:", "ucc:", "xccl:", "record_param_comms")
_AUTOGRAD = "autograd::"


class Interval(NamedTuple):
    """Nanoseconds."""

    start_ns: int
    end_ns: int


class HostTimes:
    """What the ranges of one profile contain."""

    def __init__(self, timed: Iterable[Timed]) -> None:
        events = sorted((each for each in timed if each.category in (HOST, OPERATOR)), key=lambda each: each.start_ns)
        self._operators: dict[str, list[Timed]] = defaultdict(list)
        self._exchanges: dict[str, list[Timed]] = defaultdict(list)
        for each in events:
            if each.name.startswith(_COMMUNICATION):
                self._exchanges[each.thread].append(each)
            elif each.category == OPERATOR:
                self._operators[each.thread].append(each)
        received = [each.end_ns for each in events if each.name.endswith(":recv")]
        self._received = sorted(received)
        self._waits_unseen = not received and any(each.name.startswith(_POSTED) for each in events)

    def of(self, span: Timed, actions: Sequence[Named]) -> list[Interval]:
        """When each of the one or two actions of a range computed."""
        inside = self._inside(self._operators[span.thread], span)
        if actions[0].op is Op.OPTIMIZER:
            return [Interval(span.start_ns, span.end_ns)]
        if not inside:  # PyTorch's first stage has nothing to compute in I, but waits for the gradient
            start = self._input_there(span.start_ns, span.end_ns, actions[0].op)
            return parts(Interval(start, span.end_ns), len(actions))
        end = self._sending_from(span, max(each.end_ns for each in inside))
        first = Interval(self._input_there(span.start_ns, inside[0].start_ns, actions[0].op), end)
        if len(actions) == 1:
            return [first]
        cut = _second_begins(inside, actions)
        if cut == 0:
            return parts(first, 2)
        half = max(each.end_ns for each in inside[:cut])
        second = self._input_there(half, inside[cut].start_ns, actions[1].op)
        return [Interval(first.start_ns, half), Interval(second, end)]

    def _input_there(self, start_ns: int, operator_ns: int, op: Op) -> int:
        """When the last receive ended before the first operator; the range's start if none did."""
        if op is Op.W or operator_ns <= start_ns:
            return start_ns
        if self._waits_unseen:  # without an operator, that is its end
            return operator_ns
        last = bisect_right(self._received, operator_ns) - 1
        return max(start_ns, self._received[last]) if last >= 0 else start_ns

    def _sending_from(self, span: Timed, computed_ns: int) -> int:
        exchanges = self._exchanges[span.thread]
        after = bisect_left(exchanges, computed_ns, key=lambda each: each.start_ns)
        return min(span.end_ns, exchanges[after].start_ns) if after < len(exchanges) else span.end_ns

    def _inside(self, events: list[Timed], span: Timed) -> list[Timed]:
        first = bisect_left(events, span.start_ns, key=lambda each: each.start_ns)
        last = bisect_left(events, span.end_ns, key=lambda each: each.start_ns)
        return events[first:last]


def _second_begins(operators: Sequence[Timed], actions: Sequence[Named]) -> int:
    """Index of the first operator of the second action; 0: cannot be told."""
    backward = [action.op is not Op.F for action in actions]
    if backward[0] == backward[1]:
        return 0
    calls = [each.name.startswith(_AUTOGRAD) for each in operators]
    if backward[1]:
        return calls.index(True) if True in calls else 0
    last = len(calls) - calls[::-1].index(True) if True in calls else 0
    return last if last < len(calls) else 0


def parts(whole: Interval, count: int) -> list[Interval]:
    """An interval in equal parts."""
    length = whole.end_ns - whole.start_ns
    edges = [whole.start_ns + length * part // count for part in range(count + 1)]
    return [Interval(start, end) for start, end in pairwise(edges)]
