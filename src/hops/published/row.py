"""A published row as plain data: a training job, its step time, often its peak memory; read with all complaints."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hops.decode.decode import LARGEST_DATA, Where, decode, from_json, read_text
from hops.decode.quantities import Count, Flag, Index, Number, Positive, Size
from hops.errors import UsageError

EXPECTED = "published rows, a JSON object on each line with id, source, model, and the job's sizes"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLatent:
    """Ranks and head widths of multi-head latent attention, as a row states them."""

    q_rank: Count | None = None
    kv_rank: Count
    qk_head: Count
    rope_head: Count
    v_head: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class RowShape:
    """What a row says of its model; None: nothing.

    Attributes:
        moe_layers: which layers have experts: `([0]*3+[1]*58)` or the distance between them, `1`, as Megatron-LM's
            `--moe-layer-freq` has it.
        dense_layers: how many layers at the beginning have none.
        mtp: extra layers for multi-token prediction.
    """

    layers: Count | None = None
    hidden: Count | None = None
    ffn: Count | None = None
    heads: Count | None = None
    kv_heads: Count | None = None
    head_dim: Count | None = None
    vocab: Size | None = None
    gated: Flag | None = None
    tied: Flag | None = None
    biases: Flag | None = None
    positions: str | None = None
    experts: Index | None = None
    top_k: Count | None = None
    expert_ffn: Count | None = None
    shared_ffn: Index | None = None
    moe_layers: str | int | None = None
    dense_layers: Index | None = None
    mla: RowLatent | None = None
    mtp: Index | None = None
    note: str | None = None


NO_SHAPE = RowShape()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """One row. Sizes that a row does not state are None; what follows from others is filled in by `sizes`.

    Attributes:
        mbs, ga, gbs: samples per microbatch, microbatches, samples per iteration.
        options: what else the source states.
        step_s: seconds per iteration; memory_gib: peak memory of a device, of the kind that `memory_kind` says.
    """

    id: str
    source: str
    model: str
    file: str = ""
    shape: RowShape | None = None
    gpu: str | None = None
    n_gpus: Count | None = None
    nodes: Count | None = None
    gpus_per_node: Count | None = None
    tp: Count | None = None
    pp: Count | None = None
    vp: Count | None = None
    dp: Count | None = None
    cp: Count | None = None
    ep: Count | None = None
    etp: Count | None = None
    sp: Flag | None = None
    fsdp: Index | None = None
    zero: Index | None = None
    mbs: Count | None = None
    ga: Count | None = None
    gbs: Count | None = None
    seq: Size | None = None
    precision: str | None = None
    recompute: str | None = None
    schedule: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    metric: str = ""
    value: Number | None = None
    unit: str = ""
    tflops_per_gpu: Number | None = None
    step_s: Positive | None = None
    memory_gib: Positive | None = None
    memory_kind: str | None = None
    kind: str = "pretrain"
    balanced_experts: Flag | None = None
    note: str = ""

    @property
    def stated(self) -> RowShape:
        """The shape, an empty one where none is stated."""
        return NO_SHAPE if self.shape is None else self.shape

    @property
    def flags(self) -> Mapping[str, Any]:
        """Flags of the launch, where the source has them."""
        flags = self.options.get("flags")
        return flags if isinstance(flags, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadRow:
    """A line that is no row, and all that is wrong with it."""

    id: str
    source: str
    reason: str


def read_rows(path: Path) -> tuple[PublishedRow | UnreadRow, ...]:
    """All rows of a file of JSON lines. Keys that a row does not have are left alone: they are the source's own.

    Raises UsageError if the file cannot be read, has a line that is no JSON, or no line at all.
    """
    text = read_text(path, error=UsageError, expected=EXPECTED, largest=LARGEST_DATA)
    rows = [
        _row(line, Where(name=str(path), line=number, strict=False))
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip()
    ]
    if not rows:
        raise UsageError(f"{path}: is empty, expected {EXPECTED}")
    return tuple(rows)


def _row(line: str, where: Where) -> PublishedRow | UnreadRow:
    data = from_json(line, where)
    try:
        return decode(PublishedRow, data, where)
    except UsageError as error:
        named = data if isinstance(data, dict) else {}
        words = {key: named[key] if isinstance(named.get(key), str) else "?" for key in ("id", "source")}
        return UnreadRow(**words, reason=str(error))
