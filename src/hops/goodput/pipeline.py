"""One copy of the pipeline in the engine: its iterations, with and without faults."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hops.api import Setup
from hops.api.fit import check_fit, check_weights_fit
from hops.config import Spec
from hops.config.distributions import ConstantForm, Form
from hops.config.fields import Section
from hops.config.hardware import StallForm
from hops.engine import (
    Outcome,
    Settings,
    run_policy,
    run_policy_until_stop,
    run_program,
    run_program_until_stop,
)
from hops.faults import FaultPlan
from hops.schedule import Program, StaticScheduler
from hops.trace import Stream, Trace

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A built run and its program (None: a policy decides), ready to be simulated many times."""

    setup: Setup
    program: Program | None

    @classmethod
    def of(cls, setup: Setup) -> "Pipeline":
        """Arrange the schedule once."""
        scheduler = setup.scheduler()
        if not isinstance(scheduler, StaticScheduler):
            return cls(setup=setup, program=None)
        scheduler.configure(setup.profile)
        return cls(setup=setup, program=scheduler.program)

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

    def alone_ns(self, seed: int, plan: FaultPlan) -> int:
        """Time of one iteration that nothing comes before or after, from 0."""
        return length_ns(self._run(self._settings(1, seed, plan)))

    def until_stop(self, seed: int, plan: FaultPlan) -> Outcome:
        """One iteration from time 0, unless a stop or the transport ends it."""
        settings = self._settings(1, seed, plan)
        setup = self.setup
        if self.program is not None:
            return run_program_until_stop(self.program, setup.costs, setup.network, settings)
        return run_policy_until_stop(setup.scheduler(), setup.profile, setup.costs, setup.network, settings)

    def _run(self, settings: Settings) -> Trace:
        setup = self.setup
        if self.program is not None:
            return run_program(self.program, setup.costs, setup.network, settings)
        return run_policy(setup.scheduler(), setup.profile, setup.costs, setup.network, settings)

    def _settings(self, iterations: int, seed: int, plan: FaultPlan) -> Settings:
        usual = self.setup.settings
        faults = replace(usual.faults, plan=plan, devices=self.setup.spec.hardware.ranks())
        return replace(usual, iterations=iterations, seed=seed, faults=faults)


def checked(setup: Setup) -> Pipeline:
    """A pipeline that fits. Raises DoesNotFitError."""
    pipeline = Pipeline.of(setup)
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
