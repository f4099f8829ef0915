"""Microbatches of unequal work, hosts and posted messages from a spec: what they change, and what stays as it was."""

from dataclasses import replace

import numpy as np
import pytest

from hops.build.prepared import PreparedRun
from hops.build.run import simulate, summarize
from hops.build.setup import build
from hops.decode.document import parse
from hops.errors import DoesNotFitError, SpecError, UsageError
from hops.metrics.iterations import Iterations
from hops.metrics.memory import activation_bytes
from hops.planner.planner import plan
from hops.spec.load import loads
from hops.spec.open import open_spec
from hops.timing.longest_path import evaluate
from hops.trace.trace import Stream

SPEC = """
simulation: {iterations: 2, seed: 3}
pipeline:
  stage_times:
    forward: 2 ms
    input_backward: 2 ms
    weight_backward: 1 ms
    message: 1 MiB
    activation: 1 GiB
    kept_for_weight: 512 MiB
  schedule: zb_h1
  microbatches: 6
  sequence_length: 1000
hardware:
  nodes: [{name: a, devices: [l4, l4]}, {name: b, devices: [l4]}]
"""
MODEL = (
    SPEC.split("pipeline:")[0]
    + """
pipeline: {model: gpt2-medium, microbatches: 4, sequence_length: 512}
hardware: {nodes: [{devices: [h100, h100]}]}
"""
)
STATED = "pipeline.microbatch_work=[2, 1, 1, 0.5, 0.5, 1]"
DRAWN = "pipeline.microbatch_work={distribution: lognormal, mean: 1, std: 0.5}"


def spec(*overrides, text=SPEC):
    return loads(text, overrides=list(overrides))


def of_microbatches(trace, number=0):
    """F of stage 0: nanoseconds by microbatch."""
    rows = trace.where((trace.stream == Stream.COMPUTE) & (trace.op == 0) & (trace.stage == 0))
    rows = rows.where(rows.iteration == number)
    return rows.duration_ns[np.argsort(rows.microbatch)]


def test_work_of_one_changes_nothing():
    assert simulate(spec("pipeline.microbatch_work=1")).trace == simulate(spec()).trace
    assert simulate(spec("pipeline.microbatch_work=[1, 1, 1, 1, 1, 1]")).trace == simulate(spec()).trace


def test_stated_work_is_the_same_in_every_iteration():
    trace = simulate(spec(STATED)).trace
    for number in range(2):
        assert of_microbatches(trace, number).tolist() == [
            4_000_000,
            2_000_000,
            2_000_000,
            1_000_000,
            1_000_000,
            2_000_000,
        ]


def test_drawn_work_is_new_in_every_iteration_the_same_for_all_schedules_and_moves_no_other_draw():
    jitter = "pipeline.jitter={distribution: normal, mean: 1, std: 0.1}"
    trace, other = (simulate(spec(DRAWN, f"pipeline.schedule={name}")).trace for name in ("zb_h1", "1f1b"))
    assert np.array_equal(of_microbatches(trace), of_microbatches(other))
    assert not np.array_equal(of_microbatches(trace, 0), of_microbatches(trace, 1))
    both, noise = of_microbatches(simulate(spec(DRAWN, jitter)).trace), of_microbatches(simulate(spec(jitter)).trace)
    assert both == pytest.approx(of_microbatches(trace) * (noise / 2e6), abs=2)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize("changes", [[STATED], [DRAWN], ["pipeline.p2p=posted"], ["pipeline.host_per_action=70 us"]])
def test_both_engines_do_what_the_spec_says(engine, changes):
    pytest.importorskip("numba")
    plain = simulate(spec(*changes, "simulation.engine=auto")).trace
    assert simulate(spec(*changes, f"simulation.engine={engine}")).trace == plain


def test_what_a_scheduler_expects_is_what_happens():
    """Messages included: bytes take their time by the work of their microbatch. Nothing is shared here at once."""
    for changes in ([STATED], [STATED, "pipeline.host_per_action=70 us", "pipeline.p2p=posted"]):
        setup = build(spec(*changes, "simulation.iterations=1", "pipeline.schedule=1f1b"))
        prepared = PreparedRun.of(setup)
        end = simulate(setup.spec).trace.end_ns.max()
        assert evaluate(prepared.program, setup.expected).makespan_ns == pytest.approx(end, abs=200)


def test_random_work_is_expected_at_its_mean():
    mean = "pipeline.microbatch_work={distribution: lognormal, mean: 1.5, std: 0.5}"
    expected = build(spec(mean)).expected
    assert expected.microbatch_work == (1.5,) * 6
    assert expected.alike().forward_s == pytest.approx([3e-3] * 3)
    assert build(spec(DRAWN)).expected.microbatch_work == ()


