"""A sweep runs each point once: for any number of processes, after any end, and after any change only what is new."""

import os
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
from sweep_cases import SMALL, SPEC, found

import hops
from hops.build.run import simulate, summarize
from hops.errors import UsageError
from hops.schedules.base import SCHEDULERS
from hops.sweep import outcome, work
from hops.sweep.plan import sweep_from_dict
from hops.sweep.run import run_sweep
from hops.sweep.store import Store

PLAN = sweep_from_dict(SMALL)


@pytest.fixture(scope="module")
def undisturbed():
    with Store(":memory:") as store:
        return found(run_sweep(PLAN, store))


@pytest.fixture
def counted(monkeypatch):
    """Specs that were run in this process."""
    ran = []

    def counting(spec, only):
        ran.append(spec)
        return outcome.outcome(spec, only)

    monkeypatch.setattr(work, "outcome", counting)
    return ran


def test_rows_are_what_each_spec_gives_alone(undisturbed):
    assert len(undisturbed) == PLAN.size == 18
    for row, changes in zip(undisturbed, PLAN.points(), strict=True):
        summary = summarize(simulate(hops.from_dict(SPEC).with_(changes)))
        assert row["iteration_time.mean_ms"] == summary.iteration_time.mean_ms
        assert row["bubble.pipeline.fraction"] == summary.bubble.pipeline.fraction
        assert {key: row[key] for key in changes} == changes


@pytest.mark.parametrize("jobs", [2, 3])
def test_the_table_is_the_same_for_any_number_of_processes(undisturbed, jobs):
    with Store(":memory:") as store:
        assert found(run_sweep(PLAN, store, jobs=jobs)) == undisturbed


def test_any_executor_will_do(undisturbed):
    with Store(":memory:") as store, ThreadPoolExecutor(2) as executor:
        assert found(run_sweep(PLAN, store, jobs=2, executor=executor)) == undisturbed


def test_an_interrupted_sweep_goes_on(tmp_path, undisturbed, counted):
    def interrupt(_):
        if len(counted) >= 5:
            raise KeyboardInterrupt

    with Store(tmp_path / "s.sqlite") as store, pytest.raises(KeyboardInterrupt):
        _stored_often(PLAN, store, interrupt)
    assert 5 <= len(counted) < 18
    with Store(tmp_path / "s.sqlite") as store:
        assert found(run_sweep(PLAN, store)) == undisturbed
    assert len(counted) == 18
    with Store(tmp_path / "s.sqlite") as store:
        run_sweep(PLAN, store)
    assert len(counted) == 18


def _stored_often(plan, store, on_progress):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(run_sweep.__globals__, "STORED_EVERY_S", 0.0)
        return run_sweep(plan, store, on_progress=on_progress)


def test_a_changed_sweep_runs_only_what_is_new(tmp_path, counted):
    wider = {**SMALL, "axes": {**SMALL["axes"], "pipeline.schedule": ["gpipe", "1f1b", "zb_h1", "zero_bubble"]}}
    with Store(tmp_path / "s.sqlite") as store:
        run_sweep(PLAN, store)
        assert len(counted) == 18
        assert len(run_sweep(sweep_from_dict(wider), store)) == 24
        assert len(counted) == 24
        slower = {**SPEC, "optimizer": {"host_gap": "1 ms"}}
        run_sweep(sweep_from_dict({**SMALL, "spec": slower}), store)
        assert len(counted) == 24 + 18
        output = {**SPEC, "output": {"summary": "somewhere.json"}}  # decides nothing
        assert len(run_sweep(sweep_from_dict({**SMALL, "spec": output}), store)) == 18
    assert len(counted) == 24 + 18


def test_equal_specs_are_run_once(counted):
    plan = sweep_from_dict({**SMALL, "axes": {"pipeline.schedule": ["1f1b", {"name": "1f1b"}]}, "seeds": 1})
    with Store(":memory:") as store:
        one, other = found(run_sweep(plan, store))
    assert one["iteration_time.mean_ms"] == other["iteration_time.mean_ms"]
    assert len(counted) == 1


def test_a_file_that_a_spec_names_counts_by_its_content(tmp_path):
    file, base = tmp_path / "plan.json", hops.from_dict(SPEC)
    spec = base.model_copy(update={"failure": base.failure.model_copy(update={"plan": str(file)})})
    keys = []
    for content in ("one", "other", "one"):
        file.write_text(content, encoding="utf-8")
        keys.append(outcome.key_of(spec, ("mfu",), "1"))
    assert keys[0] == keys[2] != keys[1]


def test_the_version_and_the_figures_are_part_of_the_key():
    spec = hops.from_dict(SPEC)
    keys = {outcome.key_of(spec, only, version) for only in (("mfu",), ("phases",)) for version in ("1", "2")}
    assert len(keys) == 4
    assert outcome.key_of(spec, ("mfu",), "1") == outcome.key_of(hops.loads(hops.dump(spec)), ("mfu",), "1")


