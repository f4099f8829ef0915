"""One copy of the pipeline in the engine: its iterations, with and without faults."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hops.build.setup import Setup
from hops.decode.quantities import Section
from hops.engine.settings import RunSettings
from hops.engine.simulate import run_policy, run_policy_until_stop, run_program, run_program_until_stop
from hops.engine.stopped_run import StoppedRun
from hops.errors import DoesNotFitError
from hops.faults.plan import FaultPlan
from hops.model.memory import rank_workspace_bytes
from hops.program.program import Program
from hops.recent import Recent
from hops.schedules.base import StaticScheduler
from hops.spec.distributions import ConstantForm, Form
from hops.spec.hardware import StallForm
from hops.spec.spec import Spec
from hops.timing.memory_peaks import memory_peaks
from hops.trace.trace import Stream, Trace
from hops.units import format_bytes

GIB = 1 << 30


SHARED_ACTIONS = 20_000  # programs of more are not kept for other setups
_PROGRAMS: Recent[Program] = Recent(64)
_FITS: Recent[None] = Recent(64)


def arranged(setup: Setup) -> Program | None:
    """The program of a setup's schedule; None: a policy decides. Setups with the same costs share it."""
    scheduler = setup.scheduler()
    if not isinstance(scheduler, StaticScheduler):
        return None

    def arrange() -> Program:
        scheduler.configure(setup.expected)
        return scheduler.program

    about = (type(scheduler), setup.spec.pipeline.schedule, setup.expected)
    return _PROGRAMS.of(about, arrange, keep=lambda program: program.num_actions <= SHARED_ACTIONS)


def check_fit(setup: Setup, program: Program) -> None:
    """Raises DoesNotFitError naming every rank whose weights, states and peak activations exceed its device."""
    _FITS.of(
        (setup.expected, setup.facts.stage_memory, setup.facts.memory_bytes, setup.facts.microbatch_work, program),
        lambda: _check_fit(setup, program),
        keep=lambda _: program.num_actions <= SHARED_ACTIONS,
    )


def _check_fit(setup: Setup, program: Program) -> None:
    peaks = [memory_peaks(program, setup.expected)]
    if setup.facts.microbatch_work:  # as it is drawn, in the iteration where the rank needs most
        works = (replace(setup.expected, microbatch_work=work) for work in setup.facts.microbatch_work)
        peaks = [memory_peaks(program, costs) for costs in works]
    lines = []
    for rank, capacity in enumerate(setup.facts.memory_bytes):
        most = max(each.activation_bytes[rank] for each in peaks)
        line = _overflow(setup, rank, capacity, most, peaks[0].in_flight[rank])
        if line:
            lines.append(line)
    if lines:
        raise DoesNotFitError(
            "the plan does not fit into memory\n"
            + "\n".join(lines)
            + "\nuse recompute, a smaller microbatch_size, another partition, a schedule with fewer microbatches in "
            "flight, or more devices"
        )


def check_weights_fit(setup: Setup) -> None:
    """The same for a policy, of which only this is known before it runs: one microbatch must fit on every rank."""
    largest = max((max(work) for work in setup.facts.microbatch_work), default=1.0)
    ones = []
    for rank in range(setup.shape.num_ranks):
        activations = [setup.facts.stage_memory[stage].activation_bytes for stage in setup.shape.stages_of(rank)]
        line = _overflow(setup, rank, setup.facts.memory_bytes[rank], round(largest * max(activations)), 1)
        ones += [line] if line else []
    if ones:
        raise DoesNotFitError("the plan does not fit into memory\n" + "\n".join(ones))


