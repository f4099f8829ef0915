"""The pipeline section: what is trained, cut into which stages, in which order."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Discriminator, Field, Tag, model_validator

from hops.decode.document import Complaint
from hops.decode.quantities import Bytes, Count, Flag, Index, Positive, Seconds, Section, Size, problem
from hops.errors import CatalogError, HopsError
from hops.hardware.catalog import Catalog
from hops.program.shape import Shape
from hops.spec.distributions import Factors, Time
from hops.spec.hardware import HardwareSection
from hops.spec.model import ModelField
from hops.spec.schedule import ScheduleChoice, ScheduleField

T = TypeVar("T")
Precision = Literal["bf16", "fp16", "fp32"]
ELEMENT_BYTES: dict[str, int] = {"bf16": 2, "fp16": 2, "fp32": 4}  # of a weight or activation
Recompute = Literal["none", "selective", "full"]
Attention = Literal["unfused", "flash"]
PeerToPeer = Literal["overlapped", "posted", "blocking", "blocking_fused"]


class QuantizationChoice(Section):
    """Linear layers in fewer bits; head, router and attention stay in the run's precision."""

    format: Literal["fp8", "fp4"] = Field(default="fp8", description="of the operands of their products")
    scaling: Literal["delayed", "current", "block"] = Field(
        default="current", description="a factor per tensor from earlier steps, one found now, or one per block"
    )
    quantized_weights: Flag = Field(default=False, description="whether weights are held in the format only")


RecomputeModule = Literal["core_attn", "mlp", "moe", "moe_act", "shared_experts", "layernorm", "mla_up_proj"]


def _one_or_each(value: object) -> str:
    return "<each>" if isinstance(value, (list, tuple)) else "<one>"


Times = Annotated[
    Annotated[Time, Tag("<one>")] | Annotated[tuple[Time, ...], Tag("<each>")],
    Discriminator(_one_or_each),
]
Work = Annotated[
    Annotated[Factors, Tag("<one>")] | Annotated[tuple[Positive, ...], Tag("<each>")],
    Discriminator(_one_or_each),
]
StageBytes = Annotated[
    Annotated[Bytes, Tag("<one>")] | Annotated[tuple[Bytes, ...], Tag("<each>")],
    Discriminator(_one_or_each),
]
Partition = Annotated[
    Annotated[Literal["even", "balanced"], Tag("<one>")] | Annotated[tuple[Index, ...], Tag("<each>")],
    Discriminator(_one_or_each),
]


def _no_bytes(description: str) -> Any:
    """A field of bytes that is 0 unless stated."""
    return Field(default=0, json_schema_extra={"default": "0 B"}, description=description)


def per_stage(value: T | tuple[T, ...], num_stages: int) -> tuple[T, ...]:
    """One value per stage, of a field that gives one for all stages or a list."""
    return value if isinstance(value, tuple) else (value,) * num_stages


class StageTimes(Section):
    """Stated times and sizes: each is one value for all stages, or a list with one per stage."""

    forward: Times = Field(description="F")
    backward: Times | None = Field(default=None, description="B, the full backward; I and W each take half of it")
    input_backward: Times | None = Field(default=None, description="I, the backward for inputs")
    weight_backward: Times | None = Field(default=None, description="W, the backward for weights")
    message: StageBytes = Field(
        default=0, json_schema_extra={"default": "0 B"}, description="what F and B or I send to the neighbouring stage"
    )
    activation: StageBytes = Field(
        default=0, json_schema_extra={"default": "0 B"}, description="memory that F allocates per microbatch"
    )
    kept_for_weight: StageBytes = Field(
        default=0, json_schema_extra={"default": "0 B"}, description="the part of it that stays between I and W"
    )
    weights: StageBytes = _no_bytes("memory of the weights")
    gradients: StageBytes = Field(
        default=0,
        json_schema_extra={"default": "0 B"},
        description="memory of the gradients, which data-parallel copies reduce",
    )
    optimizer_state: StageBytes = Field(
        default=0, json_schema_extra={"default": "0 B"}, description="memory of the optimizer's states"
    )

    @model_validator(mode="after")
    def _backward_is_known(self) -> "StageTimes":
        halves = (self.input_backward is not None) + (self.weight_backward is not None)
        if halves == 1:
            given, other = ("input_backward", "weight_backward")
            if self.input_backward is None:
                given, other = other, given
            raise problem(f"got {given} without {other}, expected both or neither", f"add {other}")
        if halves == 0 and self.backward is None:
            raise problem("no backward time, expected backward, or input_backward and weight_backward", "add one")
        return self


