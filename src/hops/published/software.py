"""What the framework behind a source does where its rows are silent: kernels, overlap, precision of gradients."""

import re
from dataclasses import dataclass, replace
from typing import Literal

from hops.published.row import PublishedRow

Framework = Literal[
    "other",
    "megatron-bridge",
    "megatron",
    "megatron-deepspeed",
    "simumax",
    "llm-foundry",
    "torchtitan",
    "oneflow",
    "zero-bubble",
]
ERAS = (("2025", 25.99), ("26.02", 26.05), ("26.06", 99.0))
"""Releases of Megatron-Bridge up to a number. Jobs with experts became a third to a half faster in 26.06."""
_OF_SOURCE: dict[str, Framework] = {
    "megatron-bridge": "megatron-bridge",
    "bridge": "megatron-bridge",
    "nemo": "megatron-bridge",
    "mbridge": "megatron-bridge",
    "megatron": "megatron",
    "vtrain": "megatron-deepspeed",
    "simumax": "simumax",
    "llm-foundry": "llm-foundry",
    "mosaic": "llm-foundry",
    "torchtitan": "torchtitan",
    "oneflow": "oneflow",
    "2401.10241": "zero-bubble",
}
"""By the beginning of a source's name, the longest that fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """One framework's habits. A row's own words count before them.

    Attributes:
        era: of its releases, where they differ much; empty: not stated.
        attention, cross_entropy, dropout: as in the spec.
        gradient_bytes: of one gradient, in memory and in reductions.
        overlap: collectives under which computing goes on.
        sequence: whether tensor parallelism comes with sequence parallelism where the row does not say.
        recompute: what is computed again where the row does not say.
        fused_accumulation: whether weight gradients are added inside the GEMM.
        quantized_weights: whether 8-bit weights are held in their format alone.
        compiled: whether element-wise kernels are fused by a compiler.
    """

    name: Framework
    era: str = ""
    attention: Literal["unfused", "flash"] = "flash"
    cross_entropy: Literal["unfused", "fused"] = "unfused"
    dropout: bool = True
    gradient_bytes: int = 4
    overlap: tuple[str, ...] = ()
    sequence: bool = False
    recompute: Literal["none", "selective", "full"] = "none"
    fused_accumulation: bool = True
    quantized_weights: bool = False
    compiled: bool = False

    @property
    def full_name(self) -> str:
        """With the era, if there is one: what its profile is called by."""
        return f"{self.name}-{self.era}" if self.era else self.name


_KNOWN = {
    each.name: each
    for each in (
        Software(
            name="megatron-bridge",  # perf_recipes: gradients in bf16, Transformer Engine's loss, no dropout
            cross_entropy="fused",
            dropout=False,
            gradient_bytes=2,
            overlap=("gradients", "parameters", "tensor"),
            sequence=True,
        ),
        Software(name="megatron"),
        Software(name="other"),
        Software(name="megatron-deepspeed", attention="unfused", recompute="full", fused_accumulation=False),
        Software(name="simumax", cross_entropy="fused", dropout=False, sequence=True),
        Software(
            name="llm-foundry",
            dropout=False,
            gradient_bytes=2,
            overlap=("gradients", "parameters"),
            fused_accumulation=False,
        ),
        Software(
            name="torchtitan",
            dropout=False,
            gradient_bytes=4,
            overlap=("gradients", "parameters"),
            sequence=True,
            fused_accumulation=False,
        ),
        Software(name="oneflow", attention="unfused", recompute="full"),  # DLPerf checkpoints every layer
        Software(name="zero-bubble", attention="unfused"),
    )
}


def software_of(row: PublishedRow) -> Software:
    """The framework that a row's source measured; habits of Megatron-LM where nothing says another."""
    named = {"megatron-lm": "megatron-deepspeed"}.get(str(row.options.get("framework")), row.options.get("framework"))
    if isinstance(named, str) and named in _KNOWN:
        return _KNOWN[named]
    fitting = [start for start in _OF_SOURCE if row.source.startswith(start)]
    found = _KNOWN[_OF_SOURCE[max(fitting, key=len)]] if fitting else _KNOWN["other"]
    return replace(found, era=_era(row.note)) if found.name == "megatron-bridge" else found


def _era(note: str) -> str:
    """The releases among which a row's belongs: those of a group run the same job alike, within a few percent."""
    stated = re.search(r"release (\d+\.\d+)", note)
    if stated is None:
        return ""
    return next((name for name, last in ERAS if float(stated[1]) <= last), ERAS[-1][0])
