"""Times beyond 146 years do not fit into the trace's nanoseconds: such a run is refused before it starts."""

import pytest

import hops
from hops.errors import UsageError

SPEC = {
    "pipeline": {"stage_times": {"forward": "10 ms", "backward": "20 ms", "message": "1 MB"}, "microbatches": 4},
    "hardware": {"nodes": [{"devices": ["h100"]}, {"devices": ["h100"]}], "interconnect": {"bandwidth": "1 GB/s"}},
    "simulation": {"iterations": 1},
}


@pytest.mark.parametrize(
    "change",
    [
        {"pipeline.stage_times.forward": "106752 d"},
        {"pipeline.stage_times.backward": "1e9 d"},
        {"pipeline.stage_times.message": "1e20 GB"},
        {"hardware.interconnect.latency": "200000 d"},
        {"optimizer.update_time": "200000 d"},
        {"optimizer.host_gap": "200000 d"},
        {"pipeline.stage_times.forward": "5000 d", "simulation.iterations": 3},
    ],
    ids=str,
)
def test_a_run_of_centuries_is_refused(change):
    with pytest.raises(UsageError, match=r"got a run that takes up to \S+ years, expected at most 146, .*; shorten"):
        hops.simulate(hops.from_dict(SPEC).with_(change))


def test_a_run_of_a_century_is_exact():
    """Its sum is counted in whole nanoseconds: two stages, four microbatches, F of 3,000 days."""
    run = hops.simulate(hops.from_dict(SPEC).with_({"pipeline.stage_times.forward": "3000 d"}))
    day_ns = 86_400 * 10**9
    assert run.trace.end_ns[run.trace.op == 0].max() > 5 * 3000 * day_ns
