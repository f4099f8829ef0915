"""What a trace ran is recognised from its order alone, whatever its label says."""

import numpy as np
import pytest

from hops.build.run import simulate
from hops.diagnose.detect import detect
from hops.errors import TraceError
from hops.schedules.base import SCHEDULERS
from hops.schedules.builtins import CHOOSERS, KEPT_TO_COMPARE
from hops.spec.load import loads
from hops.trace.order import program_from_trace
from hops.trace.trace import Trace

SPEC = """
simulation: {{iterations: 3}}
pipeline:
  stage_times: {{forward: 2 ms, input_backward: 2 ms, weight_backward: 2 ms, message: 1 MiB}}
  microbatches: 8
  schedule: {schedule}
hardware:
  nodes: [{{count: 4, devices: [h100]}}]
"""


def trace_of(schedule):
    return simulate(loads(SPEC.format(schedule=schedule))).trace


@pytest.mark.parametrize(
    "name", [name for name in SCHEDULERS.names() if name not in ("program", *CHOOSERS, *KEPT_TO_COMPARE)]
)
def test_every_schedule_is_recognised_by_its_own_name(name):
    found = detect(trace_of(name))
    assert name in found.names
    assert found.iterations == 3
    assert found.others == ()
    assert not found.contradicts(name)


@pytest.mark.parametrize("chunks", [2, 3])
def test_interleaving_is_recognised_with_its_chunks(chunks):
    assert "interleaved_1f1b" in detect(trace_of(f"{{name: interleaved_1f1b, chunks: {chunks}}}")).names


def test_a_wrong_label_is_a_contradiction_and_none_is_not():
    found = detect(trace_of("1f1b"))
    assert found.contradicts("gpipe")
    assert found.contradicts("zero_bubble")
    assert not found.contradicts("")
    assert not found.contradicts("our own name for it")


def test_an_unknown_order_has_no_name_and_contradicts_nothing():
    trace = trace_of("1f1b")
    mirrored = np.where(trace.microbatch >= 0, 7 - trace.microbatch, -1)
    found = detect(with_columns(trace, microbatch=mirrored))
    assert found.names == ()
    assert not found.contradicts("gpipe")


def test_iterations_in_another_order_are_named():
    trace = trace_of("1f1b")
    swapped = trace.microbatch.copy()
    odd = (trace.iteration == 1) & (trace.rank == 0)
    swapped[odd] = np.where(trace.microbatch[odd] < 2, 1 - trace.microbatch[odd], trace.microbatch[odd])
    found = detect(with_columns(trace, microbatch=swapped))
    assert (found.iterations, found.others) == (2, (1,))
    assert found.program == program_from_trace(trace, iteration=0)


def test_a_trace_without_actions_is_refused():
    trace = trace_of("1f1b")
    with pytest.raises(TraceError, match="no compute actions"):
        detect(trace.where(trace.stage < -1))


def with_columns(trace, **changed):
    names = ("iteration", "rank", "stream", "stage", "op", "microbatch", "peer", "start_ns", "end_ns", "bytes")
    return Trace.from_columns({name: getattr(trace, name) for name in names} | changed, trace.meta)


def test_schedules_that_search_are_never_built(monkeypatch):
    """An audit that ran a search would take seconds, to give a name that says nothing of the order."""
    built = []
    trace = trace_of("1f1b")
    for name in SCHEDULERS.names():
        kind, configure = SCHEDULERS.get(name), SCHEDULERS.get(name).configure
        monkeypatch.setattr(
            kind, "configure", lambda self, profile, name=name, run=configure: (built.append(name), run(self, profile))
        )
    detect(trace)
    assert "1f1b" in built
    assert not set(built) & {*CHOOSERS, *KEPT_TO_COMPARE}
