"""What copies of a stage exchange: gradients and parameters, once an iteration or with every microbatch.

ZeRO (Rajbhandari et al. 2020, arXiv 1910.02054): stage 0 reduces all gradients; stage 1 scatters their sums and gathers
the parameters that each copy stepped; stage 2 keeps only its part of the gradients, so that it scatters those of every
microbatch; stage 3 and FSDP (Zhao et al. 2023, arXiv 2304.11277) keep only their part of the parameters, too, and
gather them for every F and again for every backward. Pipelines run many microbatches between two steps: there gradients
are scattered and parameters gathered once an iteration, as torchtitan does it (`reshard_after_forward: default`). With
hybrid sharding, sums of each shard are added up over the groups that hold all shards (HSDP).
"""

from dataclasses import dataclass, replace

from hops.axes import Axis
from hops.cost.exchange import DeviceGroups
from hops.cost.roofline import COMPUTING
from hops.model.kernels import Collective, CollectiveKind, GroupPart, Kernels
from hops.model.workload import OpWork, StageWork


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a device of a stage holds and its copies exchange, in bytes; of routed experts apart."""

    gradients: float
    parameters: float
    expert_gradients: float = 0.0
    expert_parameters: float = 0.0

    def __add__(self, other: "Held") -> "Held":
        return Held(
            gradients=self.gradients + other.gradients,
            parameters=self.parameters + other.parameters,
            expert_gradients=self.expert_gradients + other.expert_gradients,
            expert_parameters=self.expert_parameters + other.expert_parameters,
        )


def held_by(stage: StageWork, *, gradient_bytes: float, element_bytes: int) -> Held:
    """What a device of a stage holds, by bytes of a gradient and of a parameter."""
    dense, experts = stage.parameters - stage.expert_parameters, stage.expert_parameters
    return Held(
        gradients=dense * gradient_bytes,
        parameters=dense * element_bytes,
        expert_gradients=experts * gradient_bytes,
        expert_parameters=experts * element_bytes,
    )


NOTHING_HELD = Held(gradients=0.0, parameters=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """How copies divide what they hold.

    Attributes:
        zero: the stage of ZeRO, 0 to 3.
        groups: groups of copies that each hold all parts (HSDP); 1: all copies together do.
        each_microbatch: whether stages 2 and 3 exchange with every microbatch: where there is no pipeline.
        overlapped: what goes on beside computing: `gradients`, `parameters`.
    """

    zero: int = 0
    groups: int = 1
    each_microbatch: bool = False
    overlapped: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOfIteration:
    """Collectives of a rank after its last backward: of gradients, then of parameters after the step."""

    reduce: Kernels
    gather: Kernels


def at_end(held: Held, sharing: Sharing) -> EndOfIteration:
    """What is left for the end of an iteration."""
    scattered = sharing.each_microbatch and sharing.zero >= 2
    gathered = sharing.each_microbatch and sharing.zero == 3
    return EndOfIteration(
        reduce=() if scattered else reductions(held, sharing),
        gather=() if gathered or sharing.zero == 0 else gathers(held, sharing),
    )


def reductions(held: Held, sharing: Sharing) -> Kernels:
    """All-reduces of gradients, or their reduce-scatters, with hybrid sharding an all-reduce of each part after it."""
    dense: tuple[Collective, ...]
    if sharing.zero == 0:
        dense = (_collective("all_reduce", Axis.DATA, held.gradients),)
    elif sharing.groups == 1:
        dense = (_collective("reduce_scatter", Axis.DATA, held.gradients),)
    else:
        dense = (
            _collective("reduce_scatter", Axis.DATA, held.gradients, part="inner"),
            _collective("all_reduce", Axis.DATA, held.gradients, part="outer"),
        )
    kind: CollectiveKind = "reduce_scatter" if sharing.zero else "all_reduce"
    return tuple(each for each in (*dense, _collective(kind, Axis.EXPERT_DATA, held.expert_gradients)) if each.bytes)


def gathers(held: Held, sharing: Sharing) -> Kernels:
    """All-gathers of parameters."""
    part: GroupPart = "whole" if sharing.groups == 1 else "inner"
    both = (
        _collective("all_gather", Axis.DATA, held.parameters, part=part),
        _collective("all_gather", Axis.EXPERT_DATA, held.expert_parameters),
    )
    return tuple(each for each in both if each.bytes)


def seconds(collectives: Kernels, exchange: DeviceGroups, *, inner: int) -> float:
    """All of them, one after the other. What is summed over groups of copies is the part of one of `inner` shards."""
    total = 0.0
    for each in collectives:
        assert isinstance(each, Collective), "copies exchange nothing else"
        total += exchange.seconds(replace(each, bytes=each.bytes // inner) if each.part == "outer" else each)
    return total


def overlapped_s(exchanged_s: float, buckets: int, window_s: float, exchange: DeviceGroups) -> float:
    """What is exposed of an exchange in buckets, all but one of which may go on beside computing of `window_s`."""
    last = exchanged_s / buckets
    return last + exchange.exposed(exchanged_s - last, window_s)


def with_microbatches(work: StageWork, held: Held, sharing: Sharing, inner: int) -> StageWork:
    """The work of a stage whose copies exchange with every microbatch: layer by layer, the next one's beside this one.

    F and the backward pass gather parameters (ZeRO-3), and W scatters gradients.
    """
    if not sharing.each_microbatch or sharing.zero < 2 or work.num_layers == 0:
        return work
    gather = _by_layer(gathers(held, sharing), work.num_layers, hides="parameters" in sharing.overlapped, inner=inner)
    scatter = _by_layer(
        reductions(held, sharing), work.num_layers, hides="gradients" in sharing.overlapped, inner=inner
    )
    if sharing.zero == 2:
        gather = ()
    return replace(
        work,
        forward=_with(work.forward, gather),
        input_backward=_with(work.input_backward, gather),
        weight_backward=_with(work.weight_backward, scatter),
    )


def _with(work: OpWork, kernels: Kernels) -> OpWork:
    return replace(work, layers=work.layers + kernels)


def _by_layer(collectives: Kernels, layers: int, *, hides: bool, inner: int) -> Kernels:
    """Each cut into one per layer; the first is waited for, the others may hide under all that is computed."""
    cut: list[Collective] = []
    for each in collectives:
        assert isinstance(each, Collective), "copies exchange nothing else"
        size = each.bytes // inner if each.part == "outer" else each.bytes
        one = replace(each, bytes=max(1, size // layers))
        cut.append(one if hides else replace(one, calls=layers))
        if hides and layers > 1:
            cut.append(replace(one, calls=layers - 1, hides_under=COMPUTING))
    return tuple(cut)


def _collective(kind: CollectiveKind, axis: Axis, size: float, *, part: GroupPart = "whole") -> Collective:
    return Collective(name="data", kind=kind, axis=axis, bytes=round(size), part=part)
