"""A plan is drawn from sources: a model on targets. Each (source, target) has random generators of its own."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import isinf

import numpy as np

from hops.draws import Distribution, generator
from hops.errors import UsageError
from hops.faults.base import FaultModel
from hops.faults.inventory import Site, targets
from hops.faults.plan import FOREVER, Fault, FaultKind, FaultPlan, is_factor
from hops.units import format_time

NANOSECONDS = 1_000_000_000
MOST_FAULTS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSource:
    """What may break, how, and when.

    Attributes:
        name: with seed and target it says what is drawn, so that adding, removing or reordering other sources moves
            nothing; two sources of one name draw the same.
        kind: what happens.
        sites: what breaks as a whole.
        model: when one of them does.
        factor: for slow and link-slow, drawn for each fault; one that changes nothing (slow by at most 1, link-slow by
            at least 1) is left out. None otherwise.
    """

    name: str
    kind: FaultKind
    sites: tuple[Site, ...]
    model: FaultModel
    factor: Distribution | None = None


def draw_plan(sources: Iterable[FaultSource], seed: int, horizon_s: float) -> FaultPlan:
    """Draw all faults that start before the horizon (seconds). A longer horizon adds faults and moves none.

    Raises UsageError if there are more than a million, or targets that a kind of fault cannot hit.
    """
    drawn: list[Fault] = []
    for source in sources:
        for site in source.sites:
            drawn += _faults(source, site, seed, horizon_s, room=MOST_FAULTS - len(drawn))
    return FaultPlan.of(drawn)


def _faults(source: FaultSource, site: Site, seed: int, horizon_s: float, *, room: int) -> Iterator[Fault]:
    def generator_of(purpose: str) -> np.random.Generator:
        return generator(seed, f"fault {source.name} {site.family} {purpose}", site.number)

    hit = targets(site, source.kind)
    windows = list(islice(source.model.windows(generator_of, horizon_s), room // len(hit) + 1))
    if len(windows) * len(hit) > room:
        raise UsageError(
            f"more than {MOST_FAULTS:,} faults in {format_time(horizon_s)} ({source.name}); raise the time between "
            "failures, or lower the horizon"
        )
    factors = [1.0] * len(windows)
    if source.factor is not None and windows:
        factors = source.factor.sample(generator_of("factor"), len(windows)).tolist()
    for (start_s, end_s), factor in zip(windows, factors, strict=True):
        if not is_factor(source.kind, factor):
            continue
        start_ns = round(start_s * NANOSECONDS)
        end_ns = FOREVER if isinf(end_s) else min(FOREVER, max(start_ns + 1, round(end_s * NANOSECONDS)))
        for target in hit:
            yield Fault(
                kind=source.kind, target=target, start_ns=start_ns, end_ns=end_ns, factor=factor, cause=site.cause
            )
