"""Replay: the run's own stage times, from its trace, through the engine. A diagnostic of the engine, no prediction.

Messages and order are the profile's and the schedule's; F, B, optimizer step, gap and reduction are the means that the
trace itself has. What then differs is what the engine does with them.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from hops.build.run import simulate_setup
from hops.build.setup import RunInputs, build
from hops.calibrate.observations import Timings
from hops.calibrate.predict import with_profile
from hops.calibrate.score import RunFigures, simulated_outcome
from hops.cost.base import StepCosts
from hops.cost.table import TableCosts
from hops.trace.trace import Trace

DESCRIPTION = (
    "diagnostic, no prediction: F, B, step, gap and reduction from the scored trace itself, engine and messages ours"
)


def replay(inputs: RunInputs, trace: Trace, profile: Path, *, warmup: int = 0) -> RunFigures:
    """What the engine makes of the run's own times. Raises UsageError for a trace that is no plain 1F1B."""
    setup = build(with_profile(inputs.spec, profile))
    timings = Timings.of(trace, name=inputs.name, warmup=warmup)
    forward = (timings.forward[..., 1] - timings.forward[..., 0]).mean(axis=0)
    backward = (timings.backward[..., 1] - timings.backward[..., 0]).mean(axis=0)
    times = np.stack([forward, backward, backward / 2, backward / 2], axis=1)
    optimizer = (timings.optimizer[..., 1] - timings.optimizer[..., 0]).mean(axis=0)
    gap = float((timings.forward[1:, 0, 0, 0] - timings.optimizer[:-1, :, 1].max(axis=1)).mean())
    ends = timings.backward[:, [0, -1], -1, 1].max(axis=1)
    reductions = timings.optimizer[:, :, 0].min(axis=1) - ends
    outcomes = []
    for reduction in (reductions.mean(), np.median(reductions)):
        ending = StepCosts(tied_reduce_s=float(reduction), optimizer_s=tuple(optimizer.tolist()), host_s=gap)
        costs = TableCosts.timed(setup.costs, times, ending)
        settings = replace(setup.settings, iterations=2)
        outcomes.append(simulated_outcome(simulate_setup(replace(setup, settings=settings, costs=costs)).trace))
    mean, median = outcomes
    return replace(mean, p50_iteration_s=median.mean_iteration_s)
