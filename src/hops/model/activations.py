"""Activation bytes that one device keeps of a microbatch, between F and the backward pass and between I and W."""

from collections.abc import Iterable
from math import ceil

from hops.model import elementwise, routed
from hops.model.attention import scores_elements
from hops.model.implementation import RecomputeModule
from hops.model.kinds import Experts, Layer
from hops.model.layer import layer_linears
from hops.model.linear import FP32_BYTES, Linear
from hops.model.local import Local
from hops.model.partition import StageSlice

Runs = tuple[tuple[Layer, int], ...]


def kept_bytes(here: Local, part: StageSlice, runs: Runs) -> int:
    """What F of a stage keeps per microbatch under the recompute option."""
    how = here.how
    left = part.layers if how.recompute_layers is None else min(part.layers, how.recompute_layers)
    total = _ends(here, part)
    if how.recompute == "full":  # of several layers made again together one input is enough
        spared = left - ceil(left / how.recompute_unit)
        total -= spared * _input(here)
    for layer, count in runs:
        again = min(left, count)
        left -= again
        total += again * kept_layer_bytes(here, layer) + (count - again) * layer_bytes(here, layer)
    return total


def _input(here: Local) -> int:
    """Bytes of a layer's input."""
    return here.held_tokens * here.model.hidden * here.how.element_bytes


def kept_layer_bytes(here: Local, layer: Layer) -> int:
    """Bytes that one layer keeps from F to its backward under the recompute option.

    Selective recompute drops what its modules make, full recompute all but the layer's input.
    Korthikanti et al. 2022 (arXiv 2205.05198), table 2.
    """
    how = here.how
    if how.recompute == "full":
        return _input(here)
    whole = layer_bytes(here, layer)
    if how.recompute == "none":
        return whole
    return whole - sum(_dropped(here, layer, module) for module in how.recompute_modules)


def remade_bytes(here: Local, runs: Runs) -> int:
    """The most that the backward pass makes again at once and F did not keep: scores, or layers but their input."""
    if here.how.recompute == "none":
        return 0
    if here.how.recompute == "full":
        together = min(here.how.recompute_unit, sum(count for _, count in runs))
        return max((together * layer_bytes(here, layer) - _input(here) for layer, _ in runs), default=0)
    return max((layer_bytes(here, layer) - kept_layer_bytes(here, layer) for layer, _ in runs), default=0)


def layer_bytes(here: Local, layer: Layer) -> int:
    """Bytes of one layer with nothing recomputed: sbh(34 + 5as/h) for the classic shape at 16 bits.

    Divided in t by tensor parallelism: sbh(10 + 24/t + 5as/ht), with sequence parallelism sbh/t(34 + 5as/h).
    Korthikanti et al. 2022 (arXiv 2205.05198), equations 1, 2 and 4. Flash attention has no score terms (its
    log-sum-exp, 4/head_dim bytes per element of hidden, is left out).

    Held between linear layers, per token: inputs of norms, of qkv and MLP, latents and what their norms give, two
    masks. Divided by heads or width: inputs of attention, projection, activation, second half of the MLP.
    """
    model, how = here.model, here.how
    held = (model.norms + 2) * model.hidden
    if model.latent is not None:
        held += 2 * (model.latent.query_rank + model.latent.kv_rank) + model.latent.rope_dim
    if layer.mtp:
        held += 5 * model.hidden  # inputs of three norms, and of the projection
    masks = 2 * model.hidden if how.dropout else 0
    divided = here.qkv_width + here.context_width
    divided += here.query_width + here.key_width if model.head_norms else 0
    total = here.held_tokens * (held * how.element_bytes + masks) + here.tokens * divided * how.element_bytes
    return total - _quantized(here, layer) + _mlp(here, layer) + _score_bytes(here) + (_head(here) if layer.mtp else 0)


def _quantized(here: Local, layer: Layer) -> int:
    """What is saved as linear layers keep their inputs in fewer bits (Transformer Engine: one quantized copy of each).

    Of the inputs of qkv and MLP, and of the second half of the MLP; that of the projection is attention's own, too.
    """
    recipe = here.how.quantization
    if recipe is None:
        return 0
    _, activated = elementwise.activation(here, layer)
    elements = here.held_tokens * 2 * here.model.hidden + activated
    return int(elements * (here.how.element_bytes - recipe.operand_bytes))


def _mlp(here: Local, layer: Layer) -> int:
    """What the MLP or the experts keep beyond their input."""
    activated = sum(elementwise.activation(here, layer)) * here.how.element_bytes
    return activated if layer.experts is None else activated + _routing(here, layer.experts)


def _routing(here: Local, experts: Experts) -> int:
    """Rows that came to the experts of this device, and scores of the router in fp32, before and after softmax."""
    rows = routed.rows_here(here, experts) * here.model.hidden * here.how.element_bytes
    return rows + here.held_tokens * experts.count * 2 * FP32_BYTES


def _score_bytes(here: Local) -> int:
    """Softmax output, and with dropout its mask and output."""
    how = here.how
    if how.attention == "flash":
        return 0
    per_element = how.element_bytes + (1 + how.element_bytes if how.dropout else 0)
    return per_element * scores_elements(here)


def _dropped(here: Local, layer: Layer, module: RecomputeModule) -> int:
    """Bytes that a module makes and F need not keep, if it is computed again."""
    model, experts, element = here.model, layer.experts, here.how.element_bytes
    if module == "core_attn":
        return _score_bytes(here)
    if module == "layernorm":
        return 2 * here.held_tokens * model.hidden * element
    if module == "mla_up_proj":
        return here.tokens * here.qkv_width * element if model.latent is not None else 0
    if experts is None:
        return _mlp(here, layer) if module == "mlp" else 0
    if module == "moe":
        return _mlp(here, layer)
    modules = here.how.recompute_modules
    if "moe" in modules:  # counted there
        return 0
    if module == "moe_act":  # its output is made again from its input
        return elementwise.activation(here, layer)[1] * element
    if module == "shared_experts":
        return here.tokens * sum(routed.shared_activation(here, experts)) * element
    return 0


def kept_for_weight_bytes(here: Local, part: StageSlice, runs: Runs) -> int:
    """What W needs of a microbatch: input and output gradient of every linear layer; 32sbh for the classic layer.

    Qi et al. 2023 (arXiv 2401.10241), section 2.1. Inputs that tensor parallelism divides by tokens are whole again:
    I gathered them.
    """
    element = here.how.element_bytes
    total = sum(count * _gemm_operands(layer_linears(here, layer)) * element for layer, count in runs)
    heads = int(part.head) + sum(count for layer, count in runs if layer.mtp)
    return total + heads * here.tokens * (here.model.hidden + here.vocab) * element


def _gemm_operands(linears: Iterable[Linear]) -> int:
    return sum(each.batch * each.rows * (each.inside + each.out) for each in linears)


def _ends(here: Local, part: StageSlice) -> int:
    """Embedding dropout mask sbh on the first stage; head on the last."""
    mask = here.held_tokens * here.model.hidden if part.embedding and here.how.dropout else 0
    return mask + (_head(here) if part.head else 0)


def _head(here: Local) -> int:
    """Inputs of final norm and head and fp32 logits, 4sbh(1 + v/h): Korthikanti et al. 2022, section 4.3."""
    inputs = here.held_tokens * 2 * here.model.hidden * here.how.element_bytes
    return inputs + here.tokens * here.vocab * FP32_BYTES