class PipelineSection(Section):
    """What one iteration trains, cut into which stages, in which order."""

    model: ModelField | None = Field(default=None, description="the model; or stage_times")
    stage_times: StageTimes | None = Field(default=None, description="stated times instead of a model")
    schedule: ScheduleField = Field(default=ScheduleChoice(name="1f1b"), description="order of the actions")
    microbatches: Count = Field(description="microbatches per iteration and pipeline")
    microbatch_size: Count = Field(default=1, description="samples per microbatch")
    sequence_length: Size | None = Field(default=None, description="tokens per sample; default: the model's own")
    partition: Partition = Field(
        default="even", description="layers of each stage: even, balanced, or a list (0: none)"
    )
    precision: Precision = Field(default="bf16", description="number format of weights and activations")
    attention: Attention = Field(default="flash", description="flash, or unfused: heads x sequence^2 scores in memory")
    cross_entropy: Literal["unfused", "fused"] = Field(
        default="unfused", description="unfused: several fp32 passes over sequence x vocab logits on the last stage"
    )
    dropout: Flag = Field(default=True, description="whether dropout masks are written and kept")
    fused_gradient_accumulation: Flag = Field(
        default=True, description="whether weight-gradient GEMMs add to the fp32 gradients themselves"
    )
    quantization: QuantizationChoice | None = Field(
        default=None, description="linear layers in fewer bits; or as precision: {elements: bf16, format: fp8, ...}"
    )
    recompute: Recompute = Field(default="none", description="activations that backward computes again")
    recompute_modules: tuple[RecomputeModule, ...] = Field(
        default=("core_attn",),
        description="what selective computes again; or as recompute: {kind: selective, modules: [...]}",
    )
    recompute_layers: Index | None = Field(
        default=None, description="first layers of a stage that full computes again, the rest kept; default: all"
    )
    recompute_unit: Count = Field(default=1, description="layers of which full keeps one input together")
    expert_imbalance: Annotated[float, Field(ge=1, le=1000)] = Field(
        default=1.0, description="rows of the fullest device of experts over its fair share"
    )
    expert_capacity: Positive | None = Field(
        default=None, description="rows of an expert over its fair share, padded or cut to; default: as many as come"
    )
    split_overhead: Annotated[float, Field(strict=True, ge=1, le=100)] = Field(
        default=1.0, description="(I + W) / B: what splitting the backward costs"
    )
    first_stage_splits: Flag = Field(
        default=True,
        description="false: the first stage does all of its backward in W, nothing in I, since no stage waits for it",
    )
    pair_factor: Annotated[float, Field(strict=True, gt=0, le=1)] = Field(
        default=1.0, description="time of a pair F&B that runs as one (dualpipe_v) over F + B: what overlapping saves"
    )
    p2p: PeerToPeer = Field(
        default="overlapped",
        description="when messages start and whom they keep busy: overlapped at once, nobody; posted once sent and "
        "received for, nobody; blocking, blocking_fused (Megatron-LM without overlap): both ranks",
    )
    host_per_action: Seconds = Field(
        default=0.0,
        json_schema_extra={"default": "0 s"},
        description="the host's time between two actions of a rank (a pair is one)",
    )
    microbatch_work: Work | None = Field(
        default=None,
        description="work of each microbatch, the same on all stages: factors on its times, messages and activations, "
        "a list with one per microbatch or one distribution",
    )
    jitter: Factors | None = Field(default=None, description="random factor on the time of every action")

    @model_validator(mode="before")
    @classmethod
    def _objects(cls, value: object) -> object:
        """`precision` and `recompute` written as objects say what has keys of its own."""
        if not isinstance(value, dict):
            return value
        flat = dict(value)
        if isinstance(flat.get("precision"), dict):
            own = dict(flat["precision"])
            flat["precision"] = own.pop("elements", "bf16")
            flat = {**({"quantization": own} if own else {}), **flat}
        if isinstance(flat.get("recompute"), dict):
            own = dict(flat["recompute"])
            flat["recompute"] = own.pop("kind", "selective" if "modules" in own else "full")
            flat = {**{f"recompute_{key}": each for key, each in own.items()}, **flat}
        return flat

    @model_validator(mode="after")
    def _one_source_of_times(self) -> "PipelineSection":
        if self.model is None and self.stage_times is None:
            raise problem("neither model nor stage_times, expected one of them", "add model: gpt2-medium, for example")
        if self.model is not None and self.stage_times is not None:
            raise problem("got both model and stage_times, expected one of them", "remove one")
        return self


