"""A published row as a spec: model, sizes, software and options put into the words of a spec file."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from hops.model.transformer import Transformer
from hops.published.models import model_of
from hops.published.refusal import RowRefusedError
from hops.published.row import PublishedRow
from hops.published.sizes import JobSizes, sizes_of
from hops.published.software import Software, software_of
from hops.spec.model import ModelChoice

ZERO = ("none", "optimizer", "gradients", "parameters")
SCHEDULES = {
    "1f1b": "1f1b",
    "interleaved_1f1b": "interleaved_1f1b",
    "gpipe": "gpipe",
    "zb_1p": "zb_h1",
    "zb_2p": "zb_h2",
    "zb_h1": "zb_h1",
    "zb_h2": "zb_h2",
    "zb_v": "zb_v",
    "zbv": "zb_v",
    "dualpipe_v": "dualpipe_v",
}
"""The zero-bubble paper's 1p and 2p are its own search under the memory of 1F1B, and twice as much: H1 and H2 are its
orders of that memory by hand, which take as long where stages are alike."""
RACKS = {"gb200": 18, "gb300": 18}  # hosts of 4 that one NVLink domain joins
ONE_NIC = ("v100-sxm-16", "v100-sxm-32")  # of a host, whatever it holds; hosts of newer devices have one for each
MODULES = ("core_attn", "mlp", "moe", "moe_act", "shared_experts", "layernorm", "mla_up_proj")
OLD_IMAGES = "lts_dgxa100"  # golden values of Megatron-LM's long-term support tests, in their files' names
_LAYOUT_GROUP = re.compile(r"\(([^()]*)\)\*(\d+)")
_LAYOUT_TIMES = re.compile(r"([Etm|L])\*(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedJob:
    """A row and everything that was resolved of it, before it is put into a spec's words."""

    row: PublishedRow
    model: Transformer
    sizes: JobSizes
    software: Software

    @classmethod
    def of(cls, row: PublishedRow) -> "PublishedJob":
        """Raises RowRefusedError with the reason why the row is no job."""
        _refuse_what_is_no_training(row)
        sizes = sizes_of(row)
        return cls(row=row, model=model_of(row), sizes=sizes, software=_with_flags(software_of(row), row))

    @property
    def stages(self) -> int:
        return self.sizes.pipeline * self.chunks

    def document(self, profile: str | None = None) -> dict[str, Any]:
        """The spec file as plain data; of one iteration, since nothing in it varies."""
        hardware = self._hardware()
        if profile is not None:
            hardware["profile"] = profile
        return {
            "simulation": {"iterations": 1},
            "pipeline": self._pipeline(),
            "parallel": self._parallel(),
            "hardware": hardware,
            "optimizer": self._optimizer(),
        }

    def _hardware(self) -> dict[str, Any]:
        sizes = self.sizes
        device = {"type": sizes.device, "count": sizes.per_node}
        node: dict[str, Any] = {"count": sizes.nodes, "devices": [device], "nics": nics_of(sizes)}
        found: dict[str, Any] = {"nodes": [node]}
        if sizes.device in RACKS and sizes.nodes > 1:
            hosts = max(each for each in range(1, RACKS[sizes.device] + 1) if sizes.nodes % each == 0)
            if hosts > 1:
                found["domains"] = {"hosts": hosts, "interconnect": "nvlink5"}
        return found

    def _parallel(self) -> dict[str, Any]:
        row, sizes = self.row, self.sizes
        zero = row.zero if row.zero is not None else (1 if self.software.name == "megatron-bridge" else 0)
        sequence = self.software.sequence if row.sp is None else row.sp
        moe = self.model.experts is not None
        found: dict[str, Any] = {
            "tensor": sizes.tensor,
            "sequence": sizes.tensor > 1 and (sequence or moe),
            "context": sizes.context,
            "expert": sizes.expert,
            "expert_tensor": sizes.expert_tensor if moe else 1,
            "data": sizes.data,
            "pipeline": sizes.pipeline,
            "shard": ZERO[min(zero, 3)] if sizes.data * sizes.context > 1 else "none",
            "overlap": list(self.software.overlap),
        }
        if row.fsdp and 1 < row.fsdp < sizes.data and zero == 3 and sizes.data % row.fsdp == 0:
            found["shard_group"] = row.fsdp
        return found

    def _pipeline(self) -> dict[str, Any]:
        row, sizes, software = self.row, self.sizes, self.software
        precision, quantization = precision_of(row, quantized_weights=software.quantized_weights)
        found: dict[str, Any] = {
            "model": _model(self.model, sizes.sequence_length),
            "schedule": self._schedule(),
            "microbatches": sizes.microbatches,
            "microbatch_size": sizes.samples,
            "sequence_length": sizes.sequence_length,
            "partition": self._partition(),
            "precision": precision if quantization is None else {"elements": precision, **quantization},
            "attention": software.attention,
            "cross_entropy": software.cross_entropy,
            "dropout": software.dropout,
            "fused_gradient_accumulation": software.fused_accumulation,
            "recompute": software.recompute if row.recompute is None else recompute_of(row),
        }
        return found

    def _schedule(self) -> dict[str, Any] | str:
        named = "1f1b" if self.row.schedule is None else self.row.schedule.lower()
        if named not in SCHEDULES:
            raise RowRefusedError(f"the schedule {self.row.schedule!r} is not known")
        if self.chunks > 1 and SCHEDULES[named] in ("1f1b", "interleaved_1f1b"):
            return {"name": "interleaved_1f1b", "chunks": self.chunks}
        return "1f1b" if SCHEDULES[named] == "interleaved_1f1b" else SCHEDULES[named]

    @property
    def chunks(self) -> int:
        """Stages per rank: as stated; as many as a rank has layers, where an interleaved row does not state them.

        Such rows (arXiv 2401.10241) count embedding and head as layers.
        """
        if self.sizes.pipeline == 1:
            return 1
        if self.row.schedule == "interleaved_1f1b" and self.row.vp is None:
            return max(1, (self.model.layers + 2) // self.sizes.pipeline)
        return self.sizes.chunks

    def _partition(self) -> str | list[int]:
        """Layers of every stage: of a stated layout, or evenly, the ends with fewer where it does not divide."""
        stages = self.stages
        layers = self.model.layers
        layout = self.row.flags.get("pipeline-model-parallel-layout")
        if isinstance(layout, str):
            counts = [part.count("t") + part.count("m") for part in _spelled_out(layout).split("|")]
            if len(counts) != stages or sum(counts) != layers:
                raise RowRefusedError(f"the layout {layout!r} has {len(counts)} stages of {sum(counts)} layers")
            return counts
        if layers % stages == 0:
            return "even"
        if layers == stages - 2:  # the ends have embedding and head alone
            return [0, *(1,) * layers, 0]
        if layers < stages:
            raise RowRefusedError(f"{layers} layers cannot be cut into {stages} stages")
        share, rest = divmod(layers, stages)
        if share == 0 or stages - rest > 2:  # what is over goes to the middle: the ends have embedding and head
            first = (stages - rest) // 2
            return [share + (first <= stage < first + rest) for stage in range(stages)]
        short = {stages - 1} if stages - rest == 1 else {0, stages - 1}
        return [share + (stage not in short) for stage in range(stages)]

    def _optimizer(self) -> dict[str, Any]:
        return {"gradient_bytes": self.software.gradient_bytes}


def nics_of(sizes: JobSizes) -> int:
    """NICs of a host: one for each device since the A100."""
    return 1 if sizes.device in ONE_NIC else sizes.per_node


def _spelled_out(layout: str) -> str:
    """Megatron-LM's layout with its multiples written out: `Et*2|(tt|)*2L` is `Ett|tt|tt|L`."""
    grouped = _LAYOUT_GROUP.sub(lambda found: found[1] * int(found[2]), layout)
    return _LAYOUT_TIMES.sub(lambda found: found[1] * int(found[2]), grouped)


def _model(model: Transformer, sequence_length: int) -> dict[str, Any]:
    positions = max(model.max_positions, sequence_length)
    fields = asdict(replace(model, max_positions=positions))
    return {key: value for key, value in fields.items() if value is not None and key in ModelChoice.model_fields}


def precision_of(row: PublishedRow, *, quantized_weights: bool) -> tuple[str, dict[str, Any] | None]:
    """The type of weights and activations, and how linear layers are quantized. Raises RowRefusedError."""
    text = ("bf16" if row.precision is None else row.precision).lower()
    for name in ("bf16", "fp16", "fp32"):
        if text.startswith(name):
            recipe = row.flags.get("fp8-recipe")
            if recipe is None:
                return name, None
            scaling = "block" if recipe == "blockwise" else "current"
            return name, {"format": "fp8", "scaling": scaling, "quantized_weights": quantized_weights}
    if "fp4" in text:
        return "bf16", {"format": "fp4", "scaling": "block"}
    if "fp8" in text:
        block = "mx" in text or "block" in text or text[-2:] == "sc"
        scaling = "block" if block else "delayed" if text in ("amp_fp8", "fp8") else "current"
        return "bf16", {"format": "fp8", "scaling": scaling}
    raise RowRefusedError(f"the precision {row.precision!r} is not known")


def recompute_of(row: PublishedRow) -> Any:
    """What is computed again. Raises RowRefusedError for words that are not known."""
    text = (row.recompute or "none").lower().strip()
    if text.startswith("full"):
        return "full"
    if not text.startswith("selective"):
        if text in ("none", "no", "false", ""):
            return "none"
        raise RowRefusedError(f"the recomputation {row.recompute!r} is not known")
    stated = row.flags.get("recompute-modules", text.partition(":")[2])
    words = [word for word in re.split(r"[\s,\[\]()]+", str(stated)) if word and word not in ("none", "default")]
    unknown = [word for word in words if word not in MODULES]
    if unknown:
        raise RowRefusedError(f"recomputation of {', '.join(unknown)} is not known, expected {', '.join(MODULES)}")
    if "(none)" in text:
        return "none"
    return {"kind": "selective", "modules": words} if words else "selective"


def _with_flags(software: Software, row: PublishedRow) -> Software:
    """The software with what a row's flags and options say of it."""
    changes: dict[str, Any] = {}
    flags = row.flags
    if flags:
        changes |= _of_flags(flags, row)
    if row.options.get("cross_entropy_fusion") is True:
        changes["cross_entropy"] = "fused"
    if row.options.get("ep_overlap") is True:
        changes["overlap"] = (*software.overlap, "expert")
    if row.options.get("compile") in ("compile", True):
        changes["compiled"] = True
    return replace(software, **changes)


def _of_flags(flags: Mapping[str, Any], row: PublishedRow) -> dict[str, Any]:
    """Megatron-LM's flags: attention backend, fusion of the loss, dropout, overlap.

    Its long-term support images have libraries that fall back to unfused attention where the choice is theirs.
    """
    backend = str(flags.get("attention-backend", "auto"))
    flash = backend in ("flash", "fused") or (
        backend == "auto" and (flags.get("transformer-impl") == "transformer_engine" or flags.get("use-flash-attn"))
    )
    overlap = []
    if flags.get("overlap-grad-reduce"):
        overlap.append("gradients")
    if flags.get("overlap-param-gather"):
        overlap.append("parameters")
    if flags.get("tp-comm-overlap"):
        overlap.append("tensor")
    if flags.get("overlap-moe-expert-parallel-comm"):
        overlap.append("expert")
    return {
        "attention": "flash" if flash and not (backend == "auto" and OLD_IMAGES in row.file) else "unfused",
        "cross_entropy": "fused" if flags.get("cross-entropy-loss-fusion") else "unfused",
        "dropout": float(flags.get("hidden-dropout", 0.1)) > 0,
        "overlap": tuple(overlap),
        "quantized_weights": bool(flags.get("fp8-param-gather", False)),
    }


def _refuse_what_is_no_training(row: PublishedRow) -> None:
    """Raises RowRefusedError for rows of other work than pretraining iterations."""
    if row.kind not in ("pretrain", "sft"):
        raise RowRefusedError(f"a {row.kind} run trains few parameters of a frozen model, which no spec can say")
    if "one layer" in row.metric or "one layer" in row.model:
        raise RowRefusedError(f"{row.metric or 'the row'} is the time of one layer by itself, not of an iteration")
    if any(str(flag).startswith("rl-inference") for flag in row.flags):
        raise RowRefusedError("an iteration of reinforcement learning holds inference, which no spec can say")
