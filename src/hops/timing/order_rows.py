"""An order of actions that kernels can change in place: one row of kinds (stage * 4 + op) per rank.

Microbatches are implied: the j-th F of a stage is microbatch j, and so is its j-th backward. Taking turns loses
nothing, because microbatches are alike.
"""

from typing import NamedTuple

import numpy as np

from hops.arrays import IntArray
from hops.program.builders import counted
from hops.program.program import Program
from hops.program.shape import Shape
from hops.timing.stage_costs import CostArrays


class OrderRows(NamedTuple):
    """Kinds in order, shape (ranks, longest), and how many of each row count, shape (ranks,)."""

    kinds: IntArray
    length: IntArray


def blank_rows(costs: CostArrays) -> OrderRows:
    """Empty rows with room for any order."""
    shape = (costs.num_ranks, costs.longest_rank)
    return OrderRows(np.zeros(shape, dtype=np.int64), np.zeros(shape[0], dtype=np.int64))


def fill_rows(program: Program, rows: OrderRows) -> None:
    """Write a program's order into rows; its microbatches and pairs are forgotten."""
    for rank, row in enumerate(program.split(program.kind)):
        rows.kinds[rank, : len(row)] = row
        rows.length[rank] = len(row)


def copy_rows(source: OrderRows, target: OrderRows) -> None:
    """Overwrite rows with others of the same shape."""
    target.kinds[:], target.length[:] = source.kinds, source.length


def program_of(shape: Shape, rows: OrderRows) -> Program:
    """The program of an order: each stage takes its forwards, backwards and the W of its split backwards in turn."""
    return counted(shape, [row[:actions] for row, actions in zip(rows.kinds, rows.length.tolist(), strict=True)])