def _overflow(setup: Setup, rank: int, capacity: int, activations: int, in_flight: int) -> str:
    """What a rank needs and has, or nothing if it fits."""
    memories = [setup.facts.stage_memory[stage] for stage in setup.shape.stages_of(rank)]
    parts = {
        "weights": sum(memory.weights_bytes for memory in memories),
        "gradients": sum(memory.gradients_bytes for memory in memories),
        "optimizer": sum(memory.optimizer_bytes for memory in memories),
        "workspace": rank_workspace_bytes(memories),
    }
    needed = sum(parts.values()) + activations
    if needed <= capacity:
        return ""
    stated = ", ".join(f"{name} {size / GIB:.1f}" for name, size in parts.items() if size)
    flight = f"{in_flight} microbatch{'es' if in_flight != 1 else ''} in flight {activations / GIB:.1f}"
    return (
        f"  rank {rank} ({setup.settings.devices[rank]}) needs {needed / GIB:.1f} GiB of "
        f"{format_bytes(capacity)}: {', '.join(part for part in (stated, flight) if part)}"
    )


Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRun:
    """A built run and its program (None: a policy decides), ready to be simulated many times."""

    setup: Setup
    program: Program | None

    @classmethod
    def of(cls, setup: Setup) -> "PreparedRun":
        """Arrange the schedule once."""
        return cls(setup=setup, program=arranged(setup))

    def check_fit(self) -> None:
        """Raises DoesNotFitError if memory is too small."""
        if self.program is None:
            check_weights_fit(self.setup)
        else:
            check_fit(self.setup, self.program)

    def lengths_ns(self, iterations: int, seed: int, plan: FaultPlan) -> Ints:
        """Times of consecutive iterations, from the end of one to the end of the next, the first from 0.

        Without synchronization iterations overlap, and the first is not like the others: it is left out.
        """
        extra = 0 if self.setup.spec.optimizer.synchronized else 1
        trace = self._run(self._settings(iterations + extra, seed, plan))
        return np.diff(_ends_ns(trace), prepend=0)[extra:]

    def unchecked(self, iterations: int, seed: int, plan: FaultPlan) -> Trace:
        """So many iterations from 0; whether they fit into memory is not asked."""
        return self._run(self._settings(iterations, seed, plan))

    def alone_ns(self, seed: int, plan: FaultPlan) -> int:
        """Time of one iteration that nothing comes before or after, from 0."""
        return length_ns(self.unchecked(1, seed, plan))

    def until_stop(self, seed: int, plan: FaultPlan) -> StoppedRun:
        """One iteration from time 0, unless a stop or the transport ends it."""
        settings = self._settings(1, seed, plan)
        setup = self.setup
        if self.program is not None:
            return run_program_until_stop(self.program, setup.costs, setup.network, settings)
        return run_policy_until_stop(setup.scheduler().placed(setup.expected), setup.costs, setup.network, settings)

    def _run(self, settings: RunSettings) -> Trace:
        setup = self.setup
        if self.program is not None:
            return run_program(self.program, setup.costs, setup.network, settings)
        return run_policy(setup.scheduler().placed(setup.expected), setup.costs, setup.network, settings)

    def _settings(self, iterations: int, seed: int, plan: FaultPlan) -> RunSettings:
        usual = self.setup.settings
        faults = replace(usual.faults, plan=plan, devices=self.setup.spec.ranks())
        return replace(usual, iterations=iterations, seed=seed, faults=faults)


def checked(setup: Setup) -> PreparedRun:
    """A pipeline that fits. Raises DoesNotFitError."""
    pipeline = PreparedRun.of(setup)
    pipeline.check_fit()
    return pipeline


def length_ns(trace: Trace) -> int:
    """From time 0 to the end of the last thing that was done."""
    return int(trace.end_ns[trace.stream != Stream.FAULT].max())


def _ends_ns(trace: Trace) -> Ints:
    """The end of every iteration."""
    rows = trace.where((trace.stream != Stream.FAULT) & (trace.iteration >= 0))
    ends = np.zeros(int(rows.iteration.max()) + 1, dtype=np.int64)
    np.maximum.at(ends, rows.iteration, rows.end_ns)
    return ends


def is_steady(spec: Spec) -> bool:
    """Whether all iterations without faults are alike: nothing in the spec is drawn."""
    sections = (spec.pipeline, spec.hardware, spec.optimizer)
    drawn = (each for section in sections for each in _parts(section))
    return spec.hardware.profile is None and all(
        isinstance(each, ConstantForm) for each in drawn if isinstance(each, Form | StallForm)
    )


def _parts(value: object) -> Iterator[object]:
    yield value
    if isinstance(value, Section):
        for name in type(value).model_fields:
            yield from _parts(getattr(value, name))
    elif isinstance(value, tuple):
        for each in value:
            yield from _parts(each)
