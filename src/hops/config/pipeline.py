"""The pipeline section: what is trained, cut into which stages, in which order."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import Discriminator, Field, Tag, model_validator

from hops.config.distributions import Factors, Time
from hops.config.fields import Bytes, Count, Flag, Section, Size, problem
from hops.config.model import ModelField
from hops.config.schedule import ScheduleChoice, ScheduleField

T = TypeVar("T")
Precision = Literal["bf16", "fp16", "fp32"]
ELEMENT_BYTES: dict[str, int] = {"bf16": 2, "fp16": 2, "fp32": 4}  # of a weight or activation
Recompute = Literal["none", "selective", "full"]
Attention = Literal["unfused", "flash"]
PeerToPeer = Literal["overlapped", "blocking", "blocking_fused"]


def _one_or_each(value: object) -> str:
    return "<each>" if isinstance(value, (list, tuple)) else "<one>"


Times = Annotated[
    Annotated[Time, Tag("<one>")] | Annotated[tuple[Time, ...], Tag("<each>")],
    Discriminator(_one_or_each),
]
StageBytes = Annotated[
    Annotated[Bytes, Tag("<one>")] | Annotated[tuple[Bytes, ...], Tag("<each>")],
    Discriminator(_one_or_each),
]
Partition = Annotated[
    Annotated[Literal["even", "balanced"], Tag("<one>")] | Annotated[tuple[Count, ...], Tag("<each>")],
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
        default=0, json_schema_extra={"default": "0 B"}, description="memory of the gradients"
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


class Pipeline(Section):
    """What one iteration trains, cut into which stages, in which order."""

    model: ModelField | None = Field(default=None, description="the model; or stage_times")
    stage_times: StageTimes | None = Field(default=None, description="stated times instead of a model")
    schedule: ScheduleField = Field(default=ScheduleChoice(name="1f1b"), description="order of the actions")
    microbatches: Count = Field(description="microbatches per iteration and pipeline")
    microbatch_size: Count = Field(default=1, description="samples per microbatch")
    sequence_length: Size | None = Field(default=None, description="tokens per sample; default: the model's own")
    partition: Partition = Field(default="even", description="layers of each stage: even, balanced, or a list")
    precision: Precision = Field(default="bf16", description="number format of weights and activations")
    attention: Attention = Field(default="flash", description="flash, or unfused: heads x sequence^2 scores in memory")
    cross_entropy: Literal["unfused", "fused"] = Field(
        default="unfused", description="unfused: several fp32 passes over sequence x vocab logits on the last stage"
    )
    dropout: Flag = Field(default=True, description="whether dropout masks are written and kept")
    fused_gradient_accumulation: Flag = Field(
        default=True, description="whether weight-gradient GEMMs add to the fp32 gradients themselves"
    )
    recompute: Recompute = Field(default="none", description="activations that backward computes again")
    split_overhead: Annotated[float, Field(strict=True, ge=1, le=100)] = Field(
        default=1.0, description="(I + W) / B: what splitting the backward costs"
    )
    first_stage_splits: Flag = Field(
        default=True,
        description="false: the first stage does all of its backward in W, nothing in I, since no stage waits for it",
    )
    p2p: PeerToPeer = Field(default="overlapped", description="whether messages keep both ranks busy")
    jitter: Factors | None = Field(default=None, description="random factor on the time of every action")

    @model_validator(mode="after")
    def _one_source_of_times(self) -> "Pipeline":
        if self.model is None and self.stage_times is None:
            raise problem("neither model nor stage_times, expected one of them", "add model: gpt2-medium, for example")
        if self.model is not None and self.stage_times is not None:
            raise problem("got both model and stage_times, expected one of them", "remove one")
        return self
