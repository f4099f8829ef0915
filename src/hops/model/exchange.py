"""What the devices of a tensor group exchange around linear layers that are divided among them.

A pair of linear layers is cut by columns, then by rows (Shoeybi et al. 2019, arXiv 1909.08053): its input is needed
whole, its result is a sum over the group. Without sequence parallelism every device holds the whole input, and the sum
is an all-reduce; with it (Korthikanti et al. 2022, arXiv 2205.05198) the input is gathered and the sum is scattered,
together as many bytes.

The backward pass is the mirror image. W needs the whole input once more; Megatron-LM gathers it again in the backward
pass, while the gradient of the input is computed (core/tensor_parallel/layers.py,
LinearWithGradAccumulationAndAsyncCommunication). That gather is I's here, so W exchanges nothing. The gradient of the
input is reduced while the weights' is computed, if B runs as one.
"""

from hops.axes import Axis
from hops.model.kernels import WEIGHT_BACKWARD, Collective, CollectiveKind, Kernels
from hops.model.local import Local

TERM = "tensor"


def enter(here: Local, width: int, beside: str) -> Kernels:
    """F before linear layers cut by columns whose inputs are `width` wide; `beside` is their term."""
    if here.shards.tensor == 1 or not here.shards.sequence:
        return ()
    under = beside if here.how.tensor_overlap else ""
    return (_tensor(here, "all_gather", width, hides_under=under),)


def leave(here: Local, beside: str) -> Kernels:
    """F after a linear layer cut by rows, whose result is as wide as the hidden state."""
    if here.shards.tensor == 1:
        return ()
    kind: CollectiveKind = "reduce_scatter" if here.shards.sequence else "all_reduce"
    under = beside if here.how.tensor_overlap else ""
    return (_tensor(here, kind, here.model.hidden, hides_under=under),)


def leave_backward(here: Local, beside: str) -> Kernels:
    """I of the same: the gradient of the result is gathered where the result was scattered."""
    if here.shards.tensor == 1 or not here.shards.sequence:
        return ()
    under = beside if here.how.tensor_overlap else ""
    return (_tensor(here, "all_gather", here.model.hidden, hides_under=under),)


def enter_backward(here: Local, width: int, beside: str) -> Kernels:
    """I of layers cut by columns: the sum of the input's gradient, and the input once more for W."""
    if here.shards.tensor == 1:
        return ()
    if not here.shards.sequence:
        return (_tensor(here, "all_reduce", width, hides_under=WEIGHT_BACKWARD),)
    return (
        _tensor(here, "all_gather", width, hides_under=beside),
        _tensor(here, "reduce_scatter", width, hides_under=WEIGHT_BACKWARD),
    )


def _tensor(here: Local, kind: CollectiveKind, width: int, *, hides_under: str) -> Collective:
    return Collective(
        name=TERM,
        kind=kind,
        axis=Axis.TENSOR,
        bytes=here.tokens * width * here.how.element_bytes,
        hides_under=hides_under,
    )
