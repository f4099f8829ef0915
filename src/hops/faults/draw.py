"""A plan is drawn from sources: a model on targets. Each (source, target) has random generators of its own."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import isinf
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hops.decode.decode import read_text
from hops.distributions import Distribution, generator_from, generator_states, purpose_key
from hops.errors import HopsError, UnitError, UsageError
from hops.faults.inventory import Inventory, Site, targets
from hops.faults.models import FaultModel, Generators, Window
from hops.faults.plan import FOREVER, Fault, FaultKind, FaultPlan, is_factor
from hops.units import NS_PER_S, format_time, parse_time, to_ns

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

    Raises UsageError if there are more than a million, targets that a kind of fault cannot hit, or a model that fails.
    """
    return draw_plans([tuple(sources)], seed, horizon_s)[0]


def draw_plans(groups: Sequence[Sequence[FaultSource]], seed: int, horizon_s: float) -> list[FaultPlan]:
    """A plan from each group of sources, as `draw_plan` draws it; many groups are faster together."""
    streams = _Streams(seed, [(source, site) for sources in groups for source in sources for site in source.sites])
    plans, number = [], 0
    for sources in groups:
        drawn: list[Fault] = []
        for source in sources:
            for site in source.sites:
                drawn += _faults(source, site, partial(streams.of, number), horizon_s, room=MOST_FAULTS - len(drawn))
                number += 1
        plans.append(FaultPlan.of(drawn))
    return plans


class _Streams:
    """Random generators of (source, site, purpose), each the one that `generator` gives; made for all sites at once."""

    def __init__(self, seed: int, places: Sequence[tuple[FaultSource, Site]]) -> None:
        self._seed, self._places = seed, places
        self._states: dict[str, NDArray[np.uint64]] = {}  # by purpose, shape (places, 4)

    def of(self, place: int, purpose: str) -> np.random.Generator:
        if purpose not in self._states:
            names = [f"fault {source.name} {site.family} {purpose}" for source, site in self._places]
            key_of = {name: purpose_key(name) for name in dict.fromkeys(names)}
            keys = [(key_of[name], site.number) for name, (_, site) in zip(names, self._places, strict=True)]
            self._states[purpose] = generator_states(self._seed, np.asarray(keys, dtype=np.uint32))
        return generator_from(self._states[purpose][place])


