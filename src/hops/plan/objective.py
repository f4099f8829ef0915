"""What a plan is judged by; every objective is a number to make small."""

from enum import StrEnum

from hops.errors import UsageError

SECONDS_PER_HOUR = 3600.0


class Objective(StrEnum):
    """What is made best. `pareto` keeps every plan that no other beats in throughput, memory and cost at once."""

    THROUGHPUT = "throughput"
    ITERATION_TIME = "iteration_time"
    COST_PER_TOKEN = "cost_per_token"  # noqa: S105 (no password)
    PARETO = "pareto"

    @classmethod
    def named(cls, name: str) -> "Objective":
        """Raises UsageError for another name."""
        if name not in list(cls):
            raise UsageError(f"--objective: got {name!r}, expected one of {', '.join(cls)}")
        return cls(name)

    def of(self, seconds: float, *, samples: int, price_per_hour: float) -> float:
        """Seconds per sample, seconds, or price per sample; pareto ranks by seconds per sample.

        `seconds` and `samples` are of an iteration, `price_per_hour` of all devices in use.
        """
        if self is Objective.ITERATION_TIME:
            return seconds
        if self is Objective.COST_PER_TOKEN:
            return seconds * price_per_hour / SECONDS_PER_HOUR / samples
        return seconds / samples
