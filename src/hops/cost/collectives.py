"""Collectives at the end of an iteration, in closed form."""

from math import ceil, log2

from hops.errors import UsageError


def ring_seconds(num_bytes: float, ranks: int, *, bandwidth: float, latency_s: float = 0.0) -> float:
    """Ring all-reduce: 2(n-1)/n x bytes / bandwidth + 2(n-1) latencies (Patarasuk and Yuan 2009)."""
    steps = 2 * (ranks - 1)
    return steps / ranks * num_bytes / bandwidth + steps * latency_s


def tree_seconds(num_bytes: float, ranks: int, *, bandwidth: float, latency_s: float = 0.0) -> float:
    """Tree all-reduce, up and down: 2 x bytes / bandwidth + 2 log2(n) latencies (Thakur et al. 2005; NCCL's trees)."""
    if ranks == 1:
        return 0.0
    return 2 * num_bytes / bandwidth + 2 * ceil(log2(ranks)) * latency_s


REDUCTIONS = ("ring", "tree", "none")


def reduction_seconds(
    algorithm: str, num_bytes: float, ranks: int, *, bandwidth: float, latency_s: float = 0.0
) -> float:
    """All-reduce of `num_bytes` among `ranks` by `ring`, `tree` or `none`. Raises UsageError.

    `bandwidth` (bytes/s) is the slowest on the way, each direction; `latency_s` that of one message.
    """
    if algorithm not in REDUCTIONS:
        raise UsageError(f"unknown reduction {algorithm!r}: known are {', '.join(REDUCTIONS)}")
    if ranks < 1:
        raise UsageError(f"ranks of a reduction must be at least 1, but got {ranks}")
    if algorithm == "none":
        return 0.0
    reduce = ring_seconds if algorithm == "ring" else tree_seconds
    return reduce(num_bytes, ranks, bandwidth=bandwidth, latency_s=latency_s)


def reduced_bytes(gradients: float, parameters: float, *, distributed: bool) -> float:
    """Bytes whose all-reduce takes as long as what data-parallel copies exchange in an iteration.

    All copies reduce all gradients. With a `distributed` optimizer (ZeRO-1, Rajbhandari et al. 2020) each gets the sums
    of its part, steps it and hands on its parameters: a reduce-scatter of gradients and an all-gather of parameters,
    each in its own type and each half of an all-reduce. `gradients` and `parameters` are bytes.
    """
    return (gradients + parameters) / 2 if distributed else gradients


def tied_reduce_seconds(table_parameters: int, *, gradient_bytes: float, bandwidth: float, latency_s: float) -> float:
    """All-reduce of the tied embedding's gradients between first and last stage: a ring of two.

    vocab x hidden gradients, of 4 bytes in Megatron-LM (core/distributed/finalize_model_grads.py).
    """
    return ring_seconds(table_parameters * gradient_bytes, 2, bandwidth=bandwidth, latency_s=latency_s)
