"""An action is one op of one stage on one microbatch, printed and parsed as `2F0`.

The text form is the one PyTorch's pipelining schedules print: stage, op letter, microbatch.
"""

import re
from enum import IntEnum
from typing import NamedTuple

from hops.errors import ProgramError


class Op(IntEnum):
    """What a row of a trace did. The first four are actions; the others happen once an iteration.

    B is the full backward, I the backward for inputs, W the backward for weights; B = I + W.
    """

    F = 0
    B = 1
    I = 2  # noqa: E741 (the field's own letter)
    W = 3
    OPTIMIZER = 4
    TIED_REDUCE = 5  # tied-embedding gradient all-reduce between first and last stage
    GRAD_REDUCE = 6  # data-parallel gradient reduction
    HOST = 7  # host time between iterations

    @property
    def is_action(self) -> bool:
        """Whether a program can contain it (F, B, I, W)."""
        return self <= Op.W

    @property
    def sends(self) -> bool:
        """Whether it produces a message for the neighbouring stage (F, B, I)."""
        return self <= Op.I


ACTION_OPS = (Op.F, Op.B, Op.I, Op.W)
NUM_OPS = len(ACTION_OPS)
_TEXT = re.compile(r"(\d+)([FBIW])(\d+)")


class Action(NamedTuple):
    """One op of one stage on one microbatch.

    A named tuple and not a dataclass: programs hold hundreds of thousands of them, and it is
    built four times as fast (see `benchmarks/engine.py`).
    """

    stage: int
    op: Op
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.op.name}{self.microbatch}"

    @classmethod
    def parse(cls, text: str) -> "Action":
        """Read `2F0`. Raises ProgramError for anything else."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ProgramError(
                f"not an action: got {text!r}, expected stage, op (F, B, I or W) and microbatch, such as 2F0"
            )
        stage, op, microbatch = match.groups()
        return cls(int(stage), Op[op], int(microbatch))


class Pair(NamedTuple):
    """A forward and a backward that run as one entry of a rank's stream, printed `0F8+7B0`.

    It starts when both can, takes the time of both, and sends when both are done (DualPipe's overlapped forward and
    backward, arXiv 2412.19437).
    """

    first: Action
    second: Action

    def __str__(self) -> str:
        return f"{self.first}+{self.second}"
