"""Availability traces, as spot instances produce them: `time,add|remove,node` lines become stops."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hops.errors import UnitError, UsageError
from hops.faults.files import read_text
from hops.faults.inventory import Inventory, Site
from hops.faults.plan import FOREVER, Fault, FaultKind, FaultPlan
from hops.units import parse_time

_EXAMPLE = "expected time,add|remove,node, such as 120.5,remove,node3"
NANOSECONDS = 1_000_000_000


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
    lines = read_text(path, expected="lines of time,add|remove,node").splitlines()
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
                f"{event.where}: got the time {event.time_ns / NANOSECONDS:g} s after {last / NANOSECONDS:g} s, "
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
    return _Event(where, round(_seconds(where, parts[0]) * NANOSECONDS), parts[1] == "add", parts[2])


def _seconds(where: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parse_time(text)
        except UnitError:
            raise UsageError(f"{where}: got the time {text!r}, expected seconds, or a time such as 2 h") from None
    if not 0 <= seconds < FOREVER / NANOSECONDS:
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
