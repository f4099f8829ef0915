"""The actions of one stage and op, microbatch after microbatch: what the built-in schedules weave rank lists from."""

from collections.abc import Iterable, Iterator
from itertools import repeat

from hops.errors import UsageError
from hops.program.action import Action, Op


def column(stage: int, op: Op, num_microbatches: int) -> list[Action]:
    """`sF0 sF1 ...`"""
    return list(map(Action, repeat(stage), repeat(op), range(num_microbatches)))


def weave(stage: int, ops: Iterable[Op], num_microbatches: int) -> tuple[Action, ...]:
    """Turn ops in order into the stage's actions: the n-th F is that of microbatch n, and so on for each op."""
    queues: list[Iterator[Action]] = [iter(column(stage, op, num_microbatches)) for op in (Op.F, Op.B, Op.I, Op.W)]
    return tuple([next(queues[op]) for op in ops])


def at_least(name: str, value: int, least: int) -> int:
    """A schedule's parameter, checked. Raises UsageError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{name} must be an integer of at least {least}, but got {value!r}")
    return value
