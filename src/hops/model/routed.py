"""Experts on one device: a router, tokens that travel to the experts and back, and MLPs with rows of their own.

Every device hands out the tokens that it holds, `top_k` times each, and gets as many on average, for its own experts
(Lepikhin et al. 2020, arXiv 2006.16668; without a capacity: Gale et al. 2022, arXiv 2211.15841). Where an expert is
divided among the devices of an expert-tensor group, these gather one another's rows and scatter the sums. Passes are
those of Megatron-LM's all-to-all dispatcher (core/transformer/moe/token_dispatcher.py).
"""

from dataclasses import replace
from math import ceil

from hops.axes import Axis
from hops.model import mlp
from hops.model.kernels import Collective, Kernels, Pass
from hops.model.kinds import Experts
from hops.model.linear import FP32_BYTES, Linear
from hops.model.local import Local

EXPERTS, SHARED, ROUTER, TERM = "experts", "shared_experts", "router", "expert"


def linears(here: Local, experts: Experts) -> tuple[Linear, ...]:
    """Router, routed experts, shared ones with their gate."""
    router = Linear(name=ROUTER, rows=here.held_tokens, inside=here.model.hidden, out=experts.count, quantized=False)
    return router, *grouped(here, experts), *shared(here, experts)


def grouped(here: Local, experts: Experts) -> tuple[Linear, ...]:
    """The routed experts of this device, one launch for all."""
    hidden, count = here.model.hidden, here.experts_here(experts)
    width, rows = ceil(experts.hidden / here.shards.expert_tensor), ceil(rows_here(here, experts) / count)
    return (
        Linear(name=EXPERTS, rows=rows, inside=hidden, out=here.model.widened(width), batch=count),
        Linear(name=EXPERTS, rows=rows, inside=width, out=hidden, batch=count),
    )


def shared(here: Local, experts: Experts) -> tuple[Linear, ...]:
    if experts.shared_hidden == 0:
        return ()
    gate = Linear(name=SHARED, rows=here.held_tokens, inside=here.model.hidden, out=1, quantized=False)
    return (*mlp.linears(here, experts.shared_hidden, SHARED), *((gate,) if experts.shared_gate else ()))


def handed_out(here: Local, experts: Experts) -> int:
    """Rows that this device hands out: its tokens, `top_k` times; with a capacity, what fits or fills it."""
    rows = here.held_tokens * experts.top_k
    capacity = here.how.expert_capacity
    return rows if capacity is None else ceil(rows * capacity)


def rows_here(here: Local, experts: Experts) -> int:
    """Rows that the experts of this device compute: on average what it hands out; more on the fullest device."""
    rows = handed_out(here, experts) * here.shards.expert_tensor
    return rows if here.how.expert_capacity is not None else ceil(rows * here.how.expert_imbalance)


def exchanges(here: Local, experts: Experts) -> Kernels:
    """Collectives of F; those of I are as many and as large, in the other direction."""
    return *_routing(here, experts), *_shared_exchanges(here, experts)


def exchanges_backward(here: Local, experts: Experts) -> Kernels:
    """Collectives of I."""
    if experts.shared_hidden == 0:
        return _routing(here, experts)
    return *_routing(here, experts), *mlp.exchanges_backward(here, SHARED)


def _routing(here: Local, experts: Experts) -> Kernels:
    """To the experts and back over the expert axis; to the parts of an expert and back over the expert-tensor axis."""
    row, found = here.model.hidden * here.how.element_bytes, []
    if here.shards.expert > 1:
        under = SHARED if here.how.shared_expert_overlap and experts.shared_hidden else ""
        size = handed_out(here, experts) * row
        journey = Collective(name=TERM, kind="all_to_all", axis=Axis.EXPERT, bytes=size, calls=2, hides_under=under)
        found.append(journey)
    if here.shards.expert_tensor > 1:
        size = rows_here(here, experts) * row
        gather = Collective(name=TERM, kind="all_gather", axis=Axis.EXPERT_TENSOR, bytes=size)
        found += [gather, replace(gather, kind="reduce_scatter")]
    return tuple(found)


def _shared_exchanges(here: Local, experts: Experts) -> Kernels:
    return mlp.exchanges(here, SHARED) if experts.shared_hidden else ()


def passes(here: Local, experts: Experts) -> Kernels:
    """Scores of the router and permutations of F.

    Router, per token and expert: converted (read elements, write fp32), softmax or sigmoid (2 moves of fp32), top-k
    (read, write weights and a byte of mask).
    """
    per_score = here.how.element_bytes + 5 * FP32_BYTES + 1
    scores = Pass(name=ROUTER, bytes=here.held_tokens * experts.count * per_score)
    return scores, _permutation(here, experts, again=0)


def passes_backward(here: Local, experts: Experts) -> Kernels:
    """The same of I: softmax reads gradient and output and writes, and converts; weights' gradients read rows again."""
    per_score = 4 * FP32_BYTES + here.how.element_bytes
    scores = Pass(name=ROUTER, bytes=here.held_tokens * experts.count * per_score)
    return scores, _permutation(here, experts, again=1)


def _permutation(here: Local, experts: Experts, *, again: int) -> Pass:
    """Tokens read and rows written in the order of experts, and back; sorted once more for each expert after the
    journey, and before the way back. `again`: further readings of all rows.
    """
    rows = handed_out(here, experts)
    moves = 2 * (here.held_tokens + rows) + again * rows
    if here.shards.expert > 1 and here.experts_here(experts) > 1:
        moves += 4 * rows_here(here, experts)
    return Pass(name="permutation", bytes=moves * here.model.hidden * here.how.element_bytes)


def activation(here: Local, experts: Experts) -> tuple[int, int]:
    """Elements that the activation function of routed and shared experts reads and writes."""
    written = rows_here(here, experts) * ceil(experts.hidden / here.shards.expert_tensor)
    read, shared_written = shared_activation(here, experts)
    return here.model.widened(written) + here.tokens * read, written + here.tokens * shared_written


def shared_activation(here: Local, experts: Experts) -> tuple[int, int]:
    """Elements per token that the activation function of shared experts reads and writes."""
    part = here.part_of_width(experts.shared_hidden)
    return here.model.widened(part), part
