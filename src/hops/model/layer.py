"""What one transformer layer launches on one device for one microbatch: F, I and W, and what recompute repeats of F.

GEMM flops follow Narayanan et al. 2021 (arXiv 2104.04473, appendix): for the classic shape F is sbh(24h + 4s),
I sbh(24h + 8s), W 24sbh^2, with s the sequence length, b samples, h hidden.

Tensor, context and expert parallelism exchange in F and I. W exchanges nothing: it multiplies what I left.
"""

from dataclasses import dataclass

from hops.axes import Axis
from hops.model import attention, elementwise, ends, exchange, linear, mlp, routed
from hops.model.implementation import RecomputeModule
from hops.model.kernels import Collective, Kernels
from hops.model.kinds import Layer
from hops.model.linear import Linear
from hops.model.local import Local


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """The kernels of one layer: F, I, W, and what of F is computed again under the recompute option."""

    forward: Kernels
    input_backward: Kernels
    weight_backward: Kernels
    recompute: Kernels


def layer_work(here: Local, layer: Layer) -> LayerWork:
    """All kernels of one layer for one microbatch."""
    forward = _forward(here, layer)
    again = forward if here.how.recompute == "full" else ()
    if here.how.recompute == "selective":
        again = _modules(here, layer, here.how.recompute_modules)
    return LayerWork(
        forward=forward,
        input_backward=_input_backward(here, layer),
        weight_backward=_weight_backward(here, layer),
        recompute=again,
    )


def layer_linears(here: Local, layer: Layer) -> tuple[Linear, ...]:
    """All linear layers, from the first on; an MTP head's head is no part of it, being the model's."""
    inner = (*attention.linears(here), *_mlp_linears(here, layer))
    return (_mtp_projection(here), *inner) if layer.mtp else inner


def _mlp_linears(here: Local, layer: Layer) -> tuple[Linear, ...]:
    if layer.experts is None:
        return mlp.linears(here, here.model.ffn_hidden, "mlp")
    return routed.linears(here, layer.experts)


def _forward(here: Local, layer: Layer) -> Kernels:
    linears = layer_linears(here, layer)
    found = (
        *linear.forward(linears, here.how),
        *attention.core_forward(here, layer),
        elementwise.forward(here, layer),
        *linear.casts(linears, here.how),
    )
    if layer.experts is not None:
        found = (*found, *routed.passes(here, layer.experts))
    if layer.mtp:
        head = (*ends.head_forward(here), *ends.cross_entropy_forward(here), *ends.head_exchanges(here))
        found = (*found, *ends.embedding_forward(here), *head, *_mtp_exchanges(here))
    return (*found, *attention.exchanges(here), *_mlp_exchanges(here, layer))


def _input_backward(here: Local, layer: Layer) -> Kernels:
    linears = layer_linears(here, layer)
    found = (
        *linear.input_backward(linears, here.how),
        *attention.core_backward(here, layer),
        elementwise.backward(here, layer),
        *linear.gradient_casts(linears, here.how),
    )
    if layer.experts is not None:
        found = (*found, *routed.passes_backward(here, layer.experts))
    if layer.mtp:
        head = (*ends.cross_entropy_backward(here), *ends.head_input_backward(here))
        head = (*head, *ends.head_exchanges_backward(here), *_mtp_exchanges_backward(here))
        found = (*found, *head, *ends.embedding_backward(here))
    return (*found, *attention.exchanges_backward(here), *_mlp_exchanges_backward(here, layer))


def _weight_backward(here: Local, layer: Layer) -> Kernels:
    linears = layer_linears(here, layer)
    parameters = sum(each.parameters for each in linears)
    found = (*linear.weight_backward(linears, here.how), linear.gradient_accumulation(parameters, here.how))
    return (*found, *ends.head_weight_backward(here)) if layer.mtp else found


def _mlp_exchanges(here: Local, layer: Layer) -> Kernels:
    return mlp.exchanges(here, "mlp") if layer.experts is None else routed.exchanges(here, layer.experts)


def _mlp_exchanges_backward(here: Local, layer: Layer) -> Kernels:
    if layer.experts is None:
        return mlp.exchanges_backward(here, "mlp")
    return routed.exchanges_backward(here, layer.experts)


def _mtp_projection(here: Local) -> Linear:
    """Last state and next embedding, side by side, to one hidden state; cut by columns."""
    hidden = here.model.hidden
    return Linear(name="mtp", rows=here.tokens, inside=2 * hidden, out=here.part_of_width(hidden))


def _mtp_exchanges(here: Local) -> Kernels:
    """F of the projection: its input where it is divided by tokens, then the columns of its result."""
    return (*exchange.enter(here, 2 * here.model.hidden, "mtp"), *_mtp_columns(here))


def _mtp_exchanges_backward(here: Local) -> Kernels:
    """I: the gradient of the result is cut where it lies, unless it is divided by tokens."""
    columns = _mtp_columns(here) if here.shards.sequence else ()
    return (*columns, *exchange.enter_backward(here, 2 * here.model.hidden, "mtp"))


def _mtp_columns(here: Local) -> Kernels:
    if here.shards.tensor == 1:
        return ()
    size = here.tokens * here.model.hidden * here.how.element_bytes
    return (Collective(name=exchange.TERM, kind="all_gather", axis=Axis.TENSOR, bytes=size),)


def _modules(here: Local, layer: Layer, modules: tuple[RecomputeModule, ...]) -> Kernels:
    """Kernels of F of these modules of a layer, with their collectives; none of those that it has not.

    What is part of another chosen one is counted once.
    """
    inside_another = ("moe_act", "shared_experts") if "moe" in modules else ()
    chosen = [module for module in modules if module not in inside_another]
    return tuple(kernel for module in chosen for kernel in _module(here, layer, module))


def _module(here: Local, layer: Layer, module: RecomputeModule) -> Kernels:
    model, how, experts = here.model, here.how, layer.experts
    if module == "core_attn":
        return (*attention.core_forward(here, layer), *attention.context_forward(here))
    if module == "layernorm":
        return (elementwise.norms_forward(here, layer),)
    if module == "mla_up_proj":
        if model.latent is None:
            return ()
        gathered = exchange.enter(here, attention.entered_width(here), "qkv")
        return (*linear.forward(attention.latent_up(here), how), *gathered)
    if experts is None:
        if module != "mlp":
            return ()
        linears = _mlp_linears(here, layer)
        return (*linear.forward(linears, how), elementwise.activation_forward(here, layer), *mlp.exchanges(here, "mlp"))
    if module == "moe_act":
        return (elementwise.activation_forward(here, layer),)
    if module == "shared_experts" and experts.shared_hidden:
        return (*linear.forward(routed.shared(here, experts), how), *mlp.exchanges(here, routed.SHARED))
    if module == "moe":
        products = linear.forward(routed.linears(here, experts), how)
        passes = (*routed.passes(here, experts), elementwise.activation_forward(here, layer))
        return (*products, *passes, *routed.exchanges(here, experts))
    return ()
