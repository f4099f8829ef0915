"""A sweep that is killed at any time and started again has every point once, as one that was left alone."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from sweep_cases import SMALL, found

from hops.sweep.plan import load_sweep
from hops.sweep.run import run_sweep, table
from hops.sweep.store import Store

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX's")


def test_killed_and_started_again_until_it_is_done(tmp_path):
    file = tmp_path / "sweep.json"
    file.write_text(json.dumps({**SMALL, "seeds": 100}), encoding="utf-8")
    rng = random.Random(1)
    kept = tmp_path / "sweep.sqlite"
    command = [sys.executable, "-m", "hops", "sweep", str(file), "--jobs", "2", "--quiet"]
    kills = 0
    for _ in range(30):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if kills < 3:
            while not kept.exists() and process.poll() is None:
                time.sleep(0.01)
            time.sleep(0.05 + (0.3 if kills == 0 else 1.5) * rng.random())  # far from done, on any machine
        if kills < 3 and process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
            continue
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
        break
    assert kills
    plan = load_sweep(file)
    with Store(kept) as store, Store(":memory:") as other:
        rows = found(table(plan, store))
        assert rows == found(run_sweep(plan, other))
    assert [row["number"] for row in rows] == list(range(plan.size)) == list(range(600))
