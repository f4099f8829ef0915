"""Will it fit: memory rank by rank at the moment when it holds most, and the smallest change that makes it fit."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hops.build.prepared import PreparedRun, arranged
from hops.build.run import simulate, summarize
from hops.build.setup import Setup, build
from hops.diagnose.advice import peak_bytes, rate
from hops.diagnose.changes import Change, balanced, of_size, shared_states, to_schedule
from hops.errors import DoesNotFitError, HopsError, UsageError
from hops.faults.plan import NO_FAULTS
from hops.metrics.iterations import Iterations
from hops.metrics.memory import activation_bytes, in_flight
from hops.model.memory import rank_workspace_bytes
from hops.spec.spec import Spec

NS_PER_MS = 1e6


class RankMemory(NamedTuple):
    """One rank's device at the moment when it holds most.

    Attributes:
        parts: bytes by name; they sum to what it needs.
        capacity_bytes: what the device has.
        at_ms: when, from the start of the iteration; the first moment of that height.
        in_flight: microbatches then in flight, counted per stage of the rank.
    """

    rank: int
    device: str
    parts: dict[str, int]
    capacity_bytes: int
    at_ms: float
    in_flight: int

    @property
    def needed_bytes(self) -> int:
        return sum(self.parts.values())

    @property
    def fits(self) -> bool:
        return self.needed_bytes <= self.capacity_bytes


class Remedy(NamedTuple):
    """A change with which it fits. `samples_per_s`: what the run then does; microbatches where samples are unknown."""

    change: Change
    samples_per_s: float
    peak_bytes: int | None


class MemoryFit(NamedTuple):
    """All ranks, and if some do not fit: what makes them fit, the fastest first, and what does not, with the reason."""

    ranks: tuple[RankMemory, ...]
    remedies: tuple[Remedy, ...]
    no_remedy: tuple[tuple[Change, str], ...]

    @property
    def fits(self) -> bool:
        return all(rank.fits for rank in self.ranks)


def fit(spec: Spec, *, on_trial: Callable[[int, int], None] | None = None) -> MemoryFit:
    """Memory of a spec's ranks, simulated as if memory were no limit: one iteration, or all where they are drawn.

    Raises UsageError if the spec states no memory at all.
    """
    setup = build(spec)
    ranks = _ranks(setup)
    if not any(rank.needed_bytes for rank in ranks):
        raise UsageError(
            "hops fit needs to know what stages hold: add pipeline.model, or activation, weights, gradients and "
            "optimizer_state to pipeline.stage_times"
        )
    if all(rank.fits for rank in ranks):
        return MemoryFit(ranks, (), ())
    remedies, others = [], []
    changes = list(_smaller(spec))
    for number, change in enumerate(changes, start=1):
        try:
            summary = summarize(simulate(spec.with_(dict(change.settings))))
            remedies.append(Remedy(change, rate(summary), peak_bytes(summary)))
        except DoesNotFitError as error:
            others.append((change, error.args[0].splitlines()[1].strip() if "\n" in str(error) else str(error)))
        except HopsError as error:
            others.append((change, str(error).splitlines()[0]))
        if on_trial is not None:
            on_trial(number, len(changes))
    return MemoryFit(ranks, tuple(sorted(remedies, key=lambda each: -each.samples_per_s)), tuple(others))


def _ranks(setup: Setup) -> tuple[RankMemory, ...]:
    pipeline = PreparedRun(setup=setup, program=arranged(setup))
    drawn = len(setup.facts.microbatch_work) > 1  # every iteration has microbatches of its own
    trace = pipeline.unchecked(setup.settings.iterations if drawn else 1, setup.settings.seed, NO_FAULTS)
    run = Iterations.of(trace, replace(setup.facts, warmup_iterations=0))
    found = []
    flights = in_flight(run)
    for rank, held in enumerate(activation_bytes(run)):
        memories = [setup.facts.stage_memory[stage] for stage in setup.shape.stages_of(rank)]
        place = int(np.argmax(held.value)) if len(held.value) else 0
        at_ns = int(held.at_ns[place]) if len(held.at_ns) else 0
        before = int(np.searchsorted(flights[rank].at_ns, at_ns, side="right")) - 1
        parts = {
            "weights": sum(each.weights_bytes for each in memories),
            "gradients": sum(each.gradients_bytes for each in memories),
            "optimizer": sum(each.optimizer_bytes for each in memories),
            "workspace": rank_workspace_bytes(memories),
            "activations": held.peak,
        }
        found.append(
            RankMemory(
                rank=rank,
                device=setup.settings.devices[rank],
                parts=parts,
                capacity_bytes=setup.facts.memory_bytes[rank],
                at_ms=(at_ns - int(run.start_ns[run.start_ns <= at_ns].max(initial=0))) / NS_PER_MS,
                in_flight=int(flights[rank].value[before]) if before >= 0 else 0,
            )
        )
    return tuple(found)


def _smaller(spec: Spec) -> Iterator[Change]:
    """Changes that need less memory, one at a time, and then recomputation together with each other one."""
    alone = [*_recompute(spec), *_fewer_in_flight(spec), *shared_states(spec), *_smaller_microbatches(spec)]
    yield from alone
    for again in _recompute(spec):
        for other in alone:
            if not set(other.settings) & set(again.settings):
                yield Change(f"{again.what}, {other.what}", {**again.settings, **other.settings})


def _recompute(spec: Spec) -> Iterator[Change]:
    if spec.pipeline.model is None:
        return
    if spec.pipeline.recompute == "none":
        yield Change("recompute selective", {"pipeline.recompute": "selective"})
    if spec.pipeline.recompute != "full":
        yield Change("recompute full", {"pipeline.recompute": "full"})


def _fewer_in_flight(spec: Spec) -> Iterator[Change]:
    yield from (
        to_schedule(name) for name in ("1f1b", "zb_h1", "v_half", "v_min") if name != spec.pipeline.schedule.name
    )
    yield from balanced(spec)


def _smaller_microbatches(spec: Spec) -> Iterator[Change]:
    size = spec.pipeline.microbatch_size
    while size % 2 == 0:
        size //= 2
        yield from of_size(spec, size)
