"""Plans as they come out: figures, the bound they are held against, and the spec that reproduces them."""

from dataclasses import dataclass
from typing import Any

from hops.api import SimulatedRun
from hops.config.spec import Spec
from hops.metrics import Summary
from hops.plan.objective import Objective

FORMAT = "hops-plan/1"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """One simulated plan.

    Attributes:
        spec: closed; `hops run` of it gives `summary` again.
        summary: of the simulated run, with the spec's jitter, iterations and seed.
        value: what is ranked by, to be small; see Objective.
        gap: value over the bound over all choices, less one.
        cost_per_million: price of a million tokens (of a million samples without a model), on all replicas.
        price_per_hour: of all devices in use.
        fullness: peak memory over capacity of the fullest device; None if sizes are not known.
        limit: what keeps it from being faster, in words.
    """

    spec: Spec
    run: SimulatedRun
    summary: Summary
    value: float
    gap: float
    cost_per_million: float
    price_per_hour: float
    fullness: float | None
    limit: str

    @property
    def seconds(self) -> float:
        """Of an iteration, the mean."""
        return self.summary.iteration_time.mean_ms / 1e3

    def to_dict(self) -> dict[str, Any]:
        """Plain data, keys with units."""
        pipeline = self.spec.pipeline
        rates = self.summary.throughput
        return {
            "schedule": pipeline.schedule.model_dump(mode="json"),
            "placement": list(self.spec.hardware.ranks()),
            "partition": list(pipeline.partition) if isinstance(pipeline.partition, tuple) else pipeline.partition,
            "microbatches": pipeline.microbatches,
            "microbatch_size": pipeline.microbatch_size,
            "recompute": pipeline.recompute,
            "iteration_ms": self.summary.iteration_time.mean_ms,
            "samples_per_s": rates.samples_per_s,
            "tokens_per_s": rates.tokens_per_s,
            "price_per_hour": self.price_per_hour,
            "cost_per_million": self.cost_per_million,
            "peak_memory_fraction": self.fullness,
            "gap_pct": 100 * self.gap,
            "limit": self.limit,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much was looked at; the same effort gives the same plans.

    Attributes:
        layouts: valued by their closed-form floor.
        rehearsed: programs evaluated.
        simulated: runs of the engine.
        exhaustive: whether the best plan is proved: all layouts were valued, and all that could be better simulated.
        interrupted: whether the user stopped it.
    """

    layouts: int
    rehearsed: int
    simulated: int
    exhaustive: bool
    interrupted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport:
    """Ranked plans, best first, and the bound over all choices: no plan can have a smaller value.

    Attributes:
        others: plans that were simulated as well.
        bound: in the unit of `value`.
        bound_ms: iteration time that no plan of the best plan's batch can beat.
    """

    objective: Objective
    plans: tuple[Plan, ...]
    others: tuple[Plan, ...]
    bound: float
    bound_ms: float
    effort: Effort

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `hops plan --json` prints it."""
        return {
            "format": FORMAT,
            "objective": str(self.objective),
            "bound": self.bound,
            "bound_ms": self.bound_ms,
            "gap_pct": 100 * self.plans[0].gap if self.plans else None,
            "effort": {
                "layouts": self.effort.layouts,
                "rehearsed": self.effort.rehearsed,
                "simulated": self.effort.simulated,
                "exhaustive": self.effort.exhaustive,
                "interrupted": self.effort.interrupted,
            },
            "plans": [{"rank": number, **plan.to_dict()} for number, plan in enumerate(self.plans, start=1)],
        }
