"""A sweep on a Ray cluster of this machine: the same table, though a worker is killed midway."""

import os
import signal
import warnings

import pytest
from sweep_cases import SMALL, found

from hops.errors import UsageError
from hops.sweep.plan import sweep_from_dict
from hops.sweep.run import run_sweep
from hops.sweep.store import Store

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own
PLAN = sweep_from_dict({**SMALL, "seeds": 40})


@pytest.fixture(scope="module")
def cluster():
    from hops.sweep.ray_backend import RayExecutor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with RayExecutor() as executor:
            yield executor


@pytest.mark.full
def test_the_table_is_the_same_though_a_worker_is_killed(cluster):
    killed = []

    def kill_one(progress):
        if not killed and progress.ran:
            killed.append(cluster.submit(os.getpid).result())
            os.kill(killed[0], signal.SIGKILL)

    with Store(":memory:") as store:
        rows = found(run_sweep(PLAN, store, jobs=cluster.workers, executor=cluster, on_progress=kill_one))
    assert killed
    with Store(":memory:") as store:
        assert rows == found(run_sweep(PLAN, store, jobs=2))


def test_a_cluster_that_is_not_there_is_said(monkeypatch):
    from hops.sweep import ray_backend

    def refuse(**_):
        raise ConnectionError("nobody listens")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(UsageError, match="--address: no Ray cluster at ray://nowhere:1: nobody listens"):
        ray_backend.RayExecutor("ray://nowhere:1")
