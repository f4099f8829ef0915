"""One spec under several schedules, side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hops.build.run import SimulatedRun, simulate, summarize
from hops.decode.document import parse
from hops.errors import DoesNotFitError, ProgramError, SpecError, StalledError, UsageError
from hops.metrics.summary import Summary
from hops.schedules.base import SCHEDULERS
from hops.spec.spec import Spec

ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Runs by schedule, and why those that cannot run here cannot."""

    runs: Mapping[str, SimulatedRun]
    refused: Mapping[str, str]

    def __repr__(self) -> str:
        refused = f"; cannot run: {', '.join(self.refused)}" if self.refused else ""
        return f"Compared({', '.join(self.runs)}{refused})"

    def summaries(self) -> dict[str, Summary]:
        """The figures of every run."""
        return {name: summarize(run) for name, run in self.runs.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """One of the things to compare: a spec, and what is changed in it first."""

    spec: Spec
    changes: Mapping[str, Any]

    def made(self) -> Spec:
        """The changed spec. Raises SpecError."""
        return self.spec.with_(self.changes)


def compare(spec: Spec, schedules: Sequence[str]) -> Compared:
    """Simulate a spec under several schedules: `1f1b`, `interleaved_1f1b:chunks=4`, or ALL; see `compare_all`."""
    return compare_all(variations({"": spec}, schedules))


def compare_all(each: Mapping[str, Variation]) -> Compared:
    """Simulate each. Those that cannot run are listed with the reason; raises DoesNotFitError if none can run."""
    runs, refused = {}, {}
    for name, variation in each.items():
        try:
            runs[name] = simulate(variation.made())
        except (DoesNotFitError, ProgramError, SpecError, StalledError, UsageError) as error:
            refused[name] = str(error).removeprefix("pipeline.schedule: ")
    if not runs:
        why = "\n".join(f"{name}: {why}" for name, why in refused.items())
        raise DoesNotFitError(f"none of the schedules can run\n{why}")
    return Compared(runs=runs, refused=refused)


def variations(
    specs: Mapping[str, Spec], schedules: Sequence[str], vary: tuple[str, Sequence[Any]] | None = None
) -> dict[str, Variation]:
    """Every spec under every schedule at every value of one more key, by names that tell them apart.

    Args:
        specs: by name; of a single one the name is left out.
        schedules: `NAME` or `NAME:PARAMETER=VALUE:...`; ALL alone stands for every schedule; () keeps each spec's own.
        vary: a key and its values.

    Raises UsageError for an unknown schedule, which is a slip of the pen and not one that cannot run here.
    """
    if list(schedules) == [ALL]:
        schedules = sorted(SCHEDULERS.names())
    chosen = [(text, {"pipeline.schedule": parse_schedule(text)}) for text in schedules] or [("", {})]
    places: list[tuple[str, dict[str, Any]]] = [("", {})]
    if vary is not None:
        key, values = vary
        places = [(f"{key.rpartition('.')[2]}={value}", {key: value}) for value in values]
    found = {}
    for name, spec in specs.items():
        for schedule, change in chosen:
            for place, other in places:
                words = [name if len(specs) > 1 else "", schedule, place]
                found[" ".join(filter(None, words)) or spec.pipeline.schedule.name] = Variation(
                    spec=spec, changes={**change, **other}
                )
    return found


def parse_schedule(text: str) -> str | dict[str, Any]:
    """`1f1b`, or `interleaved_1f1b:chunks=4` with parameters, as a spec has it. Raises UsageError."""
    name, *parameters = text.split(":")
    SCHEDULERS.get(name)
    if not parameters:
        return name
    found: dict[str, Any] = {"name": name}
    for parameter in parameters:
        key, equals, value = parameter.partition("=")
        if not equals or not key or not value:
            raise UsageError(f"got the schedule {text!r}, expected NAME:PARAMETER=VALUE, such as {name}:chunks=4")
        found[key] = parse(value, name=text).data
    return found
