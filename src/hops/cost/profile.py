"""A hardware profile holds the parameters of the cost model that were fitted on measured runs, as plain data.

Properties of a device are by its catalog name, those of a host by its kind (a cloud's instance type); what belongs to
the framework's code is shared by all of them. `hops calibrate` writes profiles, a spec names one (`hardware.profile`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from hops.cost.roofline import Traffic
from hops.decode.decode import read
from hops.decode.quantities import Number, Positive, Several
from hops.errors import CatalogError, UsageError
from hops.files import atomic_write


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFit:
    """A kind of device.

    Attributes:
        gemm_efficiency, memory_efficiency: parts of the vendor's peaks.
        gemm_ramp_s: per GEMM launch.
        hosts: kinds of hosts it was seen in; the first stands for a host whose kind is not stated.
    """

    gemm_efficiency: Positive
    memory_efficiency: Positive
    gemm_ramp_s: Number
    hosts: Several[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFit:
    """A kind of host.

    Attributes:
        operation_s: to dispatch one counted operation.
        first_fetch_s, refill_s: as in DeviceRates.
        message_s: the host's time per blocking message; a message takes the mean of its two hosts.
        socket_bytes_per_s: what one socket thread moves.
        nic_bytes_per_s: its NIC, as the vendor states it.
    """

    operation_s: Number
    first_fetch_s: Number
    refill_s: Number
    message_s: Number
    socket_bytes_per_s: Positive
    nic_bytes_per_s: Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFactors:
    """The host's time over counted operations x time of one in F of a layer; 1: the count is right."""

    layer_backward: Number = 1.0
    first_forward: Number = 1.0
    first_backward: Number = 1.0
    last_forward: Number = 1.0
    last_backward: Number = 1.0
    norm_layer: Number = 1.0
    step_layer: Number = 1.0
    step: Number = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFit:
    """What belongs to the framework's code and is the same on every device and host."""

    cache_speedup: Positive
    dispatch_lag: Number
    operations: OperationFactors
    traffic: Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFit:
    """Messages between neighbouring stages.

    Attributes:
        nic_efficiency: part of the NIC's rate that a long message reaches.
        nic_burst_bytes: what a shaped NIC lets through at once before its rate holds (a token bucket).
        turn_s: the last rank's pause from F to B, which no message fills.
    """

    nic_efficiency: Positive
    nic_burst_bytes: Number
    turn_s: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFit:
    """The tied all-reduce between two kinds of hosts, or over one slow NIC whatever the other end.

    Attributes:
        hosts: two kinds; one if it is the slow NIC that counts.
        seconds_per_byte: measured ones without stalls, as equally likely values.
        stall_s: how much longer a stalled one takes.
    """

    hosts: Several[str]
    seconds_per_byte: Several[Number]
    stall_s: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFit:
    """All-reduces seen between two hosts (by name), and how many of them stalled."""

    between: tuple[str, str]
    stalls: int
    reductions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StallPrior:
    """Beta distribution of a path's stall probability, over paths with or without a NIC that shapes its traffic."""

    alpha: Number
    beta: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceFit:
    """All-reduces between two hosts over TCP."""

    pairs: tuple[PairFit, ...]
    paths: tuple[PathFit, ...]
    free: StallPrior
    shaped: StallPrior


