"""The spec: one document that describes a run, in seven sections."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field

from hops import model
from hops.decode.quantities import Count, Flag, Index, Name, Number, Seconds, Section, Seed, problem
from hops.hardware.mesh import Mesh
from hops.program.shape import Shape
from hops.recent import Recent
from hops.schedules.base import SCHEDULERS
from hops.spec.distributions import Time
from hops.spec.failure import FailureSection
from hops.spec.hardware import ConnectionField, HardwareSection
from hops.spec.model import as_fields
from hops.spec.parallel import ParallelSection
from hops.spec.pipeline import ELEMENT_BYTES, PipelineSection

Kind = Literal["adam", "sgd_momentum", "sgd"]
Reduction = Literal["auto", "ring", "tree", "none"]


class OptimizerSection(Section):
    """Reductions, optimizer step and the gap before the next iteration."""

    enabled: Flag = Field(default=True, description="false: iterations consist of the pipeline alone")
    kind: Kind = Field(default="adam", description="decides the default of state_bytes")
    state_bytes: Number | None = Field(
        default=None, description="states per parameter, master weights included; default: by kind and precision"
    )
    fused: Flag = Field(default=True, description="one kernel for the step; false: torch.optim's foreach kernels")
    distributed: Flag = Field(
        default=False,
        description="copies share the states (ZeRO-1), scatter gradients and gather parameters; as parallel.shard",
    )
    gradient_bytes: Number = Field(default=4, description="size of one gradient, in memory and in reductions")
    tied_embeddings: Flag | None = Field(
        default=None,
        description="first and last stage share the embedding and reduce its gradients; default: the model's",
    )
    data_parallel: Count = Field(default=1, description="copies of the pipeline; as parallel.data")
    gradient_reduction: Reduction | None = Field(
        default=None,
        description="algorithm of the data-parallel reduction; auto: NCCL's choice, at measured rates; default: auto "
        "where parallel states axes, else ring",
    )
    reduction_interconnect: ConnectionField | None = Field(
        default=None, description="between the copies; default: as between nodes"
    )
    synchronized: Flag = Field(
        default=True, description="all ranks wait before the step (global gradient norm); false: each goes on alone"
    )
    update_time: Time | None = Field(
        default=None, description="time of the step; default: its bytes over memory bandwidth"
    )
    host_gap: Seconds | None = Field(
        default=None, description="host time before the next iteration starts; default: the profile's, or none"
    )


EngineName = Literal["auto", "reference", "compiled"]


class SimulationSection(Section):
    """How much is simulated, and with which random numbers."""

    iterations: Count = Field(default=3, description="optimizer steps to simulate")
    warmup_iterations: Index = Field(default=0, description="first iterations that metrics leave out")
    seed: Seed = Field(default=0, description="the one seed of all random draws")
    engine: EngineName = Field(default="auto", description="what simulates; the trace is the same")


def _suffix(*suffixes: str) -> AfterValidator:
    def check(path: str) -> str:
        if not path.endswith(suffixes):
            raise problem(f"got {path!r}, expected a file name that ends in {' or '.join(suffixes)}")
        return path

    return AfterValidator(check)


class OutputSection(Section):
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


_FEW_POSITIONS = 1024  # of larger pipelines nothing is remembered
_POSITIONS: Recent[tuple[tuple[str, ...], ...]] = Recent(64)


class Spec(Section):
    """A whole run, as `hops run` takes it."""

    simulation: SimulationSection = SimulationSection()
    pipeline: PipelineSection
    parallel: ParallelSection = ParallelSection()
    hardware: HardwareSection
    optimizer: OptimizerSection = OptimizerSection()
    failure: FailureSection = FailureSection()
    output: OutputSection = OutputSection()

    def shape(self) -> Shape:
        """Microbatches, and the rank of every stage, as the schedule places them. Raises UsageError if it cannot."""
        ranks = self.parallel.pipeline_ranks(len(self.hardware.ranks()))
        return self.pipeline.schedule.make().shape(ranks, self.pipeline.microbatches)

    def mesh(self) -> Mesh:
        """The axes of the whole job. The hardware section lists the devices of all its ranks, or those of one copy."""
        return self.parallel.mesh(devices=len(self.hardware.ranks()), data=self.optimizer.data_parallel)

    def positions(self) -> tuple[tuple[str, ...], ...]:
        """The listed devices of every pipeline position, in the mesh's order."""
        about = (self.hardware, self.parallel, self.optimizer)  # all that is asked here
        return _POSITIONS.of(about, self._positions, keep=lambda found: len(found) <= _FEW_POSITIONS)

    def _positions(self) -> tuple[tuple[str, ...], ...]:
        listed, mesh = self.hardware.ranks(), self.mesh()
        if len(listed) != mesh.num_ranks:  # the other copies are elsewhere
            mesh = replace(mesh, data=1, expert=1, expert_tensor=1)
        return tuple(tuple(listed[rank] for rank in group) for group in mesh.positions().tolist())

    def ranks(self) -> tuple[str, ...]:
        """The device that stands for each pipeline position: the first one listed."""
        return tuple(group[0] for group in self.positions())

    def with_(self, changes: Mapping[str, Any]) -> "Spec":
        """The spec with other values, checked like a file: `spec.with_({"pipeline.microbatches": 16})`.

        What the spec left to defaults follows from the new values. A path names a key as messages do, such as
        `hardware.nodes[0].count`; a value is plain data as a file has it. Raises SpecError with every problem.
        """
        from hops.spec.change import changed

        return changed(self, changes)

    def __repr__(self) -> str:
        ranks = ", ".join(f"{number} {name}" for name, number in self._devices().items())
        return f"Spec({self.pipeline.schedule.name}, {self.pipeline.microbatches} microbatches, {ranks})"

    __str__ = __repr__

    def _devices(self) -> Counter[str]:
        """How many devices of each type it names."""
        counts: Counter[str] = Counter()
        for node in self.hardware.nodes:
            for device in node.devices:
                counts[device.type] += node.count * device.count
        return counts


