"""A fault plan as JSON, one fault a line, saved with the run that it belongs to."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hops.errors import UsageError
from hops.faults.plan import FOREVER, Fault, FaultKind, FaultPlan, is_factor
from hops.files import atomic_write

FORMAT = "hops-faults/1"
_KEYS = ("kind", "target", "start_ns", "end_ns", "factor", "cause")
EXAMPLE = '{"kind": "stop", "target": "node0/0", "start_ns": 1000, "end_ns": 2000}'


def save_plan(plan: FaultPlan, path: Path | str) -> None:
    """Write a plan; `load_plan` gives back an equal one. Raises UsageError if the file cannot be written."""
    with atomic_write(Path(path)) as out:
        out.write(plan_to_json(plan))


def plan_to_json(plan: FaultPlan) -> str:
    """The text of the file. `end_ns` null: never repaired; `factor` and `cause` only where they say something."""
    lines = ",\n".join(f"    {json.dumps(_entry(fault), ensure_ascii=False)}" for fault in plan)
    body = f"[\n{lines}\n  ]" if lines else "[]"
    return f'{{\n  "format": "{FORMAT}",\n  "faults": {body}\n}}\n'


def load_plan(path: Path | str) -> FaultPlan:
    """Read a plan. Raises UsageError saying the file, the fault and what is expected."""
    path = Path(path)
    text = read_text(path, expected="a plan that `hops faults draw` wrote")
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}:{error.lineno}:{error.colno}: is not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets without end
        raise UsageError(f"{path}: is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT or not isinstance(content.get("faults"), list):
        raise UsageError(f'{path}: is no fault plan: expected {{"format": "{FORMAT}", "faults": [...]}}')
    return FaultPlan.of(_fault(entry, f"{path}: faults[{index}]") for index, entry in enumerate(content["faults"]))


def read_text(path: Path, *, expected: str) -> str:
    """The content of a text file. Raises UsageError saying why it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        reason = "it is not text in UTF-8"
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    raise UsageError(f"{path}: cannot be read: {reason}; expected {expected}")


def _entry(fault: Fault) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "kind": str(fault.kind),
        "target": fault.target,
        "start_ns": fault.start_ns,
        "end_ns": None if fault.end_ns >= FOREVER else fault.end_ns,
    }
    if fault.factor != 1.0:
        entry["factor"] = fault.factor
    if fault.cause:
        entry["cause"] = fault.cause
    return entry


def _fault(entry: object, where: str) -> Fault:
    if not isinstance(entry, dict):
        raise UsageError(f"{where}: got {entry!r}, expected a mapping such as {EXAMPLE}")
    unknown = [key for key in entry if key not in _KEYS]
    missing = [key for key in _KEYS[:4] if key not in entry]
    if unknown or missing:
        what = f"unknown key {unknown[0]!r}" if unknown else f"{missing[0]!r} is missing"
        raise UsageError(f"{where}: {what}, expected {', '.join(_KEYS)}, such as {EXAMPLE}")
    full = {"factor": 1.0, "cause": "", **entry}
    kinds = [kind.value for kind in FaultKind]
    _check(full["kind"] in kinds, where, "kind", full, f"one of {', '.join(kinds)}")
    kind = FaultKind(full["kind"])
    _check(isinstance(full["target"], str) and full["target"] != "", where, "target", full, "a device id or a link")
    start, end = full["start_ns"], FOREVER if full["end_ns"] is None else full["end_ns"]
    _check(_is_time(start), where, "start_ns", full, "a whole number of at least 0, in ns")
    _check(_is_time(end) and end > start, where, "end_ns", full, "a whole number above start_ns, or null for never")
    factor = full["factor"]
    numeric = isinstance(factor, int | float) and not isinstance(factor, bool)
    needed = {FaultKind.SLOW: "more than 1", FaultKind.LINK_SLOW: "more than 0 and less than 1"}.get(kind, "1 or none")
    _check(numeric and is_factor(kind, factor), where, "factor", full, f"{needed} for {kind}")
    _check(isinstance(full["cause"], str), where, "cause", full, "text")
    return Fault(
        kind=kind, target=full["target"], start_ns=start, end_ns=end, factor=float(factor), cause=full["cause"]
    )


def _is_time(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= FOREVER


def _check(ok: bool, where: str, key: str, entry: Mapping[str, Any], expected: str) -> None:
    if not ok:
        raise UsageError(f"{where}: {key}: got {entry[key]!r}, expected {expected}")
