"""The spec: one document that describes a run, in six sections."""

from typing import Annotated

from pydantic import AfterValidator, Field

from hops.config.failure import Failure
from hops.config.fields import Count, Index, Name, Section, Seed, problem
from hops.config.hardware import Hardware
from hops.config.optimizer import Optimizer
from hops.config.pipeline import Pipeline
from hops.schedule import Shape


class Simulation(Section):
    """How much is simulated, and with which random numbers."""

    iterations: Count = Field(default=3, description="optimizer steps to simulate")
    warmup_iterations: Index = Field(default=0, description="first iterations that metrics leave out")
    seed: Seed = Field(default=0, description="the one seed of all random draws")


def _suffix(*suffixes: str) -> AfterValidator:
    def check(path: str) -> str:
        if not path.endswith(suffixes):
            raise problem(f"got {path!r}, expected a file name that ends in {' or '.join(suffixes)}")
        return path

    return AfterValidator(check)


class Output(Section):
    """Files to write; null writes none."""

    summary: Annotated[Name, _suffix(".json")] | None = Field(default=None, description="figures of the run")
    events: Annotated[Name, _suffix(".csv", ".csv.gz", ".parquet")] | None = Field(
        default=None, description="every action and message"
    )
    trace: Annotated[Name, _suffix(".json", ".json.gz")] | None = Field(
        default=None, description="Chrome trace for Perfetto"
    )
    timeline: Annotated[Name, _suffix(".png", ".svg")] | None = Field(
        default=None, description="picture of what ran when"
    )
    dashboard: Annotated[Name, _suffix(".png", ".svg")] | None = Field(
        default=None, description="eight panels of figures"
    )
    faults: Annotated[Name, _suffix(".json")] | None = Field(
        default=None, description="what broke, if anything could: a plan for failure.plan"
    )


class Spec(Section):
    """A whole run, as `hops run` takes it."""

    simulation: Simulation = Simulation()
    pipeline: Pipeline
    hardware: Hardware
    optimizer: Optimizer = Optimizer()
    failure: Failure = Failure()
    output: Output = Output()

    def shape(self) -> Shape:
        """Microbatches, and the rank of every stage, as the schedule places them. Raises UsageError if it cannot."""
        return self.pipeline.schedule.make().shape(len(self.hardware.ranks()), self.pipeline.microbatches)