def _faults(
    source: FaultSource, site: Site, generator_of: Generators, horizon_s: float, *, room: int
) -> Iterator[Fault]:
    hit = targets(site, source.kind)
    windows = _windows(source, generator_of, horizon_s, room // len(hit) + 1)
    if not windows:
        return
    if len(windows) * len(hit) > room:
        raise UsageError(
            f"more than {MOST_FAULTS:,} faults in {format_time(horizon_s)} ({source.name}); raise the time between "
            "failures, or lower the horizon"
        )
    factors = [1.0] * len(windows)
    if source.factor is not None:
        factors = source.factor.sample(generator_of("factor"), len(windows)).tolist()
    for (start_s, end_s), factor in zip(windows, factors, strict=True):
        if not is_factor(source.kind, factor):
            continue
        start_ns = to_ns(start_s)
        end_ns = FOREVER if isinf(end_s) else min(FOREVER, max(start_ns + 1, to_ns(end_s)))
        for target in hit:
            yield Fault(
                kind=source.kind, target=target, start_ns=start_ns, end_ns=end_ns, factor=factor, cause=site.cause
            )


def _windows(source: FaultSource, generator_of: Generators, horizon_s: float, most: int) -> list[Window]:
    """What the model says. Raises UsageError, naming the model, if it fails or says what cannot be."""
    try:
        windows = list(islice(source.model.windows(generator_of, horizon_s), most))
        in_order = _in_order_before(windows, horizon_s)
    except HopsError:
        raise
    except Exception as error:
        raise UsageError(f"{_said(source)} failed: {type(error).__name__}: {error}") from error
    if not in_order:
        raise UsageError(
            f"{_said(source)} gave the windows {str(windows)[:120]}, expected pairs of seconds in order, not "
            f"overlapping, that start from 0 on and before {horizon_s:g} s"
        )
    return windows


def _in_order_before(windows: Iterable[Window], horizon_s: float) -> bool:
    free_from = 0.0
    for start_s, end_s in windows:
        if not (free_from <= start_s <= end_s and start_s < horizon_s):
            return False
        free_from = end_s
    return True


def _said(source: FaultSource) -> str:
    kind = type(source.model)
    return f"fault model {kind.__module__}.{kind.__qualname__} ({source.name})"


_EXAMPLE = "expected time,add|remove,node, such as 120.5,remove,node3"


class _Event(NamedTuple):
    """One line."""

    where: str
    time_ns: int
    adds: bool
    node: str


def load_availability(path: Path | str, inventory: Inventory) -> FaultPlan:
    """Stops from a trace: a node (host or device) is down from `remove` to `add`, or for good.

    Times are seconds, or have a unit, and never fall. A first line `time,event,node`, empty lines and # comments are
    skipped. A node whose first event is `add` is down until then. Raises UsageError with file and line.
    """
    path = Path(path)
    lines = read_text(path, error=UsageError, expected="lines of time,add|remove,node").splitlines()
    since: dict[str, int | None] = {}  # by node: down since then; None: it is up
    sites: dict[str, Site] = {}
    faults: list[Fault] = []
    for event in _in_order(path, lines):
        node = event.node
        if node not in sites:
            sites[node] = _site(event, inventory)
            since[node] = 0 if event.adds else None
        down = since[node]
        if event.adds is (down is None):
            state = "there already; expected remove" if event.adds else "away already; expected add"
            raise UsageError(f"{event.where}: got {'add' if event.adds else 'remove'} of {node}, which is {state}")
        if down is not None and event.time_ns > down:
            faults += _stops(sites[node], down, event.time_ns, path)
        since[node] = None if event.adds else event.time_ns
    for node, down in since.items():
        if down is not None:
            faults += _stops(sites[node], down, FOREVER, path)
    return FaultPlan.of(faults)


def _in_order(path: Path, lines: list[str]) -> Iterator[_Event]:
    last = 0
    for number, line in enumerate(lines, start=1):
        text = line.split("#")[0].strip()
        if not text or (number == 1 and text.replace(" ", "").lower() == "time,event,node"):
            continue
        event = _event(f"{path}:{number}", text)
        if event.time_ns < last:
            raise UsageError(
                f"{event.where}: got the time {event.time_ns / NS_PER_S:g} s after {last / NS_PER_S:g} s, "
                "expected lines in order of time; sort the file"
            )
        last = event.time_ns
        yield event


def _event(where: str, text: str) -> _Event:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 3 or not parts[2]:
        raise UsageError(f"{where}: got {text[:60]!r}, {_EXAMPLE}")
    if parts[1] not in ("add", "remove"):
        raise UsageError(f"{where}: got {parts[1]!r}, expected add or remove")
    return _Event(where, to_ns(_seconds(where, parts[0])), parts[1] == "add", parts[2])


def _seconds(where: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parse_time(text)
        except UnitError:
            raise UsageError(f"{where}: got the time {text!r}, expected seconds, or a time such as 2 h") from None
    if not 0 <= seconds < FOREVER / NS_PER_S:
        raise UsageError(f"{where}: got the time {text!r}, expected at least 0 s")
    return seconds


def _site(event: _Event, inventory: Inventory) -> Site:
    try:
        (site,) = inventory.named([event.node])
    except UsageError as error:
        raise UsageError(f"{event.where}: {error}") from None
    if not site.devices:
        raise UsageError(f"{event.where}: got {site.cause}, expected a host or a device")
    return site


def _stops(site: Site, start_ns: int, end_ns: int, path: Path) -> list[Fault]:
    cause = f"{path.name}: {site.cause}"
    return [
        Fault(kind=FaultKind.STOP, target=device, start_ns=start_ns, end_ns=end_ns, cause=cause)
        for device in site.devices
    ]
