"""What is known of a run before it runs: the spec of its launch, and a benchmark of its network. Never its trace."""

from dataclasses import dataclass

from hops.config import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkBenchmark:
    """A point-to-point benchmark between the hosts of two ranks: median seconds by message size, in rising sizes."""

    ranks: tuple[int, int]
    sizes_bytes: tuple[float, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """A run before it runs. Everything that predicts takes this and nothing else of a run.

    Attributes:
        name: for reports only.
        spec: of the launch, without a hardware profile.
        benchmarks: of neighbouring ranks' hosts; () if there is none.
    """

    name: str
    spec: Spec
    benchmarks: tuple[LinkBenchmark, ...] = ()