def test_a_point_that_cannot_run_is_a_row_with_its_reason(counted):
    plan = sweep_from_dict(
        {
            **SMALL,
            "axes": {"pipeline.schedule": ["1f1b", "1f2b", {"name": "interleaved_1f1b", "chunks": 0}]},
            "seeds": 1,
        }
    )
    with Store(":memory:") as store:
        good, unknown, odd = found(run_sweep(plan, store))
        assert found(run_sweep(plan, store)) == [good, unknown, odd]
    assert (good["status"], unknown["status"], odd["status"]) == ("ok", "refused", "refused")
    assert unknown["reason"].startswith("SpecError: pipeline.schedule: unknown schedule '1f2b'")
    assert unknown["iteration_time.mean_ms"] is None
    assert len(counted) == 1


class Raising(SCHEDULERS.get("gpipe")):
    def build(self, profile):
        raise ZeroDivisionError("of my own")


class Deadly(SCHEDULERS.get("gpipe")):
    def build(self, profile):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_schedule_that_raises_is_a_row(monkeypatch, jobs):
    monkeypatch.setitem(SCHEDULERS._members, "raising", Raising)
    plan = sweep_from_dict({**SMALL, "axes": {"pipeline.schedule": ["1f1b", "raising"]}, "seeds": 1})
    with Store(":memory:") as store:
        good, bad = found(run_sweep(plan, store, jobs=jobs))
    assert good["status"] == "ok"
    assert (bad["status"], bad["reason"]) == ("crashed", "ZeroDivisionError: of my own")


def test_a_point_that_kills_its_worker_is_given_up_and_all_others_are_there(monkeypatch, undisturbed):
    monkeypatch.setitem(SCHEDULERS._members, "deadly", Deadly)
    schedules = ["gpipe", "deadly", "1f1b", "zb_h1"]
    plan = sweep_from_dict({**SMALL, "axes": {**SMALL["axes"], "pipeline.schedule": schedules}, "seeds": 3})
    with Store(":memory:") as store:
        rows = found(run_sweep(plan, store, jobs=2))
        assert len(rows) == 24
        dead = [row for row in rows if row["status"] == "died"]
        assert {row["pipeline.schedule"] for row in dead} == {"deadly"}
        assert len(dead) == 6
        assert dead[0]["reason"].startswith("the process that ran it was killed, 2 times")
        others = [{**row, "number": 0} for row in rows if row["status"] == "ok"]
        assert others == [{**row, "number": 0} for row in undisturbed]
        monkeypatch.setitem(SCHEDULERS._members, "deadly", SCHEDULERS.get("gpipe"))
        again = found(run_sweep(plan, store, jobs=2))  # another time it may live
    assert all(row["status"] == "ok" for row in again)


def test_a_full_disk_is_said_and_keeps_what_was_there(tmp_path, undisturbed):
    with Store(tmp_path / "s.sqlite") as store:
        pages = store._file.execute("pragma page_count").fetchone()[0]
        store._file.execute(f"pragma max_page_count = {pages + 1}")
        with pytest.raises(UsageError) as caught:
            _stored_often(sweep_from_dict({**SMALL, "seeds": 40}), store, lambda _: None)
    assert str(caught.value) == (
        f"cannot use the store {tmp_path / 's.sqlite'}: database or disk is full; all points before are kept: free "
        "some space, and run the same command again"
    )
    with Store(tmp_path / "s.sqlite") as store:
        before = len(store.done())
        assert before > 3
        assert found(run_sweep(PLAN, store)) == undisturbed


def test_a_file_that_is_no_store_is_refused(tmp_path):
    file = tmp_path / "s.sqlite"
    file.write_text("hello " * 300, encoding="utf-8")
    with pytest.raises(UsageError, match=r"cannot use the store .*: file is not a database; choose another --store"):
        Store(file)
    other = tmp_path / "t.sqlite"
    Store(other).close()
    with sqlite3.connect(other) as raw:
        raw.execute("update about set value = 'hops-sweep/9'")
    raw.close()
    with pytest.raises(UsageError, match="got a store of format hops-sweep/9, expected hops-sweep/1"):
        Store(other)


def test_progress_counts_points_of_earlier_runs(tmp_path):
    seen = []
    with Store(tmp_path / "s.sqlite") as store:
        run_sweep(PLAN, store, on_progress=seen.append)
        run_sweep(PLAN, store, on_progress=seen.append)
    first, last = seen[-2], seen[-1]
    assert (first.done, first.total, first.ran) == (18, 18, 18)
    assert (last.done, last.ran, last.left_s) == (18, 0, None)


def test_evaluate_gives_outcomes_in_order_for_any_number_of_processes():
    specs = [hops.from_dict(SPEC).with_(changes) for changes in PLAN.points()] * 5
    alone, together = ([each.figures for each in hops.evaluate(specs, jobs=jobs)] for jobs in (1, 2))
    assert alone == together
    assert len(alone) == 90
    with ThreadPoolExecutor(2) as executor:
        assert [each.figures for each in hops.evaluate(specs, executor=executor)] == alone
    with pytest.raises(UsageError, match="unknown figure"):
        hops.evaluate(specs, only=["time"])


def test_an_executor_that_breaks_down_is_said(monkeypatch):
    from hops.processes import WorkerPool

    monkeypatch.setitem(SCHEDULERS._members, "deadly", Deadly)
    plan = sweep_from_dict({**SMALL, "axes": {"pipeline.schedule": ["deadly"]}, "seeds": 1})
    with Store(":memory:") as store, WorkerPool(1) as pool, pytest.raises(UsageError, match="the executor broke down"):
        run_sweep(plan, store, executor=pool)