@dataclass(frozen=True, slots=True, kw_only=True)
class GapFit:
    """The host's pause between iterations: base + per rank after the first."""

    base_s: float
    per_rank_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkFit:
    """Point-to-point benchmark between two kinds of hosts: median seconds by message size, in rising sizes."""

    hosts: tuple[str, str]
    sizes_bytes: Several[Positive]
    seconds: Several[Positive]

    def __post_init__(self) -> None:
        rising = all(one < next_one for one, next_one in pairwise(self.sizes_bytes))
        if len(self.sizes_bytes) != len(self.seconds) or not rising:
            got = f"{len(self.sizes_bytes)} sizes{'' if rising else ' that do not rise'} and {len(self.seconds)} times"
            raise UsageError(f"a benchmark needs rising sizes with a time each, but got {got}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a profile was fitted on: least and greatest value of what its equations extrapolate in.

    `learned` names the scenarios, so that validation can say which runs it is in sample for; nothing else reads it.
    """

    runs: int
    scenarios: int
    hidden: tuple[int, int]
    sequence_length: tuple[int, int]
    layers_per_stage: tuple[int, int]
    microbatch_size: tuple[int, int]
    vocab: tuple[int, int]
    head_dim: tuple[int, int]
    stages: tuple[int, int]
    attention: tuple[str, ...]
    precision: tuple[str, ...]
    transport: tuple[str, ...]
    learned: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("hidden", "sequence_length", "layers_per_stage", "microbatch_size", "vocab", "head_dim", "stages"):
            low, high = getattr(self, name)
            if not 0 < low <= high:
                raise UsageError(f"{name} of a profile's scope must rise from above 0, but got {low} to {high}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareProfile:
    """Everything that was fitted.

    Attributes:
        report: residuals, confidence intervals and what the data cannot tell apart, as `hops calibrate` wrote them.
    """

    scope: Scope
    devices: Mapping[str, DeviceFit]
    hosts: Mapping[str, HostFit]
    code: CodeFit
    messages: MessageFit
    reduce: ReduceFit
    gap: GapFit
    benchmarks: tuple[BenchmarkFit, ...]
    report: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def host_kind(self, device: str, stated: str | None) -> str | None:
        """The kind of a host: the stated one if the profile knows it, else that of hosts of this device, else None."""
        if stated in self.hosts:
            return stated
        return self.devices[device].hosts[0] if device in self.devices else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFile(HardwareProfile):
    """A profile with the number of the form that it is written in."""

    format: Literal[1]

    def profile(self) -> HardwareProfile:
        """The profile alone."""
        return HardwareProfile(**{each.name: getattr(self, each.name) for each in fields(HardwareProfile)})


SHIPPED = Path(__file__).parent / "profiles"
SHIPPED_DEFAULT = "megatron-aws"
FORMAT = 1
_HEADER = """\
# Hardware profile written by `hops calibrate`; do not edit by hand. Times in seconds, sizes in bytes, rates per second.
# A spec uses it by `hardware: {profile: FILE}`. What each figure means: docs/explanation/cost-model.md.
"""


def shipped_profiles() -> tuple[str, ...]:
    """Names of the profiles that come with HOPS."""
    return tuple(sorted(file.stem for file in SHIPPED.glob("*.yaml")))


def shipped_profile(name: str) -> Path:
    """The file of a shipped profile. Raises UsageError, with those there are, if there is none of that name."""
    if name not in shipped_profiles():
        raise UsageError(f"no profile {name!r} comes with HOPS: there are {', '.join(shipped_profiles()) or 'none'}")
    return SHIPPED / f"{name}.yaml"


def write_profile(profile: HardwareProfile, path: Path) -> None:
    """Write a profile; the same profile gives the same bytes."""
    write_form({"format": FORMAT, **plain(profile)}, path)


def write_form(document: Mapping[str, Any], path: Path) -> None:
    """Write a profile that was put into plain data."""
    from ruamel.yaml import YAML

    writer = YAML()
    writer.default_flow_style = None
    writer.width = 120
    with atomic_write(path) as out:
        out.write(_HEADER)
        writer.dump(dict(document), out)


def read_profile(path: Path) -> HardwareProfile:
    """Read a profile. Raises CatalogError with all that is wrong: place and key, what was got and what was expected."""
    path = Path(path)
    return _read(path, path.stat().st_mtime_ns if path.is_file() else 0)


@cache
def _read(path: Path, _changed_ns: int) -> HardwareProfile:
    return read(ProfileFile, path, error=CatalogError, expected="a profile written by `hops calibrate`").profile()


def plain(value: Any) -> Any:
    """Mappings, lists, texts and numbers; numbers with seven digits."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.7g}")
    return value
