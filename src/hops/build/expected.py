"""What a scheduler may know: expected times, hops and memory, from the same costs that are simulated."""

from collections.abc import Sequence

from hops.cost.base import CostModel
from hops.hardware.devices import Device
from hops.hardware.network import Network, Route
from hops.program.action import Op
from hops.program.shape import Shape
from hops.timing.stage_costs import StageCosts


def build_profile(
    shape: Shape, costs: CostModel, network: Network, devices: Sequence[Device], *, blocking: bool
) -> StageCosts:
    """The profile of a run. `devices`: one per rank."""
    stages = range(shape.num_stages)
    memories = [costs.memory(stage) for stage in stages]
    room = [device.memory_bytes for device in (each.kind for each in devices)]
    for stage, rank in enumerate(shape.rank_of_stage):
        room[rank] -= memories[stage].static_bytes
    return StageCosts(
        shape=shape,
        forward_s=tuple(costs.seconds(stage, Op.F) for stage in stages),
        input_backward_s=tuple(costs.seconds(stage, Op.I) for stage in stages),
        weight_backward_s=tuple(costs.seconds(stage, Op.W) for stage in stages),
        fused_backward_s=tuple(costs.seconds(stage, Op.B) for stage in stages),
        hop_s=tuple(_hop(shape, costs, network, stage) for stage in stages[:-1]),
        blocking=blocking,
        activation_bytes=tuple(memory.activation_bytes for memory in memories),
        kept_for_weight_bytes=tuple(memory.kept_for_weight_bytes for memory in memories),
        budget_bytes=tuple(max(0, each) for each in room),
    )


def _hop(shape: Shape, costs: CostModel, network: Network, stage: int) -> float:
    """Expected seconds of a message between a stage and the next, the mean of both ways; 0 on the same rank."""
    here, there = shape.rank_of_stage[stage], shape.rank_of_stage[stage + 1]
    if here == there:
        return 0.0
    down = _seconds(network, network.routes[here, there], costs.message_bytes(stage, Op.F))
    up = _seconds(network, network.routes[there, here], costs.message_bytes(stage + 1, Op.B))
    return (down + up) / 2


def _seconds(network: Network, route: Route, size: int) -> float:
    """Expected seconds of a message that is alone on its route."""
    slowest = min((network.links[link].bandwidth for link in route.links), default=float("inf"))
    jitter = 0.0 if route.jitter is None else route.jitter.mean
    stall = 0.0 if route.stall is None else route.stall.probability * route.stall.extra.mean
    return route.latency_s + jitter + stall + size / slowest
