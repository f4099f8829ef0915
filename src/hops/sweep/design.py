"""Which points a sweep has: all combinations of its axes' values, or as many as a sampler spreads over them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Literal, get_args

import numpy as np

from hops.arrays import FloatArray
from hops.errors import UsageError
from hops.sweep.axes import Varied

Sampler = Literal["grid", "random", "lhs", "sobol", "tpe", "nsga2"]
SAMPLERS: tuple[str, ...] = get_args(Sampler)
ADAPTIVE = ("tpe", "nsga2")  # they choose points by the outcomes of those before


def grid(axes: Sequence[Varied]) -> Iterator[dict[str, Any]]:
    """Every combination; the last axis changes fastest."""
    for values in product(*(axis.all_values() for axis in axes)):
        yield _joined(values)


def grid_size(axes: Sequence[Varied]) -> int:
    """How many combinations there are."""
    return prod(len(axis.all_values()) for axis in axes)


def sampled(sampler: str, axes: Sequence[Varied], samples: int, seed: int) -> Iterator[dict[str, Any]]:
    """`samples` points, the same for the same seed; of a Sobol sequence and at random, the first of more are these.

    Raises UsageError without scipy, which Latin hypercubes and Sobol sequences are from.
    """
    for row in _shares(sampler, len(axes), samples, seed):
        yield _joined([axis.at(min(float(share), 1 - 2**-53)) for axis, share in zip(axes, row, strict=True)])


def _shares(sampler: str, dimensions: int, samples: int, seed: int) -> FloatArray:
    """Places in the unit cube, shape (samples, dimensions)."""
    if sampler == "random":
        return np.random.default_rng(seed).random((samples, dimensions))
    try:
        from scipy.stats import qmc
    except ImportError:
        raise UsageError(
            f"the sampler {sampler} needs scipy, which is not installed: pip install 'hops-sim[calibrate]', or use "
            "sampler: random"
        ) from None
    rng = np.random.default_rng(seed)
    if sampler == "lhs":
        return np.asarray(qmc.LatinHypercube(d=dimensions, rng=rng).random(samples))
    assert sampler == "sobol", f"{sampler} is no sampler of points at once"
    power = max(0, (samples - 1).bit_length())  # a Sobol sequence is balanced in powers of two
    return np.asarray(qmc.Sobol(d=dimensions, rng=rng).random_base2(power)[:samples])


def _joined(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for part in parts:
        changes |= part
    return changes
