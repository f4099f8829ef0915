"""Files of other tools, recognised when one is given where a spec is expected: which it is, what makes a spec of it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Looks = Callable[[dict[str, Any], str], bool]  # plain data of the file ({} if it has none), its text


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A kind of file that is no spec.

    Attributes:
        name: what people call it.
        fix: what to do with it; FILE stands for the file.
        looks: whether a file is one.
    """

    name: str
    fix: str
    looks: Looks


def _keys(*names: str) -> Looks:
    return lambda data, _: any(name in data for name in names)


def _section(section: str, *names: str) -> Looks:
    def looks(data: dict[str, Any], _: str) -> bool:
        inner = data.get(section)
        return isinstance(inner, dict) and any(name in inner for name in names)

    return looks


def _text(pattern: str) -> Looks:
    found = re.compile(pattern, re.MULTILINE)
    return lambda _, text: found.search(text) is not None


_BY_HAND = "no importer reads it yet; write its sizes into the sections pipeline and parallel (`hops init`)"
_MEGATRON = "hops import megatron FILE -o spec.yaml makes a spec of it"
KINDS = (
    Foreign(
        name="a Hugging Face config",
        fix="a spec takes its model from it by pipeline.model: {hf: FILE}; hops import hf FILE -o spec.yaml makes one",
        looks=_keys("model_type", "architectures"),
    ),
    Foreign(
        name="a DeepSpeed config",
        fix=_BY_HAND,
        looks=_keys("zero_optimization", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"),
    ),
    Foreign(name="a model_config.yaml of Megatron-LM", fix=_MEGATRON, looks=_keys("MODEL_ARGS")),
    Foreign(
        name="a recipe of Megatron-Bridge",
        fix=_BY_HAND,
        looks=_section("model", "tensor_model_parallel_size", "pipeline_model_parallel_size"),
    ),
    Foreign(
        name="a configuration of torchtitan",
        fix=_BY_HAND,
        looks=_text(r"^\[(parallelism|experimental|activation_checkpoint)\]"),
    ),
    Foreign(name="a launch script", fix=_MEGATRON, looks=_text(r"\A#!|^\s*(exec +)?torchrun\b")),
)


def foreign(data: object, text: str) -> Foreign | None:
    """Which of the kinds a file is; None: a spec, or nothing that is known."""
    plain = data if isinstance(data, dict) else {}
    if "pipeline" in plain or "hardware" in plain:
        return None
    return next((kind for kind in KINDS if kind.looks(plain, text)), None)
