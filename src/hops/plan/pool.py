"""The devices to choose from, grouped into kinds that are alike."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hops.api.cluster import build_cluster
from hops.api.fitted import device_rates
from hops.cluster import Cluster, DeviceKind
from hops.config import Spec
from hops.cost import DeviceRates
from hops.draws import FloatArray

IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True, kw_only=True)
class Pool:
    """All devices of a cluster; index d in every array is `ids[d]`.

    Attributes:
        ids, nodes: of every device.
        kinds: devices with equal figures (catalog and what the spec replaces, price included) that attain the same in
            their hosts are one kind.
        kind_of: kind of every device, an index into `kinds`.
        cluster: where they are.
    """

    ids: tuple[str, ...]
    nodes: tuple[str, ...]
    kinds: tuple[DeviceKind, ...]
    kind_of: IntArray
    cluster: Cluster

    @classmethod
    def of(cls, spec: Spec) -> "Pool":
        """All devices of a spec, in its order."""
        cluster = build_cluster(spec)
        known: list[tuple[DeviceKind, DeviceRates]] = []
        kind_of = []
        for device in cluster.devices:
            kind = (device.kind, device_rates(spec, device))
            if kind not in known:
                known.append(kind)
            kind_of.append(known.index(kind))
        return cls(
            ids=tuple(device.id for device in cluster.devices),
            nodes=tuple(device.node for device in cluster.devices),
            kinds=tuple(kind for kind, _ in known),
            kind_of=np.array(kind_of, dtype=np.int64),
            cluster=cluster,
        )

    @cached_property
    def counts(self) -> IntArray:
        """How many devices of each kind there are."""
        return np.bincount(self.kind_of, minlength=len(self.kinds)).astype(np.int64)

    @cached_property
    def memory_bytes(self) -> IntArray:
        """Of each kind."""
        return np.array([kind.memory_bytes for kind in self.kinds], dtype=np.int64)

    @cached_property
    def prices(self) -> FloatArray:
        """Per hour, of each kind."""
        return np.array([kind.price_per_hour for kind in self.kinds])

    @cached_property
    def classes(self) -> tuple[tuple[object, ...], ...]:
        """What tells devices apart: kind and node; each is alone where sockets, NICs or links of its own matter."""
        plain = not self.cluster.links and all(node.nics == 1 and node.sockets == 1 for node in self.cluster.nodes)
        return tuple(
            (int(kind), node) if plain else (int(kind), node, device)
            for device, (kind, node) in enumerate(zip(self.kind_of, self.nodes, strict=True))
        )

    def of_kind(self, kind: int) -> list[int]:
        """The devices of a kind, node by node."""
        return [int(device) for device in np.flatnonzero(self.kind_of == kind)]