def check_schedule(schedule: ScheduleChoice) -> Iterator[Complaint]:
    """Name and parameters of the schedule."""
    for each in schedule.complaints():
        yield Complaint(path=("pipeline", "schedule", *each.path), what=each.what, at_key=each.at_key)


def check_pipeline(
    pipeline: PipelineSection,
    hardware: HardwareSection | None,
    catalog: Catalog | None,
    ranks: int | None,
    *,
    schedule_is_sound: bool,
) -> Iterator[Complaint]:
    """What the schedule, the devices and the model make of the numbers. `hardware`, `ranks` None: not sound."""
    yield from _sequence(pipeline)
    yield from _experts(pipeline)
    yield from _work(pipeline)
    if hardware is None:
        return
    if catalog is not None and pipeline.model is not None:
        yield from _precision(pipeline, hardware, catalog)
    if schedule_is_sound and ranks is not None:
        yield from _arrangement(pipeline, ranks)


def _work(pipeline: PipelineSection) -> Iterator[Complaint]:
    work, count = pipeline.microbatch_work, pipeline.microbatches
    if isinstance(work, tuple) and len(work) != count:
        fix = f"{'add' if len(work) < count else 'remove'} entries, or state a distribution"
        what = f"got {len(work)} entries, expected {count}, one per microbatch; {fix}"
        yield Complaint(path=("pipeline", "microbatch_work"), what=what)


def _arrangement(pipeline: PipelineSection, ranks: int) -> Iterator[Complaint]:
    try:
        shape = pipeline.schedule.make().shape(ranks, pipeline.microbatches)
    except HopsError as error:
        yield Complaint(path=("pipeline", "schedule"), what=f"{error} (ranks: {ranks})")
        return
    yield from _stages(pipeline, shape)


def _sequence(pipeline: PipelineSection) -> Iterator[Complaint]:
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


def _experts(pipeline: PipelineSection) -> Iterator[Complaint]:
    """What is said of experts needs some."""
    if pipeline.model is not None:
        try:
            if pipeline.model.transformer().experts is not None:
                return
        except HopsError:
            return  # complained about where it stands
    stated = {
        "expert_capacity": pipeline.expert_capacity is not None,
        "expert_imbalance": pipeline.expert_imbalance > 1,
    }
    for key, is_stated in stated.items():
        if is_stated:
            what = f"got {getattr(pipeline, key)} without experts; remove it, or add model.experts"
            yield Complaint(path=("pipeline", key), what=what)


def _precision(pipeline: PipelineSection, hardware: HardwareSection, catalog: Catalog) -> Iterator[Complaint]:
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


def _stages(pipeline: PipelineSection, shape: Shape) -> Iterator[Complaint]:
    stages = f"{shape.stages_per_copy} (one per stage; {shape.num_ranks} ranks)"
    if isinstance(pipeline.partition, tuple) and len(pipeline.partition) != shape.stages_per_copy:
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
        if isinstance(value, tuple) and len(value) != shape.stages_per_copy:
            fix = "add entries, or name fewer devices in hardware.placement"
            if len(value) > shape.stages_per_copy:
                fix = "remove entries, or add devices to hardware.nodes"
            what = f"got {len(value)} entries, expected {stages}; {fix}"
            yield Complaint(path=("pipeline", "stage_times", key), what=what)


def _layers(pipeline: PipelineSection, shape: Shape) -> Iterator[Complaint]:
    assert pipeline.model is not None
    layers = pipeline.model.transformer().layers
    if isinstance(pipeline.partition, tuple):
        total = sum(pipeline.partition)
        if total != layers:
            what = f"got {total} layers in all, expected the {layers} of the model"
            yield Complaint(path=("pipeline", "partition"), what=what)
    elif layers < shape.stages_per_copy:
        stages = f"{shape.stages_per_copy} stages"
        what = f"got {layers} layers for {stages}, expected at least one layer each; use fewer devices"
        yield Complaint(path=("pipeline", "model"), what=what)