S = TypeVar("S", bound=Section)


def _filled(section: S, **defaults: Any) -> S:
    """The section with defaults filled in, which do not count as written."""
    full = section.model_copy(update=defaults)
    full.model_fields_set.intersection_update(section.model_fields_set)
    return full


FILLED = ("pipeline", "optimizer")  # the sections that get values when a spec is read
_PIPELINES: Recent[PipelineSection] = Recent(1024)
_OPTIMIZERS: Recent[OptimizerSection] = Recent(1024)


def resolve(spec: Spec) -> Spec:
    """The same spec with the defaults of schedule, model, sequence length and optimizer filled in."""
    written, schedule = spec.pipeline, SCHEDULERS.get(spec.pipeline.schedule.name)
    pipeline = _PIPELINES.of((written, schedule), lambda: _pipeline(written))
    about = (spec.optimizer, pipeline, spec.parallel)
    optimizer = _OPTIMIZERS.of(about, lambda: _optimizer(*about))
    return _filled(spec, pipeline=pipeline, optimizer=optimizer)


def _pipeline(pipeline: PipelineSection) -> PipelineSection:
    schedule = pipeline.schedule
    parameters = {**schedule.defaults(), **schedule.parameters}
    pipeline = _filled(pipeline, schedule=schedule.model_copy(update={"parameters": parameters}))
    if pipeline.model is None:
        return pipeline
    transformer = pipeline.model.transformer(pipeline.sequence_length)
    shape = _filled(pipeline.model, **as_fields(transformer))
    length = transformer.max_positions if pipeline.sequence_length is None else pipeline.sequence_length
    return _filled(pipeline, model=shape, sequence_length=length)


def _optimizer(optimizer: OptimizerSection, pipeline: PipelineSection, parallel: ParallelSection) -> OptimizerSection:
    changes: dict[str, object] = {}
    if parallel.data is not None:
        changes["data_parallel"] = parallel.data
    if parallel.shard is not None:
        changes["distributed"] = parallel.shard != "none"
    if optimizer.gradient_reduction is None:
        changes["gradient_reduction"] = "auto" if parallel.states_axes else "ring"
    if optimizer.state_bytes is None:
        named = model.Optimizer.named(optimizer.kind, element_bytes=ELEMENT_BYTES[pipeline.precision])
        changes["state_bytes"] = named.state_bytes
    if optimizer.tied_embeddings is None:
        changes["tied_embeddings"] = bool(pipeline.model is not None and pipeline.model.tied)
    return _filled(optimizer, **changes)
