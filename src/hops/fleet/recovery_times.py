"""What recovery costs, in nanoseconds: the spec's recovery section with its defaults worked out."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, expm1, inf, sqrt
from typing import Literal

from hops.build.setup import Setup
from hops.errors import UsageError
from hops.spec.failure import RecoverySection
from hops.units import NS_PER_S, to_ns


def young_interval(pause_s: float, mtbf_s: float) -> float:
    """Training between checkpoints that loses least: sqrt(2 C M).

    Young 1974, "A first order approximation to the optimum checkpoint interval", CACM 17(9), equation 3.

    Args:
        pause_s: seconds of training lost to one checkpoint (C).
        mtbf_s: mean seconds between failures of the whole job (M).
    """
    return sqrt(2 * pause_s * mtbf_s)


def daly_interval(pause_s: float, mtbf_s: float) -> float:
    """The same to higher order: sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C, and M if C >= 2 M.

    Daly 2006, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22, equation 37.
    """
    if pause_s >= 2 * mtbf_s:
        return mtbf_s
    part = pause_s / (2 * mtbf_s)
    return sqrt(2 * pause_s * mtbf_s) * (1 + sqrt(part) / 3 + part / 9) - pause_s


def goodput_of_interval(interval_s: float, *, pause_s: float, mtbf_s: float, restart_s: float = 0.0) -> float:
    """Expected goodput of a job that is interrupted at random, at a constant rate.

    A segment of `interval_s` training and a checkpoint needs M e^(R/M) (e^((tau + C)/M) - 1) seconds (Daly 2006,
    equation 13, without its approximation of the last segment), so goodput is tau over that. Recovery (R) can be
    interrupted, too.
    """
    return interval_s / (mtbf_s * exp(restart_s / mtbf_s) * expm1((interval_s + pause_s) / mtbf_s))


def availability(mtbf_s: float, mttr_s: float) -> float:
    """Long-run share of time in which a device works: MTBF / (MTBF + MTTR)."""
    return mtbf_s / (mtbf_s + mttr_s)


RULES: dict[str, Callable[[float, float], float]] = {"young": young_interval, "daly": daly_interval}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryTimes:
    """Nanoseconds.

    Attributes:
        detection_ns, restart_ns, reconfigure_ns: as in the spec.
        reload_ns: state read from storage; copy_ns: state of one device copied from a peer.
        interval_ns: training between checkpoints; None: no checkpoints.
        pause_ns: training stands still for a checkpoint; write_ns: from its start until it can be used.
        asynchronous: training goes on after the pause while it is written.
        spares: devices that stand by.
        from_peer: a spare's state comes from a data-parallel peer if there is one.
        split_backward: rerouted work runs backwards in halves.
    """

    detection_ns: int = 0
    restart_ns: int = 0
    reconfigure_ns: int = 0
    reload_ns: int = 0
    copy_ns: int = 0
    interval_ns: int | None = None
    pause_ns: int = 0
    write_ns: int = 0
    asynchronous: bool = False
    spares: int = 0
    from_peer: bool = True
    split_backward: bool = True

    def every(self, interval_ns: int) -> "RecoveryTimes":
        """The same with another checkpoint interval."""
        return replace(self, interval_ns=interval_ns)


def recovery_times(setup: Setup, section: RecoverySection, *, mtbf_s: float = inf) -> RecoveryTimes:
    """Work out the defaults of the recovery section.

    Args:
        setup: the run, for the size of its state and the bandwidths of its hosts.
        section: of the spec.
        mtbf_s: mean time between stops of anything in the fleet, for the intervals `young` and `daly`.

    Raises UsageError if such an interval has no answer.
    """
    checkpoint = section.checkpoint
    state = _state_bytes(setup) if section.state is None else section.state
    storage = _storage_bandwidth(setup) if section.storage_bandwidth is None else section.storage_bandwidth
    move_ns = to_ns(state / storage)
    write_ns = move_ns if checkpoint.write is None else to_ns(checkpoint.write)
    default_pause_ns = _to_host_ns(setup) if checkpoint.asynchronous else write_ns
    pause_ns = default_pause_ns if checkpoint.pause is None else to_ns(checkpoint.pause)
    return RecoveryTimes(
        detection_ns=to_ns(section.detection),
        restart_ns=to_ns(section.restart),
        reconfigure_ns=to_ns(section.reconfigure),
        reload_ns=move_ns,
        copy_ns=_copy_ns(setup),
        interval_ns=_interval_ns(checkpoint.interval, pause_ns, mtbf_s),
        pause_ns=pause_ns,
        write_ns=max(write_ns, pause_ns),
        asynchronous=checkpoint.asynchronous,
        spares=section.spares,
        from_peer=section.state_from == "peer",
        split_backward=section.split_backward,
    )


def _interval_ns(interval: Literal["young", "daly"] | float | None, pause_ns: int, mtbf_s: float) -> int | None:
    if interval is None:
        return None
    if not isinstance(interval, str):
        return to_ns(interval)
    if mtbf_s == inf:
        return None  # nothing ever stops: the best interval is none
    if pause_ns == 0:
        raise UsageError(
            f"failure.recovery.checkpoint.interval: got {interval!r}, but a checkpoint costs nothing, so the shortest "
            "interval is the best; state pause, or an interval"
        )
    return to_ns(RULES[interval](pause_ns / NS_PER_S, mtbf_s))


def _ranks_state_bytes(setup: Setup) -> list[int]:
    """Weights and optimizer states that each rank holds."""
    held = [0] * setup.shape.num_ranks
    for stage, rank in enumerate(setup.shape.rank_of_stage):
        memory = setup.costs.memory(stage)
        held[rank] += memory.weights_bytes + memory.optimizer_bytes
    return held


def _state_bytes(setup: Setup) -> int:
    """One copy of weights and optimizer states; data-parallel copies may each hold a part of the states."""
    shards = setup.spec.optimizer.data_parallel if setup.spec.optimizer.distributed else 1
    memories = [setup.costs.memory(stage) for stage in range(setup.shape.stages_per_copy)]
    return sum(each.weights_bytes + shards * each.optimizer_bytes for each in memories)


def _storage_bandwidth(setup: Setup) -> float:
    """Bytes/s of the NICs of one copy's hosts together."""
    of_host: dict[str, float] = {}
    for device_id in setup.spec.hardware.ranks():
        device = setup.cluster.device(device_id)
        of_host[device.node] = setup.cluster.nic(device_id).bandwidth
    return sum(of_host.values())


def _copy_ns(setup: Setup) -> int:
    """The slowest rank's state over its host's NIC."""
    placement = setup.spec.hardware.ranks()
    held = _ranks_state_bytes(setup)
    return max(to_ns(size / setup.cluster.nic(device).bandwidth) for size, device in zip(held, placement, strict=True))


def _to_host_ns(setup: Setup) -> int:
    """The slowest rank's state over its device's bus."""
    devices = [setup.cluster.device(device) for device in setup.spec.hardware.ranks()]
    held = _ranks_state_bytes(setup)
    return max(to_ns(size / device.kind.bus.bandwidth) for size, device in zip(held, devices, strict=True))
