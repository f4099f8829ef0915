"""Parameters that one device holds, those of routed experts apart: their gradients are reduced over other devices."""

from dataclasses import dataclass

from hops.model.kinds import Layer
from hops.model.layer import layer_linears
from hops.model.local import Local
from hops.model.partition import StageSlice
from hops.model.routed import EXPERTS


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalParameters:
    """How many a device holds: of routed experts, and all others."""

    dense: int
    experts: int

    @property
    def total(self) -> int:
        return self.dense + self.experts


def local_parameters(here: Local, part: StageSlice, runs: tuple[tuple[Layer, int], ...]) -> LocalParameters:
    """Parameters of a stage on one device. A tied table is held by the first and by the last stage; once, if they are
    the same. `runs` are the stage's layers (`Transformer.runs`).
    """
    dense, experts = _ends(here, part), 0
    for layer, count in runs:
        own = _layer(here, layer)
        dense, experts = dense + count * own.dense, experts + count * own.experts
    return LocalParameters(dense=dense, experts=experts)


def quantized_bytes(here: Local, runs: tuple[tuple[Layer, int], ...]) -> int:
    """Bytes of weights in fewer bits beyond those in elements: two copies, for both directions of use.

    Held beside the elements, unless the recipe keeps weights in the format only (Transformer Engine's modules cache
    both copies over the microbatches of an iteration).
    """
    recipe = here.how.quantization
    if recipe is None:
        return 0
    each = 2 * recipe.operand_bytes - (here.how.element_bytes if recipe.quantized_weights else 0)
    count = sum(n * linear.parameters for layer, n in runs for linear in layer_linears(here, layer) if linear.quantized)
    return round(count * each)


def _ends(here: Local, part: StageSlice) -> int:
    model, count = here.model, 0
    table = here.vocab * model.hidden
    if part.embedding:
        count += table + model.position_parameters + model.embedding_norm_parameters
    if part.head:
        shares_table = model.tied and part.embedding
        count += model.norm_parameters + (0 if shares_table else table)
    return count


def _layer(here: Local, layer: Layer) -> LocalParameters:
    """Matrices and biases of layers cut by columns are divided; norms, biases of those cut by rows, and the router are
    not.
    """
    linears = layer_linears(here, layer)
    routed = sum(each.parameters for each in linears if each.name == EXPERTS)
    routed += _expert_biases(here, layer)
    dense = sum(each.parameters for each in linears if each.name != EXPERTS)
    return LocalParameters(dense=dense + _replicated(here, layer) + _biases(here, layer), experts=routed)


def _replicated(here: Local, layer: Layer) -> int:
    """Norms, and sinks (which are divided by heads)."""
    model = here.model
    count = model.norms * model.norm_parameters + (here.heads if model.sinks else 0)
    if model.head_norms:
        count += 2 * model.norm_width(model.head_dim)
    if model.latent is not None:
        count += model.norm_width(model.latent.query_rank) + model.norm_width(model.latent.kv_rank)
    return count + (3 * model.norm_parameters if layer.mtp else 0)


def _biases(here: Local, layer: Layer) -> int:
    model, experts = here.model, layer.experts
    count = here.qkv_width if model.biases or model.qkv_biases else 0
    count += experts.count if experts is not None and experts.router_bias else 0
    if not model.biases:
        return count
    width = model.ffn_hidden if experts is None else experts.shared_hidden
    mlp = model.widened(here.part_of_width(width)) + model.hidden if width else 0
    return count + model.hidden + mlp


def _expert_biases(here: Local, layer: Layer) -> int:
    if layer.experts is None or not here.model.biases:
        return 0
    width = here.model.widened(layer.experts.hidden) // here.shards.expert_tensor
    return here.experts_here(layer.experts) * (width + here.model.hidden)
