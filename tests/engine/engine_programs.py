"""Programs written out by hand, so that engine tests need no built-in schedule."""

from hops.program.action import Action, Op
from hops.program.program import Program
from hops.program.shape import Shape


def program(text, *, microbatches, rank_of_stage):
    """A program from one line of actions per rank."""
    head = f"microbatches {microbatches}, rank of stage {' '.join(map(str, rank_of_stage))}"
    return Program.parse(f"{head}\n{text.strip()}")


def one_f_one_b(ranks, microbatches, *, split=False):
    """1F1B with full backwards, or with each B replaced by I and W."""

    def backward(rank, microbatch):
        if split:
            return [Action(rank, Op.I, microbatch), Action(rank, Op.W, microbatch)]
        return [Action(rank, Op.B, microbatch)]

    lines = []
    for rank in range(ranks):
        warmup = min(ranks - 1 - rank, microbatches)
        line = [Action(rank, Op.F, mb) for mb in range(warmup)]
        for mb in range(microbatches):
            if mb + warmup < microbatches:
                line.append(Action(rank, Op.F, mb + warmup))
            line.extend(backward(rank, mb))
        lines.append(tuple(line))
    return Program.of(Shape.loop(ranks, num_microbatches=microbatches), lines)
