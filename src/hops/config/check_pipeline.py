"""Checks of the pipeline section against the schedule, the devices and the catalog."""

from collections.abc import Iterator

from hops.cluster.catalog import Catalog
from hops.config.document import Complaint
from hops.config.hardware import Hardware
from hops.config.pipeline import Pipeline, StageTimes
from hops.config.schedule import ScheduleChoice
from hops.errors import CatalogError, HopsError
from hops.schedule import Shape


def check_schedule(schedule: ScheduleChoice) -> Iterator[Complaint]:
    """Name and parameters of the schedule."""
    for each in schedule.complaints():
        yield Complaint(path=("pipeline", "schedule", *each.path), what=each.what, at_key=each.at_key)


def check_pipeline(
    pipeline: Pipeline, hardware: Hardware | None, catalog: Catalog | None, *, schedule_is_sound: bool
) -> Iterator[Complaint]:
    """What the schedule, the devices and the model make of the numbers. `hardware` None: it is not sound."""
    yield from _sequence(pipeline)
    if hardware is None:
        return
    if catalog is not None and pipeline.model is not None:
        yield from _precision(pipeline, hardware, catalog)
    if schedule_is_sound:
        yield from _arrangement(pipeline, len(hardware.ranks()))


def _arrangement(pipeline: Pipeline, ranks: int) -> Iterator[Complaint]:
    try:
        shape = pipeline.schedule.make().shape(ranks, pipeline.microbatches)
    except HopsError as error:
        yield Complaint(path=("pipeline", "schedule"), what=f"{error} (ranks: {ranks})")
        return
    yield from _stages(pipeline, shape)


def _sequence(pipeline: Pipeline) -> Iterator[Complaint]:
    if pipeline.model is None or pipeline.sequence_length is None:
        return
    try:
        transformer = pipeline.model.transformer(pipeline.sequence_length)
    except HopsError:
        return  # complained about where it stands
    if transformer.positions == "learned" and pipeline.sequence_length > transformer.max_positions:
        what = (
            f"got {pipeline.sequence_length}, expected at most the model's {transformer.max_positions} learned "
            "positions; lower it, or raise pipeline.model.max_positions"
        )
        yield Complaint(path=("pipeline", "sequence_length"), what=what)


def _precision(pipeline: Pipeline, hardware: Hardware, catalog: Catalog) -> Iterator[Complaint]:
    types = {entry.type for node in hardware.nodes for entry in node.devices if entry.peak is None}
    for name in sorted(types):
        try:
            kind = catalog.device(name)
        except CatalogError:
            continue  # an unknown name is complained about where it stands
        try:
            kind.rate(pipeline.precision)
        except CatalogError as error:
            yield Complaint(path=("pipeline", "precision"), what=str(error))


def _stages(pipeline: Pipeline, shape: Shape) -> Iterator[Complaint]:
    stages = f"{shape.num_stages} (one per stage; {shape.num_ranks} ranks)"
    if isinstance(pipeline.partition, tuple) and len(pipeline.partition) != shape.num_stages:
        what = f"got {len(pipeline.partition)} entries, expected {stages}"
        yield Complaint(path=("pipeline", "partition"), what=what)
    if pipeline.stage_times is not None:
        yield from _lengths(pipeline.stage_times, shape, stages)
        if pipeline.partition != "even":
            what = "got a partition with stage_times, which state the stages themselves; remove one"
            yield Complaint(path=("pipeline", "partition"), what=what)
    if pipeline.model is not None:
        yield from _layers(pipeline, shape)


def _lengths(times: StageTimes, shape: Shape, stages: str) -> Iterator[Complaint]:
    for key in StageTimes.model_fields:
        value = getattr(times, key)
        if isinstance(value, tuple) and len(value) != shape.num_stages:
            fix = "add entries, or name fewer devices in hardware.placement"
            if len(value) > shape.num_stages:
                fix = "remove entries, or add devices to hardware.nodes"
            what = f"got {len(value)} entries, expected {stages}; {fix}"
            yield Complaint(path=("pipeline", "stage_times", key), what=what)


def _layers(pipeline: Pipeline, shape: Shape) -> Iterator[Complaint]:
    assert pipeline.model is not None
    layers = pipeline.model.transformer().layers
    if isinstance(pipeline.partition, tuple):
        total = sum(pipeline.partition)
        if total != layers:
            what = f"got {total} layers in all, expected the {layers} of the model"
            yield Complaint(path=("pipeline", "partition"), what=what)
    elif layers < shape.num_stages:
        what = f"got {layers} layers for {shape.num_stages} stages, expected at least one layer each; use fewer devices"
        yield Complaint(path=("pipeline", "model"), what=what)
