"""Why no plan fits, with the figures that prove it."""

from collections.abc import Sequence

import numpy as np

from hops.errors import DoesNotFitError
from hops.plan.candidates import Search
from hops.plan.reach import most_layers
from hops.units import format_bytes

_GIB = 1 << 30


def nothing_fits(searches: Sequence[Search]) -> DoesNotFitError:
    """The error for searches of which none found a layout; one reason per kind of group."""
    reasons = dict.fromkeys(_reason(search) for search in searches)
    return DoesNotFitError("no placement fits: " + "\nand: ".join(reasons))


def _reason(search: Search) -> str:
    """The strongest proof: in sum, for a single layer, or by trying all ways to lay the layers out."""
    tables, pool, layers = search.tables, search.pool, search.tables.num_layers
    recompute = search.group.recompute
    have = int((search.counts * pool.memory_bytes).sum())
    weights = int(_least_static(search))
    if weights > have:
        return (
            f"weights, gradients and optimizer states alone need {_gib(weights)} GiB of {_gib(have)} on "
            f"{int(search.counts.sum())} devices; add devices, or share the states (optimizer.distributed)"
        )
    smallest = int((tables.static + tables.activation)[tables.parameters > 0].min())
    largest = int(pool.memory_bytes[search.counts > 0].max())
    if smallest > largest:
        return (
            f"one layer with one microbatch needs {_gib(smallest)} GiB, and the largest device has "
            f"{format_bytes(largest)}; use a smaller microbatch_size, or more recompute than {recompute!r}"
        )
    held = most_layers(search.problem)
    flight = search.group.schedules[0].name if len(search.problem.needed) > 1 else "one microbatch in flight"
    if held < layers:
        return (
            f"with {flight} and recompute {recompute!r} all devices together hold at most {held} of the {layers} "
            f"layers, embedding and head counted; {_ways_out(recompute)}"
        )
    return (
        f"with {'/'.join(schedule.name for schedule in search.group.schedules)} and recompute {recompute!r} what the "
        f"spec leaves open offers no layout that fits; {_ways_out(recompute)}"
    )


def _least_static(search: Search) -> float:
    """Bytes of all layers and both ends, however they are cut."""
    static = search.tables.static.astype(np.float64)
    layers = search.tables.num_layers
    if layers < 3:
        return float(static[0, layers])
    return float(min(static[0, layers], static[0, 1] + static[1, layers - 1] + static[layers - 1, layers]))


def _ways_out(recompute: str) -> str:
    more = "more recompute, " if recompute != "full" else ""
    return f"use {more}a smaller microbatch_size, another schedule, or more devices"


def _gib(size: int) -> str:
    return f"{size / _GIB:.0f}" if size >= 10 * _GIB else f"{size / _GIB:.2f}"
