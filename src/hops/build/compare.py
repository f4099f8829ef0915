"""One spec under several schedules, side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hops.build.run import SimulatedRun, simulate, summarize
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

    def summaries(self) -> dict[str, Summary]:
        """The figures of every run."""
        return {name: summarize(run) for name, run in self.runs.items()}


def compare(spec: Spec, schedules: Sequence[str]) -> Compared:
    """Simulate a spec under several schedules, each with its own parameters' defaults.

    ALL alone stands for every schedule. Raises UsageError for an unknown schedule, which is a slip of the pen and not
    one that cannot run here; DoesNotFitError if none can run.
    """
    names = sorted(SCHEDULERS.names()) if list(schedules) == [ALL] else schedules
    for name in names:
        SCHEDULERS.get(name)
    runs, refused = {}, {}
    for name in names:
        try:
            runs[name] = simulate(spec.with_({"pipeline.schedule": name}))
        except (DoesNotFitError, ProgramError, SpecError, StalledError, UsageError) as error:
            refused[name] = str(error).removeprefix("pipeline.schedule: ")
    if not runs:
        why = "\n".join(f"{name}: {why}" for name, why in refused.items())
        raise DoesNotFitError(f"none of the schedules can run\n{why}")
    return Compared(runs=runs, refused=refused)
