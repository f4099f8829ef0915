"""The sweep of the tutorial: a thousand points, of which some are run here."""

from dataclasses import replace
from pathlib import Path

from hops.sweep.plan import load_sweep
from hops.sweep.run import run_sweep
from hops.sweep.store import Store

SWEEP = Path(__file__).parent.parent / "examples/sweeps/thousand.yaml"


def test_the_thousand_configurations_are_a_thousand_and_run():
    plan = load_sweep(SWEEP)
    assert plan.size == 1000
    few = replace(plan, sampler="lhs", samples=12, seeds=1)
    with Store(":memory:") as store:
        table = run_sweep(few, store)
    assert len(table) == 12
    assert all(row.outcome.status == "ok" for row in table.rows)
