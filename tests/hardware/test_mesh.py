"""The mesh: groups partition the ranks, and are those of Megatron-LM."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.axes import Axis
from hops.errors import UsageError
from hops.hardware.mesh import Mesh

SIZES = st.sampled_from([1, 2, 3, 4])


@st.composite
def meshes(draw: st.DrawFn) -> Mesh:
    tensor, context, data, pipeline = (draw(SIZES) for _ in range(4))
    inside = tensor * context * data
    experts = draw(st.sampled_from([n for n in range(1, inside + 1) if inside % n == 0]))
    expert = draw(st.sampled_from([n for n in range(1, experts + 1) if experts % n == 0]))
    order = "-".join([*draw(st.permutations(["tp", "cp", "ep", "dp"])), "pp"])
    return Mesh(
        tensor=tensor,
        context=context,
        data=data,
        pipeline=pipeline,
        expert=expert,
        expert_tensor=experts // expert,
        order=order,
    )


@settings(deadline=None, max_examples=50)
@given(meshes(), st.sampled_from(list(Axis)))
def test_groups_partition_the_ranks_and_differ_in_one_axis_only(mesh: Mesh, axis: Axis) -> None:
    groups = mesh.groups(axis)
    assert groups.shape[1] == mesh.size(axis)
    assert sorted(groups.ravel()) == list(range(mesh.num_ranks))
    others = {Axis.TENSOR, Axis.CONTEXT, Axis.DATA, Axis.PIPELINE}
    if axis not in others:
        others = {Axis.EXPERT, Axis.EXPERT_TENSOR, Axis.EXPERT_DATA, Axis.PIPELINE}
    members = [mesh.coordinates(int(rank)) for rank in groups[0]]
    assert [each[axis] for each in members] == list(range(mesh.size(axis)))
    assert len({tuple(each[other] for other in sorted(others - {axis})) for each in members}) == 1


@settings(deadline=None, max_examples=30)
@given(meshes())
def test_axes_together_are_the_groups_of_one_after_the_other(mesh: Mesh) -> None:
    joined = mesh.groups(Axis.DATA, Axis.CONTEXT)
    assert sorted(joined.ravel()) == list(range(mesh.num_ranks))
    for group in joined[:2]:
        places = {tuple(mesh.coordinates(int(rank))[axis] for axis in (Axis.TENSOR, Axis.PIPELINE)) for rank in group}
        assert len(places) == 1


def test_groups_are_those_of_megatron() -> None:
    """The example in Megatron-LM's core/parallel_state.py: 16 GPUs, tensor 2, pipeline 4, data 2."""
    mesh = Mesh(tensor=2, pipeline=4, data=2)
    assert mesh.groups(Axis.TENSOR).tolist() == [[2 * n, 2 * n + 1] for n in range(8)]
    assert mesh.groups(Axis.DATA).tolist() == [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9, 11], [12, 14], [13, 15]]
    assert mesh.groups(Axis.PIPELINE).tolist() == [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]
    assert mesh.positions().tolist() == [list(range(4 * n, 4 * n + 4)) for n in range(4)]


def test_context_is_between_tensor_and_data() -> None:
    """The example of its get_context_parallel docs: tensor 2, context 2, data 2, pipeline 2."""
    mesh = Mesh(tensor=2, context=2, data=2, pipeline=2)
    assert mesh.groups(Axis.CONTEXT).tolist()[:4] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert mesh.groups(Axis.DATA).tolist()[:4] == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert mesh.groups(Axis.DATA, Axis.CONTEXT).tolist()[:2] == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_experts_have_a_grid_of_their_own() -> None:
    """Tensor 2, data 4; experts over 4, not cut themselves: their groups cross those of tensor parallelism."""
    mesh = Mesh(tensor=2, data=4, expert=4)
    assert mesh.groups(Axis.EXPERT).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert mesh.groups(Axis.EXPERT_DATA).tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    cut = Mesh(tensor=2, data=4, expert=4, expert_tensor=2)
    assert cut.groups(Axis.EXPERT).tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert cut.expert_data == 1


def test_another_order_numbers_the_ranks_anew() -> None:
    """Megatron-LM's --use-tp-pp-dp-mapping."""
    mesh = Mesh(tensor=2, pipeline=2, data=2, order="tp-cp-ep-pp-dp", expert_tensor=2)
    assert mesh.groups(Axis.PIPELINE).tolist() == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert mesh.groups(Axis.DATA).tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert mesh.positions().tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]


def test_what_is_no_mesh_is_refused() -> None:
    with pytest.raises(UsageError, match="context of a mesh must be at least 1, but got 0"):
        Mesh(context=0)
    with pytest.raises(UsageError, match="got the order 'tp-dp-pp', expected each of tp, cp, ep, dp, pp once"):
        Mesh(order="tp-dp-pp")
    with pytest.raises(UsageError, match=r"got expert 3 x expert_tensor 2 = 6, which does not divide .* = 8"):
        Mesh(tensor=2, data=4, expert=3, expert_tensor=2)
    with pytest.raises(UsageError, match="gives experts other pipelines than the rest, expected the same: put pp last"):
        Mesh(tensor=2, pipeline=2, data=2, order="tp-cp-ep-pp-dp")
    with pytest.raises(UsageError, match="got the axes data, expert, expected either those of experts or the others"):
        Mesh().groups(Axis.DATA, Axis.EXPERT)
    with pytest.raises(UsageError, match="got rank 4, expected 0 to 3"):
        Mesh(data=4).coordinates(4)


def test_a_large_mesh_is_cut_at_once() -> None:
    mesh = Mesh(tensor=8, context=2, data=64, pipeline=16)
    assert mesh.num_ranks == 16384
    assert np.array_equal(mesh.groups(Axis.TENSOR)[1], np.arange(8, 16))
