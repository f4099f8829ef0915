"""What a simulated trace says beside its rows: ranks, links, and the sizes of messages."""

import numpy as np
from numpy.typing import NDArray

from hops.actions import Op
from hops.cluster import Network
from hops.cost import CostModel
from hops.engine.settings import Settings
from hops.schedule import Shape
from hops.trace import LinkMeta, TraceMeta


def trace_meta(shape: Shape, network: Network, settings: Settings) -> TraceMeta:
    """The meta of a run's trace."""
    ranks = range(shape.num_ranks)
    pairs = sorted((a, b) for a, b in network.routes if a in ranks and b in ranks)
    return TraceMeta(
        source="simulated",
        schedule=settings.schedule,
        num_microbatches=shape.num_microbatches,
        rank_of_stage=shape.rank_of_stage,
        devices=settings.devices or tuple(f"rank{rank}" for rank in ranks),
        hosts=settings.hosts or tuple(f"host{rank}" for rank in ranks),
        links=tuple(LinkMeta(name=link.name, bandwidth=link.bandwidth) for link in network.links),
        routes={pair: network.routes[pair].links for pair in pairs},
    )


def message_sizes(costs: CostModel) -> NDArray[np.int64]:
    """Bytes that each stage sends: shape (stages, ops that send)."""
    sending = (Op.F, Op.B, Op.I)
    sizes = [[costs.message_bytes(stage, op) for op in sending] for stage in range(costs.num_stages)]
    return np.array(sizes, dtype=np.int64)
