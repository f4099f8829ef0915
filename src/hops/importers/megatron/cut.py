"""Which layers stand in which stage, as Megatron-LM cuts a model.

Source: Megatron-LM `core/transformer/`, files `transformer_block.py`, `transformer_layer.py` and
`pipeline_parallel_layer_layout.py`, commit d98e8a64dd. Stages are numbered along the model: chunk c of rank r is stage
c x ranks + r.
"""

import re
from dataclasses import dataclass

from hops.errors import UsageError

_MOST_STAGES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What a launch says about the cut.

    Attributes:
        chunks: stages per rank, as a flag states it; None: not stated.
        layers_per_chunk: the other way to state it.
        first, last: layers of the first and the last rank, all its chunks together.
        embedding, loss: whether it counts as a layer of the first or the last rank.
        embedding_alone: whether the first rank holds the embedding and no layer.
        layout: text of --pipeline-model-parallel-layout, which overrides the rest.
    """

    num_layers: int
    ranks: int
    chunks: int | None = None
    layers_per_chunk: int | None = None
    first: int | None = None
    last: int | None = None
    embedding: bool = False
    loss: bool = False
    embedding_alone: bool = False
    layout: str = ""


def cut_layers(cut: Cut, *, where: str) -> tuple[int, ...]:
    """Layers of every stage. Raises UsageError where Megatron-LM would refuse, too."""
    ways = [cut.chunks is not None, cut.layers_per_chunk is not None, bool(cut.layout)]
    if sum(ways) > 1:
        raise UsageError(
            f"{where}: got several of --num-virtual-stages-per-pipeline-rank, --num-layers-per-virtual-pipeline-stage "
            "and --pipeline-model-parallel-layout, expected one"
        )
    if cut.layout:
        return _from_layout(cut, where)
    if cut.embedding_alone:
        return _behind_the_embedding(cut, where)
    if (cut.first is not None or cut.last is not None) and (cut.embedding or cut.loss):
        raise UsageError(
            f"{where}: got --decoder-first/last-pipeline-num-layers with --account-for-..., expected one or the other"
        )
    chunks = _chunks(cut, where)
    per_rank = _per_rank(cut, where)
    uneven = next((each for each in per_rank if each % chunks), None)
    if uneven is not None:
        raise UsageError(
            f"{where}: {cut.num_layers} layers cannot be cut evenly over {cut.ranks * chunks} stages: a rank's "
            f"{uneven} layers are no multiple of its {chunks} chunks"
        )
    stages = [per_rank[rank] // chunks for _ in range(chunks) for rank in range(cut.ranks)]
    stages[0] -= cut.embedding
    stages[-1] -= cut.loss
    if min(stages) < 0:
        raise UsageError(f"{where}: embedding and loss count as layers of a stage that has none; use fewer stages")
    return tuple(stages)


def _chunks(cut: Cut, where: str) -> int:
    if cut.layers_per_chunk is None:
        return cut.chunks or 1
    if cut.first is not None or cut.last is not None:
        raise UsageError(
            f"{where}: got --num-layers-per-virtual-pipeline-stage with --decoder-first/last-pipeline-num-layers; "
            "state --num-virtual-stages-per-pipeline-rank instead"
        )
    counted = cut.num_layers + cut.embedding + cut.loss
    if counted % (cut.ranks * cut.layers_per_chunk):
        raise UsageError(
            f"{where}: --num-layers {cut.num_layers}{_with_ends(cut)} is not a multiple of {cut.ranks} ranks x "
            f"--num-layers-per-virtual-pipeline-stage {cut.layers_per_chunk}"
        )
    return counted // cut.ranks // cut.layers_per_chunk


def _with_ends(cut: Cut) -> str:
    ends = [name for name, counts in (("embedding", cut.embedding), ("loss", cut.loss)) if counts]
    return f" with {' and '.join(ends)}" if ends else ""


def _per_rank(cut: Cut, where: str) -> list[int]:
    """Layers of every rank, embedding and loss counted."""
    counted = cut.num_layers + cut.embedding + cut.loss
    inner = cut.ranks - (cut.first is not None) - (cut.last is not None)
    rest = counted - (cut.first or 0) - (cut.last or 0)
    if inner < 0 or rest < 0 or (inner and rest % inner) or (not inner and rest):
        raise UsageError(
            f"{where}: {cut.num_layers} layers{_with_ends(cut)} cannot be cut evenly over {cut.ranks} stages "
            f"(first {cut.first or 'even'}, last {cut.last or 'even'})"
        )
    middle = [rest // inner] * inner if inner else []
    return [*([cut.first] if cut.first is not None else []), *middle, *([cut.last] if cut.last is not None else [])]


def _behind_the_embedding(cut: Cut, where: str) -> tuple[int, ...]:
    """--standalone-embedding-stage, of older releases: the layers stand evenly on the other ranks."""
    if cut.chunks or cut.layers_per_chunk or cut.first is not None or cut.last is not None or cut.embedding or cut.loss:
        raise UsageError(
            f"{where}: --standalone-embedding-stage is read without other flags about the cut; remove them"
        )
    if cut.ranks < 2 or cut.num_layers % (cut.ranks - 1):
        raise UsageError(
            f"{where}: {cut.num_layers} layers cannot be cut evenly over {cut.ranks - 1} stages behind the embedding"
        )
    return (0, *(cut.num_layers // (cut.ranks - 1),) * (cut.ranks - 1))


def _from_layout(cut: Cut, where: str) -> tuple[int, ...]:
    at = f"{where}: --pipeline-model-parallel-layout {cut.layout[:80]}"
    if cut.first is not None or cut.last is not None or cut.embedding or cut.loss or cut.embedding_alone:
        raise UsageError(f"{at}: says the whole cut; remove --decoder-..., --account-for-... and --standalone-...")
    stages = expand_layout(cut.layout, where=at)
    whole = "".join(stages)
    if "m" in whole:
        raise UsageError(f"{at}: multi-token prediction (m) is not modelled yet; expected E, t and L")
    if whole.count("E") != 1 or whole.count("L") != 1 or whole[:1] != "E" or whole[-1:] != "L":
        raise UsageError(f"{at}: expected E first, L last, each once")
    if len(stages) % cut.ranks:
        raise UsageError(f"{at}: {len(stages)} stages are no multiple of {cut.ranks} pipeline ranks")
    if whole.count("t") != cut.num_layers:
        raise UsageError(f"{at}: has {whole.count('t')} layers, expected the {cut.num_layers} of --num-layers")
    return tuple(stage.count("t") for stage in stages)


def expand_layout(text: str, *, where: str) -> list[str]:
    """The stages of a layout, in the order of the model: `E|(t|)*2L` is E, t, t, L."""
    plain = re.sub(r"[,\s]", "", text)
    outside = re.sub(r"\([^()]*\)(?:\*\d{1,6})?", "", plain)
    if re.search(r"[()]", outside):
        raise UsageError(f"{where}: parentheses are nested or not closed; expected groups such as (t|)*6")
    expanded = re.sub(r"\(([^()]*)\)(?:\*(\d{1,6}))?", lambda found: _times(found, where), plain)
    expanded = re.sub(r"([EtmL|])\*(\d{1,6})", lambda found: _times(found, where), expanded)
    wrong = re.search(r"[^EtmL|]", expanded)
    if wrong:
        raise UsageError(f"{where}: got {wrong[0]!r}, expected E, t, m, L, |, *number and parentheses")
    stages = expanded.split("|")
    if len(stages) > _MOST_STAGES:
        raise UsageError(f"{where}: got {len(stages)} stages, expected at most {_MOST_STAGES}")
    return stages


def _times(found: re.Match[str], where: str) -> str:
    count = int(found[2] or 1)
    if len(found[1]) * count > _MOST_STAGES:
        raise UsageError(f"{where}: {found[0][:20]!r} is longer than {_MOST_STAGES} stages")
    return found[1] * count
