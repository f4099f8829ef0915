"""Both engines give the same trace, whatever is simulated (many more cases: `python -m benchmarks.differential`)."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from benchmarks.differential import outcome, random_case
from engine_faults import costs, slow
from engine_programs import one_f_one_b

from hops.compiled import available
from hops.engine import compiled_run
from hops.engine.choice import is_compiled_worth_it
from hops.engine.settings import Engine, Faults, RunSettings
from hops.engine.simulate import run_policy, run_program
from hops.errors import UsageError
from hops.faults.plan import FaultPlan
from hops.hardware.network import Network
from hops.schedules.base import SCHEDULERS
from hops.timing.stage_costs import StageCosts

needs_numba = pytest.mark.skipif(not available(), reason="numba has no wheel here")


@needs_numba
@pytest.mark.parametrize("chunk", range(10))
def test_random_cases_are_equal_in_every_column(chunk):
    ended = {outcome(random_case(seed)) for seed in range(20 * chunk, 20 * chunk + 20)}
    assert {"whole", "faulty"} <= ended


@needs_numba
@given(seed=st.integers(10_000, 1 << 40))
@settings(deadline=None, max_examples=60)
def test_any_case_is_equal_in_every_column(seed):
    outcome(random_case(seed))


@needs_numba
def test_iterations_are_reported_once_and_in_order():
    work, seen = one_f_one_b(3, 4), {Engine.REFERENCE: [], Engine.COMPILED: []}
    for engine, numbers in seen.items():
        how = RunSettings(iterations=5, engine=engine, on_iteration=numbers.append)
        run_program(work, costs(3), Network.uniform(3, latency_s=1e-4), how)
    assert seen == {Engine.REFERENCE: [0, 1, 2, 3, 4], Engine.COMPILED: [0, 1, 2, 3, 4]}


@needs_numba
def test_a_run_that_goes_on_longer_than_was_thought_meets_all_its_faults(monkeypatch):
    """Only faults until 1 ms are looked at to begin with."""
    monkeypatch.setattr(compiled_run, "_first_horizon", lambda *_: 1_000_000)
    faults = FaultPlan.of(slow(0, at, at + 1, 3.0) for at in range(0, 400, 2))
    work, network, numbers = one_f_one_b(3, 40), Network.uniform(3), []
    how = RunSettings(iterations=2, faults=Faults(plan=faults), engine=Engine.REFERENCE)
    fast = replace(how, engine=Engine.COMPILED, on_iteration=numbers.append)
    assert run_program(work, costs(3), network, fast) == run_program(work, costs(3), network, how)
    assert numbers == [0, 1]


@needs_numba
def test_a_run_that_needs_more_room_finds_it(monkeypatch):
    monkeypatch.setattr(compiled_run, "TRANSFERS_PER_RANK", 0)
    monkeypatch.setattr(compiled_run.CompiledRun, "_expected_rows", lambda _: 40)
    work, network = one_f_one_b(4, 30), Network.uniform(4, latency_s=0.5)
    how = RunSettings(engine=Engine.COMPILED)
    assert run_program(work, costs(4), network, how) == run_program(
        work, costs(4), network, replace(how, engine=Engine.REFERENCE)
    )


def test_without_numba_the_compiled_engine_says_what_it_needs(monkeypatch):
    monkeypatch.setattr("hops.engine.choice.available", lambda: False)
    with pytest.raises(UsageError, match="the compiled engine needs numba, which is not installed"):
        is_compiled_worth_it(one_f_one_b(2, 2), RunSettings(engine=Engine.COMPILED))
    assert not is_compiled_worth_it(one_f_one_b(2, 2), RunSettings(iterations=1_000_000))


def test_auto_begins_with_the_reference_and_loads_the_compiled_engine_once_that_pays(monkeypatch):
    monkeypatch.setattr("hops.engine.choice._simulated", [0])
    monkeypatch.setattr("hops.engine.choice.available", lambda: True)
    work = one_f_one_b(4, 1250)  # 10,000 actions
    assert [is_compiled_worth_it(work, RunSettings()) for _ in range(6)] == [False] * 4 + [True] * 2
    assert not is_compiled_worth_it(work, RunSettings(engine=Engine.REFERENCE))


def test_policies_run_in_the_reference_only():
    scheduler = SCHEDULERS.get("1f1b")()
    expected = StageCosts.uniform(scheduler.shape(2, 2))
    with pytest.raises(UsageError, match="the compiled engine runs programs only"):
        run_policy(scheduler.placed(expected), costs(2), Network.uniform(2), RunSettings(engine=Engine.COMPILED))


@needs_numba
def test_the_command_counts_how_cases_ended():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.differential", "--cases", "3", "--json"],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert '"cases": 3' in done.stdout
    assert '"different": []' in done.stdout


@needs_numba
def test_the_first_run_of_an_installation_says_that_it_compiles(monkeypatch, capsys):
    work, network = one_f_one_b(2, 2), Network.uniform(2)
    run_program(work, costs(2), network, RunSettings(engine=Engine.COMPILED))
    capsys.readouterr()
    run_program(work, costs(2), network, RunSettings(engine=Engine.COMPILED))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("hops.compiled.Kernel.is_cached", False)
    run_program(work, costs(2), network, RunSettings(engine=Engine.COMPILED))
    said = capsys.readouterr().err
    assert said == "hops: compiling the engine, which takes some seconds, once per installation\n"
