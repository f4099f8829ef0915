"""How a launch divides its job: sizes of the axes, collectives beside computing, experts, latent attention."""

import re
from dataclasses import dataclass
from typing import Any

from hops.errors import UsageError
from hops.importers.megatron.settings import Settings

_PIECE = re.compile(r"\[([01])\]\*(\d+)")
CONTEXT_KINDS = {
    "p2p": "ring",
    "all_gather": "all_gather",
    "allgather": "all_gather",
    "a2a": "all_to_all",
    "a2a+p2p": "hierarchical",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """Sizes in which a launch divides one copy, beside its pipeline, and what goes on beside computing."""

    tensor: int = 1
    sequence: bool = False
    context: int = 1
    context_kind: str = "ring"
    context_inner: int = 1
    expert: int = 1
    expert_tensor: int = 1
    pipelines_first: bool = False
    overlap: tuple[str, ...] = ()

    @property
    def of_a_position(self) -> int:
        """Devices of one pipeline position in one copy."""
        return self.tensor * self.context

    @property
    def whole_job(self) -> bool:
        """Whether a spec needs the section `parallel` to say it."""
        return self.of_a_position * self.expert > 1 or bool(self.overlap)

    def section(self, pipeline: int, data: int) -> dict[str, Any]:
        """The spec's `parallel`; what is 1, or off, is left out."""
        sizes = {
            "tensor": self.tensor,
            "context": self.context,
            "context_inner": self.context_inner,
            "expert": self.expert,
        }
        found: dict[str, Any] = {name: size for name, size in sizes.items() if size > 1}
        if self.sequence and self.tensor > 1:
            found["sequence"] = True
        if self.context > 1 and self.context_kind != "ring":
            found["context_kind"] = self.context_kind
        if self.expert > 1 or self.expert_tensor != self.tensor:
            found["expert_tensor"] = self.expert_tensor
        if self.overlap:
            found["overlap"] = list(self.overlap)
        if self.pipelines_first:
            found["order"] = "tp-cp-ep-pp-dp"
        return {**found, "data": data, "pipeline": pipeline}


def axes_of(settings: Settings) -> Axes:
    """What the flags say of the axes. Raises UsageError for what contradicts itself."""
    tensor, context = settings.count("tensor_model_parallel_size", 1), settings.count("context_parallel_size", 1)
    expert = settings.count("expert_model_parallel_size", 1)
    kinds = set(settings.text("cp_comm_type", "p2p").split())
    if len(kinds) > 1 or not kinds <= set(CONTEXT_KINDS):
        raise settings.fault("cp_comm_type", f"one of {', '.join(CONTEXT_KINDS)}, the same for all layers")
    overlap = [
        name
        for name, flags in {
            "gradients": ("overlap_grad_reduce",),
            "parameters": ("overlap_param_gather",),
            "tensor": ("tp_comm_overlap",),
            "expert": ("moe_shared_expert_overlap",),
        }.items()
        if any(settings.on(flag) for flag in flags)
    ]
    inner = settings.text("hierarchical_context_parallel_sizes").split()
    return Axes(
        tensor=tensor,
        sequence=settings.on("sequence_parallel"),
        context=context,
        context_kind=CONTEXT_KINDS[kinds.pop()],
        context_inner=int(inner[0]) if inner and inner[0].isdigit() else 1,
        expert=expert,
        expert_tensor=settings.count("expert_tensor_parallel_size", tensor),
        pipelines_first=settings.on("use_tp_pp_dp_mapping"),
        overlap=tuple(overlap),
    )


def experts_of(settings: Settings, layers: int, ffn: int, where: str) -> dict[str, Any] | None:
    """The spec's `experts` of a launch; None: it has none."""
    count = settings.optional("num_experts")
    if count is None:
        return None
    shared = settings.optional("moe_shared_expert_intermediate_size")
    found: dict[str, Any] = {
        "count": count,
        "top_k": settings.count("moe_router_topk", 2),
        "hidden": settings.optional("moe_ffn_hidden_size") or ffn,
        **({"shared_hidden": shared} if shared else {}),
        **({"shared_gate": True} if settings.on("moe_shared_expert_gate") else {}),
        **({"router_bias": True} if settings.on("moe_router_enable_expert_bias") else {}),
    }
    dense = _dense_layers(settings.text("moe_layer_freq", "1"), layers, where)
    return {**found, **({"dense_layers": dense} if dense else {})}


def _dense_layers(text: str, layers: int, where: str) -> list[int]:
    """Layers without experts: `([0]*3+[1]*58)` names each, a number n gives experts to every n-th."""
    plain = text.strip("() \"'")
    if plain.isdigit() and int(plain) > 0:
        return [layer for layer in range(layers) if layer % int(plain)]
    pattern = [digit for digit, times in _PIECE.findall(plain) for _ in range(int(times))]
    if len(pattern) != layers:
        raise UsageError(
            f"{where}: --moe-layer-freq {text} names {len(pattern)} layers, expected the {layers} there are"
        )
    return [layer for layer, digit in enumerate(pattern) if digit == "0"]


def latent_of(settings: Settings) -> dict[str, Any] | None:
    """The spec's `latent` of a launch; None: its attention is plain. Defaults are Megatron-LM's."""
    if not settings.on("multi_latent_attention"):
        return None
    rank = settings.optional("q_lora_rank")
    return {
        **({"query_rank": rank} if rank else {}),
        "kv_rank": settings.count("kv_lora_rank", 32),
        "nope_dim": settings.count("qk_head_dim", 128),
        "rope_dim": settings.count("qk_pos_emb_head_dim", 64),
        "value_dim": settings.count("v_head_dim", 128),
    }
