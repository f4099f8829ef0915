"""The screens of `hops trace` say what an audit and a difference found, fit their width, and leave nothing out."""

import io

import numpy as np
import pytest
from rich.console import Console

from hops.build.run import simulate
from hops.diagnose.detect import detect
from hops.metrics.audit import audit
from hops.metrics.difference import break_down, difference
from hops.metrics.iterations import Iterations
from hops.metrics.summarize import summarize
from hops.metrics.summary import RunFacts
from hops.report.audit import Audited, findings, render_audit
from hops.report.comparison import render_beside, render_difference
from hops.spec.load import loads
from hops.trace.trace import COLUMNS, Trace

SPEC = """
simulation: {{iterations: {iterations}}}
pipeline:
  stage_times: {{forward: {forward}, input_backward: 2 ms, weight_backward: 2 ms, message: 1 MiB}}
  microbatches: {microbatches}
  schedule: {schedule}
hardware:
  nodes: [{{count: {ranks}, devices: [h100]}}]
optimizer: {{update_time: 3 ms, host_gap: 1 ms}}
"""


def trace_of(schedule="1f1b", ranks=4, microbatches=8, iterations=4, forward="2 ms"):
    options = {"ranks": ranks, "microbatches": microbatches, "iterations": iterations, "forward": forward}
    return simulate(loads(SPEC.format(schedule=schedule, **options))).trace


def audited(trace, label="1f1b", dropped=None):
    return Audited(
        name="run",
        label=label,
        summary=summarize(trace, RunFacts()),
        audit=audit(Iterations.of(trace, RunFacts())),
        detected=detect(trace),
        dropped=dropped or {},
    )


def printed(renderable, width=80):
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(renderable)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def with_late(trace, iteration, ms):
    """Everything from the optimizer step of an iteration on `ms` later."""
    late = (trace.iteration > iteration) | ((trace.iteration == iteration) & (trace.op > 3))
    columns = {name: getattr(trace, name) for name in COLUMNS}
    for name in ("start_ns", "end_ns"):
        columns[name] = columns[name] + np.where(late, ms * 1_000_000, 0)
    return Trace.from_columns(columns, trace.meta)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("schedule", ["1f1b", "zb_v", "{name: interleaved_1f1b, chunks: 2}"])
@pytest.mark.parametrize("ranks", [2, 8])
def test_an_audit_fits_its_width_and_cuts_no_number(width, schedule, ranks):
    text = printed(render_audit(audited(trace_of(schedule, ranks, 16))), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_every_stage_and_every_link_has_its_line():
    text = printed(render_audit(audited(trace_of("zb_v", 4, 8))))
    stages = [line.split()[0] for line in text.splitlines() if "±" in line and not line.startswith(("rank", " "))]
    assert set(map(str, range(8))) <= set(stages)
    for low in range(3):
        line = next(line for line in text.splitlines() if line.startswith(f"rank {low} - {low + 1}"))
        assert "F 0." in line


def test_messages_of_both_chunks_of_a_v_have_lines_of_their_own():
    """Down and up again, activations and gradients run both ways on one link."""
    gaps = audited(trace_of("zb_v", 4, 8)).audit.gaps
    links = {(gap.source, gap.target, gap.op) for gap in gaps if gap.op}
    text = printed(render_audit(audited(trace_of("zb_v", 4, 8))))
    shown = [word for line in text.splitlines() if "±" in line for word in line.split() if word in ("F", "I")]
    assert len(shown) == len(links)


def test_a_wrong_label_a_stall_and_dropped_events_are_said():
    trace = with_late(trace_of(iterations=9), 4, 70)
    found = findings(audited(trace, "gpipe", {"duplicate event": 3}))
    assert found[0] == "labelled gpipe, but every rank ran 1f1b: the label is wrong"
    assert found[1] == "dropped 3 events: duplicate event"
    assert found[2].startswith("1 of 9 iterations stalled, which costs ")
    text = printed(render_audit(audited(trace, "gpipe")))
    assert "stalls      iteration 4 (+70 ms); in: pipeline's end to optimizer" in text
    assert "order       1f1b in all 9 iterations; labelled gpipe" in text


def test_a_sound_run_has_no_findings():
    assert findings(audited(trace_of())) == ()


def test_the_lines_of_a_difference_sum_to_its_last_line():
    sides = [break_down(audited(trace_of(forward=forward)).audit) for forward in ("2 ms", "2.5 ms")]
    text = printed(render_difference(difference(*sides), "one", "two"))
    for title in ("by cause", "by rank"):
        lines = [line for line in text[text.index(title) :].splitlines()[2:] if line]
        last = next(place for place, line in enumerate(lines) if line.startswith("iteration"))
        changes = [float(line.split()[-1]) for line in lines[: last + 1]]
        assert changes[-1] > 5
        assert sum(changes[:-1]) == pytest.approx(changes[-1], abs=0.05)
    assert max(map(len, text.splitlines())) <= 80


def test_simulated_beside_measured_says_how_far_it_is_off():
    one, two = (audited(trace_of(forward=forward)).audit for forward in ("2 ms", "4 ms"))
    text = printed(render_beside(one, two))
    iteration = next(line for line in text.splitlines() if line.startswith("iteration"))
    off = two.wall.median_ms / one.wall.median_ms - 1
    assert f"{100 * off:+.1f} %" in iteration
    assert "optimizer, first start to last end" in text
