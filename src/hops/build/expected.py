"""What a scheduler may know: expected times, hops and memory, from the same costs that are simulated."""

from collections.abc import Sequence
from math import inf

from hops.cost.base import CostModel
from hops.hardware.devices import Device
from hops.hardware.network import Link, Network, Route
from hops.model.memory import rank_static_bytes
from hops.program.action import Op
from hops.program.shape import Shape
from hops.spec.pipeline import PipelineSection
from hops.timing.stage_costs import StageCosts


def expected(
    shape: Shape,
    costs: CostModel,
    network: Network,
    devices: Sequence[Device],
    *,
    pipeline: PipelineSection,
) -> StageCosts:
    """The expected costs of a run. `devices`: one per rank; random work of microbatches is taken at its mean."""
    stages = range(shape.num_stages)
    memories = [costs.memory(stage) for stage in stages]
    room = [
        device.kind.memory_bytes - rank_static_bytes([memories[stage] for stage in shape.stages_of(rank)])
        for rank, device in enumerate(devices)
    ]
    hops = [_hop(shape, costs, network, stage) for stage in stages[:-1]]
    return StageCosts(
        shape=shape,
        forward_s=tuple(costs.seconds(stage, Op.F) for stage in stages),
        input_backward_s=tuple(costs.seconds(stage, Op.I) for stage in stages),
        weight_backward_s=tuple(costs.seconds(stage, Op.W) for stage in stages),
        fused_backward_s=tuple(costs.seconds(stage, Op.B) for stage in stages),
        hop_s=tuple(whole for whole, _ in hops),
        hop_bytes_s=tuple(moving for _, moving in hops),
        blocking=pipeline.p2p in {"blocking", "blocking_fused"},
        posted=pipeline.p2p == "posted",
        host_per_action_s=pipeline.host_per_action,
        microbatch_work=tuple(each for each in _work(pipeline) for _ in range(shape.slices)),
        pair_factor=pipeline.pair_factor,
        activation_bytes=tuple(memory.activation_bytes for memory in memories),
        kept_for_weight_bytes=tuple(memory.kept_for_weight_bytes for memory in memories),
        budget_bytes=tuple(max(0, each) for each in room),
    )


def _work(pipeline: PipelineSection) -> tuple[float, ...]:
    """Expected work of every microbatch; () where all are 1."""
    stated = pipeline.microbatch_work
    if stated is None:
        return ()
    work = stated if isinstance(stated, tuple) else (stated.build().mean,) * pipeline.microbatches
    return () if set(work) == {1.0} else work


def _hop(shape: Shape, costs: CostModel, network: Network, stage: int) -> tuple[float, float]:
    """Expected seconds of a message between a stage and the next, and what of it its bytes take.

    Both are the mean of the two ways; 0 on the same rank.
    """
    here, there = shape.rank_of_stage[stage], shape.rank_of_stage[stage + 1]
    if here == there:
        return 0.0, 0.0
    out, back = network.routes[here, there], network.routes[there, here]
    sizes = costs.message_bytes(stage, Op.F), costs.message_bytes(stage + 1, Op.B)
    down, up = message_seconds(out, network.links, sizes[0]), message_seconds(back, network.links, sizes[1])
    empty = message_seconds(out, network.links, 0), message_seconds(back, network.links, 0)
    return (down + up) / 2, (down - empty[0] + up - empty[1]) / 2


def message_seconds(route: Route, links: Sequence[Link], size: int) -> float:
    """Expected seconds of a message of `size` bytes that is alone on its route, with what is drawn at its mean.

    `links` are those of the network, which the route numbers; a route without links takes its latency.
    """
    slowest = min((links[link].bandwidth for link in route.links), default=inf)
    jitter = 0.0 if route.jitter is None else route.jitter.mean
    stall = 0.0 if route.stall is None else route.stall.probability * route.stall.extra.mean
    return route.latency_s + jitter + stall + size / slowest
