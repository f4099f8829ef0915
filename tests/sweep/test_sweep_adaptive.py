"""Samplers that learn from outcomes: better than chance, the same for any jobs, and they go on after an end."""

import pytest
from sweep_cases import SPEC, found

from hops.sweep.design import sampled
from hops.sweep.plan import sweep_from_dict
from hops.sweep.run import run_sweep
from hops.sweep.store import Store

pytest.importorskip("optuna")
FIGURE = "iteration_time.mean_ms"
SEARCH = {
    "spec": {**SPEC, "pipeline": {key: value for key, value in SPEC["pipeline"].items() if key != "jitter"}},
    "axes": {
        "pipeline.schedule": ["gpipe", "1f1b", "zb_h1"],
        "hardware.interconnect.bandwidth": {"from": "0.1 Gbit/s", "to": "100 Gbit/s", "scale": "log"},
        "optimizer.host_gap": {"from": "0 ms", "to": "20 ms"},
    },
    "sampler": "tpe",
    "samples": 48,
    "goals": {FIGURE: "min"},
    "figures": [FIGURE],
}


def test_tpe_ends_nearer_to_the_best_than_chance():
    plan = sweep_from_dict(SEARCH)
    with Store(":memory:") as store:
        times = [record[FIGURE] for record in found(run_sweep(plan, store))]
    assert len(times) == 48
    chance = sweep_from_dict({**SEARCH, "sampler": "random", "goals": {}})
    assert list(chance.points()) == list(sampled("random", chance.axes, 48, 0))
    with Store(":memory:") as store:
        random = [record[FIGURE] for record in found(run_sweep(chance, store))]
    assert sum(times[32:]) / 16 < sum(random) / 48 / 2
    assert sum(times[32:]) < sum(times[:16])


@pytest.mark.parametrize(("sampler", "goals"), [("tpe", {FIGURE: "min"}), ("nsga2", {FIGURE: "min", "mfu": "max"})])
def test_the_same_points_for_any_number_of_processes_and_after_an_end(tmp_path, sampler, goals):
    plan = sweep_from_dict({**SEARCH, "sampler": sampler, "samples": 40, "seeds": 2, "goals": goals})
    assert plan.size == 80

    def stop(progress):
        if progress.ran >= 40:
            raise KeyboardInterrupt

    with Store(tmp_path / "a.sqlite") as store, pytest.raises(KeyboardInterrupt):
        run_sweep(plan, store, on_progress=stop)
    with Store(tmp_path / "a.sqlite") as store:
        resumed = found(run_sweep(plan, store))
    with Store(":memory:") as store:
        assert found(run_sweep(plan, store, jobs=2)) == resumed
    assert len(resumed) == 80
