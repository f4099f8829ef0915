"""What a plan holds: schedules that search keep to the memory, and the fit check counts all of it."""

import pytest
from plan_cases import opened

from hops.build.run import simulate, summarize
from hops.build.setup import build
from hops.errors import DoesNotFitError
from hops.planner.planner import plan
from hops.schedules.base import SCHEDULERS
from hops.spec.load import loads
from hops.timing.memory_peaks import memory_peaks

GIB = 1 << 30
LLAMA = """\
simulation: {iterations: 1}
pipeline: {model: llama3-8b, microbatches: 64, recompute: full}
hardware: {nodes: [{devices: [{type: h100-sxm, count: 8}]}]}
"""


@pytest.mark.parametrize("schedule", ["hops_hetero", "zb_h1"])
def test_a_schedule_that_searches_keeps_to_the_memory_where_i_keeps_more_than_f(schedule):
    """With full recomputation I makes activations again for W. On 80 GiB it finds what it finds on 75."""
    stated = ["pipeline.partition=even", f"pipeline.schedule={schedule}"]
    large = simulate(loads(LLAMA, overrides=stated))
    small = simulate(
        loads(LLAMA, overrides=[*stated, "hardware.nodes=[{devices: [{type: h100-sxm, count: 8, memory: 75 GiB}]}]"])
    )
    assert summarize(large).iteration_time.mean_ms <= summarize(small).iteration_time.mean_ms
    assert max(rank.memory.peak_bytes for rank in summarize(large).ranks) <= 80 * GIB


def test_planning_under_full_recomputation_finds_a_searched_order_that_fits():
    """It said that no placement fits, since every order that it searched held too much."""
    spec = opened(LLAMA, "pipeline.partition=even", "pipeline.schedule=hops_hetero")
    best = plan(spec, budget_s=0.3, top=1).plans[0]
    assert best.fullness is not None
    assert best.fullness <= 1
    assert summarize(simulate(best.spec)).iteration_time.mean_ms == 1e3 * best.seconds


@pytest.mark.parametrize("part", ["weights_bytes", "gradients_bytes", "optimizer_bytes", "workspace_bytes"])
def test_the_fit_check_counts_everything_that_is_held(part):
    """A device as large as all that it holds is large enough; without room for any one part it is not."""
    stated = "pipeline.schedule=1f1b"
    roomy = build(loads(LLAMA, overrides=[stated]))
    scheduler = SCHEDULERS.get("1f1b")()
    scheduler.configure(roomy.expected)
    peaks = memory_peaks(scheduler.program, roomy.expected).activation_bytes
    held = [memory.static_bytes + peak for memory, peak in zip(roomy.facts.stage_memory, peaks, strict=True)]
    fullest = held.index(max(held))
    without = held[fullest] - getattr(roomy.facts.stage_memory[fullest], part)
    assert without < held[fullest]

    def simulated(size):
        return simulate(loads(LLAMA.replace("count: 8", f"count: 8, memory: {size} B"), overrides=[stated]))

    simulated(held[fullest])
    for size in (without, held[fullest] - 1):
        with pytest.raises(DoesNotFitError, match=rf"rank {fullest} .* needs .* workspace 1\.1"):
            simulated(size)
