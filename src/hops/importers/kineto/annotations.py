"""Which actions annotations name: `PP:2F0`, `2F0`, `PP:(0F3;3B1)OVERLAP_F_B`, `F 0 stage 2`, `Forward 0`.

`Optimizer.step#SGD.step` names the optimizer step. PyTorch's pipelining schedules name each entry of their program,
communication included; only GPipe says `Forward 0`, whose stage is the rank. PyTorch's Schedule1F1B names nothing.
"""

import re
from typing import NamedTuple

from hops.program.action import Op

OF_RANK = -1  # the stage of a rank that has one, and of what belongs to the rank as a whole
EXPECTED = "PP:2F0, 2F0, 'F 0 stage 2', 'Forward 0'"
_COMPACT = re.compile(r"(?:PP:)?(\d{1,9})([FBIW])(\d{1,9})")
_PAIR = re.compile(r"(?:PP:)?\((\d{1,9}[FBIW]\d{1,9});(\d{1,9}[FBIW]\d{1,9})\)OVERLAP_F_B")
_SPOKEN = re.compile(r"([FBIW]) ?(\d{1,9}) stage (\d{1,9})")
_FIRST_SCHEDULES = re.compile(r"(Forward|Backward) (\d{1,9})")
_EXCHANGE = re.compile(r"(?:PP:)?(\d{1,9})(SEND_F|RECV_F|SEND_B|RECV_B)\d{1,9}")
STEP = re.compile(r"ProfilerStep#(\d{1,9})")


class Named(NamedTuple):
    """An action, or with `microbatch` -1 the optimizer step."""

    stage: int
    op: Op
    microbatch: int


OPTIMIZER = Named(OF_RANK, Op.OPTIMIZER, -1)


def named(name: str) -> tuple[Named, ...]:
    """What an annotation names: one action, the two of a pair, or nothing."""
    if match := _PAIR.fullmatch(name):
        return tuple(action for part in match.groups() for action in named(part))
    if match := _COMPACT.fullmatch(name):
        return (Named(int(match[1]), Op[match[2]], int(match[3])),)
    if match := _SPOKEN.fullmatch(name):
        return (Named(int(match[3]), Op[match[1]], int(match[2])),)
    if match := _FIRST_SCHEDULES.fullmatch(name):
        return (Named(OF_RANK, {"Forward": Op.F, "Backward": Op.B}[match[1]], int(match[2])),)
    return (OPTIMIZER,) if name.startswith("Optimizer.step#") else ()


def exchanged(name: str) -> tuple[int, str] | None:
    """Stage and kind of a communication, such as (2, "SEND_F"); None if the annotation names none."""
    match = _EXCHANGE.fullmatch(name)
    return (int(match[1]), match[2]) if match else None
