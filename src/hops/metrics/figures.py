"""Some figures of a run by name, without the time that all of them take."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, get_args, get_type_hints

from hops.errors import UsageError
from hops.metrics.bubble import iteration_fraction, pipeline_fraction
from hops.metrics.summarize import SECTIONS, PartsFound
from hops.metrics.summary import RunFacts, Summary
from hops.trace.trace import Trace

Figure = float | int | str | None


def figures(trace: Trace, facts: RunFacts, only: Sequence[str]) -> dict[str, Any]:
    """The figures of these names, in this order; a section's name gives the whole section.

    Names are the paths of the summary's fields, such as `iteration_time.mean_ms` or `phases`, and of the fullest
    device `peak_memory.bytes` and `peak_memory.share` (of what it has; None where memory is not known).

    Raises UsageError for a name that there is not, and if warm-up leaves no iteration.
    """
    for name in only:
        check_figure(name)
    found = PartsFound(trace, facts)
    sections: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name in only:
        if name in _QUICK:
            values[name] = _QUICK[name](found)
            continue
        section, *path = name.split(".")
        if section not in sections:
            sections[section] = SECTIONS[section](found)
        value = sections[section]
        for part in path:
            value = None if value is None else getattr(value, part)
        values[name] = value
    return values


def check_figure(name: str) -> None:
    """Raise UsageError, with the nearest name, unless `figures` knows the name."""
    if name not in SECTIONS and name not in figure_names():
        near = get_close_matches(name, figure_names(), n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"unknown figure {name!r}, expected one such as iteration_time.mean_ms{hint}")


@cache
def figure_names() -> tuple[str, ...]:
    """Names of all figures that are one number each."""
    return tuple(dict.fromkeys([*_leaves(Summary, ""), *_QUICK]))


def _leaves(kind: Any, path: str) -> list[str]:
    """Paths to the numbers of a dataclass; lists (of ranks, stages, links, values) are no number."""
    found: list[str] = []
    hints = get_type_hints(kind)
    for field in fields(kind):
        members = get_args(hints[field.name]) or (hints[field.name],)
        inner = [each for each in members if is_dataclass(each)]
        if inner and Ellipsis not in members:
            found += _leaves(inner[0], f"{path}{field.name}.")
        elif Ellipsis not in members:
            found.append(path + field.name)
    return found


def _fullest_bytes(found: PartsFound) -> int | None:
    return max((peak.total for peak in found.memory), default=None)


def _fullest_share(found: PartsFound) -> float | None:
    has = found.facts.memory_bytes
    return max((peak.total / size for peak, size in zip(found.memory, has, strict=False)), default=None)


_QUICK: Mapping[str, Callable[[PartsFound], Figure]] = {  # in less time than their section
    "bubble.pipeline.fraction": lambda found: pipeline_fraction(found.run),
    "bubble.iteration.fraction": lambda found: iteration_fraction(found.run),
    "peak_memory.bytes": _fullest_bytes,
    "peak_memory.share": _fullest_share,
}
