"""A Hugging Face model becomes a spec, with its shape written out; how it is trained is for people to say."""

from collections.abc import Sequence
from dataclasses import fields
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from hops.importers.megatron.hosts import Placed
from hops.model.hugging_face import HuggingFaceModel
from hops.model.transformer import Transformer
from hops.spec.model import as_fields

_LONGEST = 4096  # tokens of a sample where no length is asked for: most models pretrain on as many or more


def model_spec_text(
    model: HuggingFaceModel, placed: Sequence[Placed], *, name: str, microbatches: int, sequence_length: int | None
) -> str:
    """A spec of the model on these devices, one stage each.

    `sequence_length` None: the model's longest sequence, or 4096 if that is shorter.
    """
    shape = model.transformer
    length = min(shape.max_positions, _LONGEST) if sequence_length is None else sequence_length
    document = {
        "pipeline": {
            "model": written_shape(shape),
            "schedule": "1f1b",
            "microbatches": microbatches,
            "sequence_length": length,
            "partition": "balanced",
        },
        "hardware": {"nodes": _nodes(placed)},
    }
    writer = YAML()
    writer.width = 120
    writer.indent(mapping=2, sequence=4, offset=2)
    out = StringIO()
    billions = f"{shape.parameters / 1e9:.3f} billion parameters"
    out.write(f"# {name}: a {model.family} of {billions}, imported from Hugging Face\n")
    writer.dump(_laid_out(document), out)
    return out.getvalue()


def written_shape(transformer: Transformer) -> dict[str, Any]:
    """The keys of a spec's model, defaults of uncommon ones left out."""
    usual = {each.name: each.default for each in fields(Transformer)}
    found = {}
    for key, value in as_fields(transformer).items():
        if value == usual[key]:
            continue
        found[key] = value.model_dump(exclude_defaults=True) if key in ("latent", "experts") else value
    return found


def _nodes(placed: Sequence[Placed]) -> list[dict[str, Any]]:
    """Hosts in a row with as many devices of a type are one entry."""
    by_host: dict[str, list[str]] = {}
    for each in placed:
        by_host.setdefault(each.host, []).append(each.device)
    nodes: list[dict[str, Any]] = []
    for devices in by_host.values():
        kinds = [{"type": kind, "count": devices.count(kind)} for kind in dict.fromkeys(devices)]
        if nodes and nodes[-1]["devices"] == kinds:
            nodes[-1]["count"] += 1
        else:
            nodes.append({"count": 1, "devices": kinds})
    return nodes


def _laid_out(value: Any) -> Any:
    """Lists of plain values in one line, everything else in blocks."""
    if isinstance(value, dict):
        return CommentedMap((key, _laid_out(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        laid_out = CommentedSeq(_laid_out(each) for each in value)
        if not any(isinstance(each, dict | list) for each in value):
            laid_out.fa.set_flow_style()
        return laid_out
    return value
