"""The mesh: a job's ranks as a grid of axes, and the groups that exchange along each.

Ranks are numbered as Megatron-LM numbers them (core/parallel_state.py, RankGenerator): the axes of `order` from the
fastest to the slowest. Experts are divided over the same ranks by a second grid, in which expert, expert-tensor and
expert-data stand in the places of expert, tensor and data, and context has size 1.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from hops.axes import Axis
from hops.errors import UsageError

Ints = NDArray[np.int64]

SHORT = {"tp": Axis.TENSOR, "cp": Axis.CONTEXT, "ep": Axis.EXPERT, "dp": Axis.DATA, "pp": Axis.PIPELINE}
ORDER = "tp-cp-ep-dp-pp"  # Megatron-LM's default
_EXPERT_PLACE = {Axis.EXPERT_TENSOR: "tp", Axis.EXPERT: "ep", Axis.EXPERT_DATA: "dp"}
_DENSE_PLACE = {Axis.TENSOR: "tp", Axis.CONTEXT: "cp", Axis.DATA: "dp", Axis.PIPELINE: "pp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """Sizes of the axes, which multiply to the ranks of the job, and the order in which ranks are numbered.

    Attributes:
        tensor, context, data, pipeline: the grid of everything but experts.
        expert, expert_tensor: the grid of experts; its data axis takes what is left of tensor x context x data.
        order: short names of the axes, the fastest first.

    Raises UsageError for sizes below 1, an order that does not name each axis once, experts that do not divide the
    ranks of a pipeline position, and an order in which both grids would have different pipelines.
    """

    tensor: int = 1
    context: int = 1
    expert: int = 1
    expert_tensor: int = 1
    data: int = 1
    pipeline: int = 1
    order: str = ORDER

    def __post_init__(self) -> None:
        for name in ("tensor", "context", "expert", "expert_tensor", "data", "pipeline"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} of a mesh must be at least 1, but got {getattr(self, name)}")
        check_order(self.order)
        experts = self.expert * self.expert_tensor
        if self.stage_ranks % experts:
            raise UsageError(
                f"got expert {self.expert} x expert_tensor {self.expert_tensor} = {experts}, which does not divide "
                f"tensor {self.tensor} x context {self.context} x data {self.data} = {self.stage_ranks}, the ranks of "
                "a pipeline position; expected a divisor; change one of them"
            )
        if not np.array_equal(self._grid(Axis.PIPELINE), self._grid(Axis.PIPELINE, experts=True)):
            raise UsageError(
                f"order {self.order} gives experts other pipelines than the rest, expected the same: put pp last"
            )

    @property
    def stage_ranks(self) -> int:
        """Ranks that share a pipeline position: tensor x context x data."""
        return self.tensor * self.context * self.data

    @property
    def num_ranks(self) -> int:
        return self.stage_ranks * self.pipeline

    @property
    def expert_data(self) -> int:
        """Copies of each expert."""
        return self.stage_ranks // (self.expert * self.expert_tensor)

    def size(self, *axes: Axis) -> int:
        """Members of a group along these axes."""
        return prod(int(getattr(self, axis.value)) for axis in axes)

    def groups(self, *axes: Axis) -> Ints:
        """All groups along the axes, together if they are several: shape (groups, members), a row per group.

        Axes of experts and of the rest cannot be joined, since they divide different grids. Raises UsageError.
        """
        of_experts = [axis in _EXPERT_PLACE for axis in axes]
        if any(of_experts) and not all(of_experts):
            raise UsageError(f"got the axes {', '.join(axes)}, expected either those of experts or the others")
        return self._grid(*axes, experts=any(of_experts))

    def coordinates(self, rank: int) -> dict[Axis, int]:
        """Where a rank is along every axis, those of experts included. Raises UsageError for a rank outside."""
        if not 0 <= rank < self.num_ranks:
            raise UsageError(f"got rank {rank}, expected 0 to {self.num_ranks - 1}")
        return {axis: int(np.argwhere(self.groups(axis) == rank)[0, 1]) for axis in (*_DENSE_PLACE, *_EXPERT_PLACE)}

    def positions(self) -> Ints:
        """Ranks by pipeline position: shape (pipeline, tensor x context x data), each row ascending."""
        return np.sort(self.groups(Axis.PIPELINE).T, axis=1)

    def _grid(self, *axes: Axis, experts: bool = False) -> Ints:
        places = _EXPERT_PLACE | {Axis.PIPELINE: "pp"} if experts else _DENSE_PLACE
        size = dict.fromkeys(SHORT, 1) | {short: self.size(axis) for axis, short in places.items()}
        slowest_first = self.order.split("-")[::-1]
        grid = np.arange(self.num_ranks).reshape([size[short] for short in slowest_first])
        joined = sorted(slowest_first.index(places[axis]) for axis in axes)
        groups: Ints = np.moveaxis(grid, joined, range(-len(joined), 0)).reshape(-1, self.size(*axes))
        return groups


def check_order(order: str) -> None:
    """Raises UsageError unless the text names every axis once, such as `tp-cp-ep-dp-pp`."""
    if sorted(order.split("-")) != sorted(SHORT):
        raise UsageError(f"got the order {order!r}, expected each of {', '.join(SHORT)} once, such as {ORDER}")