def test_peaks_are_those_of_the_microbatches_held():
    """1F1B: rank 0 holds three at a time, first 2 + 1 + 1 GiB; memory over time says the same as the program."""
    run = simulate(spec(STATED, "pipeline.schedule=1f1b"))
    held = activation_bytes(Iterations.of(run.trace, run.facts))
    assert [each.peak for each in held] == [4 << 30, 3 << 30, 2 << 30]


def test_a_run_that_does_not_fit_in_one_of_its_iterations_is_refused():
    assert simulate(spec(STATED, "pipeline.stage_times.activation=5 GiB", "pipeline.schedule=1f1b"))
    with pytest.raises(
        DoesNotFitError, match=r"rank 0 \(l4 a/0\) needs 24.0 GiB of 2.*: 3 microbatches in flight 24.0"
    ):
        simulate(spec(STATED, "pipeline.stage_times.activation=6 GiB", "pipeline.schedule=1f1b"))
    alike = [spec(*more, "pipeline.stage_times.activation=7.3 GiB", "pipeline.schedule=1f1b") for more in ([], [DRAWN])]
    assert simulate(alike[0])
    most = max(sum(work[at : at + 3]) for work in build(alike[1]).facts.microbatch_work for at in range(4))
    with pytest.raises(DoesNotFitError, match=f"rank 0 .* needs {7.3 * most:.1f} GiB"):
        simulate(alike[1])


def test_tokens_and_flops_are_those_of_the_work():
    """Mean work 1.5 at the iteration time of the run: half as many tokens more, as many samples."""
    work = "pipeline.microbatch_work=[3, 1, 1, 1]"
    plain, more = (summarize(simulate(spec(*changes, text=MODEL))) for changes in ([], [work]))
    slower = more.iteration_time.mean_ms / plain.iteration_time.mean_ms
    assert more.throughput.tokens_per_s * slower == pytest.approx(1.5 * plain.throughput.tokens_per_s)
    assert more.throughput.samples_per_s * slower == pytest.approx(plain.throughput.samples_per_s)
    assert more.mfu * slower == pytest.approx(1.5 * plain.mfu)


def test_the_host_s_time_is_no_wait_for_messages():
    """One rank after the other on stage times without messages to speak of: what the host takes is not theirs."""
    quiet = ["pipeline.stage_times.message=0 B", "pipeline.schedule=1f1b"]
    bare, slow = (summarize(simulate(spec(*quiet, *more))) for more in ([], ["pipeline.host_per_action=500 us"]))
    assert slow.bubble.pipeline.fraction > bare.bubble.pipeline.fraction
    assert slow.bubble.pipeline.by_cause.messages <= bare.bubble.pipeline.by_cause.messages  # latency hides behind it


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("pipeline.microbatch_work=[1, 2]", "got 2 entries, expected 6, one per microbatch; add entries"),
        ("pipeline.microbatch_work=[1, 2, 3, 4, 5, 6, 7]", "got 7 entries, expected 6, one per microbatch; remove"),
        ("pipeline.microbatch_work=[1, 1, 1, 1, 1, 0]", r"pipeline.microbatch_work\[5\]: got 0, expected more than 0"),
        ("pipeline.microbatch_work={distribution: normal}", "pipeline.microbatch_work"),
        ("pipeline.host_per_action=5", "got 5, expected a time with its unit, such as 1.5 ms or 15 us"),
        ("pipeline.host_per_action=-1 us", "pipeline.host_per_action: got"),
        ("pipeline.p2p=rendezvous", "expected one of overlapped, posted, blocking, blocking_fused"),
    ],
)
def test_wrong_values_say_where_and_what(change, message):
    with pytest.raises(SpecError, match=message):
        spec(change)


def test_plans_refuse_what_they_do_not_reckon_with():
    text = MODEL.replace("gpt2-medium,", "gpt2-medium, microbatch_work: [2, 1, 1, 1],")
    with pytest.raises(UsageError, match=r"hops plan: got pipeline\.microbatch_work, expected none"):
        plan(open_spec(parse(text, name="spec")))


def test_a_posted_message_of_a_stated_run_is_never_earlier():
    overlapped, posted = (simulate(spec(f"pipeline.p2p={way}")).trace.end_ns.max() for way in ("overlapped", "posted"))
    assert overlapped <= posted
    assert replace(build(spec()).settings) == build(spec()).settings
