"""Checks across keys: names that refer to something, numbers that must agree. Each yields all it finds."""

from collections.abc import Iterator
from dataclasses import dataclass

from hops.decode.document import Complaint
from hops.errors import HopsError
from hops.hardware.catalog import Catalog
from hops.recent import Recent
from hops.schedules.base import SCHEDULERS
from hops.spec.failure import FailureSection
from hops.spec.failure_targets import check_failure
from hops.spec.hardware import HardwareSection, check_hardware, steady
from hops.spec.parallel import ParallelSection, check_parallel
from hops.spec.pipeline import PipelineSection, check_pipeline, check_schedule
from hops.spec.schedule import ScheduleChoice
from hops.spec.spec import OptimizerSection, OutputSection, SimulationSection, Spec
from hops.units import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """The sections of a spec that are valid in themselves; the others are None."""

    simulation: SimulationSection | None
    schedule: ScheduleChoice | None
    pipeline: PipelineSection | None
    parallel: ParallelSection | None
    hardware: HardwareSection | None
    optimizer: OptimizerSection | None
    failure: FailureSection | None
    output: OutputSection | None

    @classmethod
    def of(cls, spec: Spec) -> "Sections":
        """All sections of a valid spec."""
        return cls(
            simulation=spec.simulation,
            schedule=spec.pipeline.schedule,
            pipeline=spec.pipeline,
            parallel=spec.parallel,
            hardware=spec.hardware,
            optimizer=spec.optimizer,
            failure=spec.failure,
            output=spec.output,
        )


def cross_check(sections: Sections, catalog: Catalog | None) -> Iterator[Complaint]:
    """Everything that is wrong between keys, as far as the sections are valid. `catalog` None: it cannot be read."""
    if sections.simulation is not None:
        yield from _simulation(sections.simulation)
    if sections.output is not None:
        yield from _output(sections.output)
    if sections.optimizer is not None:
        yield from steady(sections.optimizer.reduction_interconnect, ("optimizer", "reduction_interconnect"))
    if sections.optimizer is not None and sections.pipeline is not None:
        yield from _optimizer(sections.optimizer, sections.pipeline)
    yield from _arranged(sections, catalog)


_FOUND: Recent[list[Complaint]] = Recent(1024)


def _arranged(sections: Sections, catalog: Catalog | None) -> list[Complaint]:
    """What is wrong with hardware, schedule and pipeline; the same of the same sections, unless they name files."""
    schedule, pipeline, hardware, failure = sections.schedule, sections.pipeline, sections.hardware, sections.failure
    if schedule is None or pipeline is None or hardware is None or failure is None or failure.plan or failure.trace:
        return list(_arrangement(sections, catalog))
    try:
        maker = SCHEDULERS.get(schedule.name)
    except HopsError:
        return list(_arrangement(sections, catalog))
    about = (maker, schedule, pipeline, hardware, failure, catalog)
    return _FOUND.of(about, lambda: list(_arrangement(sections, catalog)))


def _arrangement(sections: Sections, catalog: Catalog | None) -> Iterator[Complaint]:
    in_hardware = list(check_hardware(sections.hardware, catalog)) if sections.hardware is not None else []
    in_schedule = list(check_schedule(sections.schedule)) if sections.schedule is not None else []
    yield from in_hardware
    yield from in_schedule
    if sections.failure is not None and sections.hardware is not None and not in_hardware:
        yield from check_failure(sections.failure, sections.hardware)
    hardware = None if in_hardware else sections.hardware
    ranks = None
    if sections.parallel is not None and sections.optimizer is not None:
        in_parallel = list(_parallel(sections.parallel, sections.optimizer, hardware))
        yield from in_parallel
        if hardware is not None and not in_parallel and sections.failure is not None:
            yield from _failing_groups(sections.failure, sections.parallel, len(hardware.ranks()))
        if hardware is not None and not in_parallel:
            ranks = sections.parallel.pipeline_ranks(len(hardware.ranks()))
    if sections.pipeline is not None:
        yield from check_pipeline(sections.pipeline, hardware, catalog, ranks, schedule_is_sound=not in_schedule)


def _simulation(simulation: SimulationSection) -> Iterator[Complaint]:
    if simulation.warmup_iterations >= simulation.iterations:
        what = (
            f"got {simulation.warmup_iterations} of {simulation.iterations} iterations, expected fewer, "
            "so that some are left to measure; lower it, or raise simulation.iterations"
        )
        yield Complaint(path=("simulation", "warmup_iterations"), what=what)


def _output(output: OutputSection) -> Iterator[Complaint]:
    seen: dict[str, str] = {}
    for key, path in output.model_dump(exclude_none=True).items():
        if path in seen:
            what = f"got {shown(path)}, which output.{seen[path]} writes, too, expected a file of its own; rename one"
            yield Complaint(path=("output", key), what=what)
        seen[path] = key


def _parallel(
    parallel: ParallelSection, optimizer: OptimizerSection, hardware: HardwareSection | None
) -> Iterator[Complaint]:
    stated = optimizer.model_fields_set
    yield from check_parallel(
        parallel,
        devices=None if hardware is None else len(hardware.ranks()),
        data=optimizer.data_parallel if "data_parallel" in stated else None,
        distributed=optimizer.distributed if "distributed" in stated else None,
    )


def _failing_groups(failure: FailureSection, parallel: ParallelSection, devices: int) -> Iterator[Complaint]:
    """One device stands for its group, so that what breaks in the others is not seen."""
    ranks = parallel.pipeline_ranks(devices)
    if devices != ranks and (failure.enabled or failure.models):
        what = (
            f"got faults of {devices} devices that are {ranks} pipeline ranks, expected one device per rank: what "
            "breaks in one of a group is not modelled; list the devices of one pipeline, and copies as "
            "optimizer.data_parallel"
        )
        yield Complaint(path=("failure",), what=what)


def _optimizer(optimizer: OptimizerSection, pipeline: PipelineSection) -> Iterator[Complaint]:
    if optimizer.tied_embeddings and pipeline.model is None:
        what = "got true with pipeline.stage_times, expected a pipeline.model, whose embedding has a size; remove it"
        yield Complaint(path=("optimizer", "tied_embeddings"), what=what)
