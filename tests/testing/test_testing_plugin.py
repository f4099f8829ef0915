"""A schedule from another distribution: found by its entry point, run like ours, and held to the same suite."""

import tomllib
from pathlib import Path

import pytest

from hops.cost.table import TableCosts
from hops.engine.simulate import run_policy
from hops.errors import UsageError
from hops.hardware.network import Network
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS
from hops.testing.schedules import SchedulerConformance
from hops.timing.stage_costs import StageCosts
from hops.trace.order import program_from_trace

PLUGIN = Path(__file__).parents[2] / "examples" / "plugin"


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    """The plug-in as an installer leaves it: its package on the path, beside metadata made from its pyproject."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    metadata = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in points.items()))
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(PLUGIN / "src"))
    monkeypatch.syspath_prepend(str(tmp_path))


def simulate(scheduler, shape, **times):
    profile = StageCosts.uniform(shape, **times)
    costs = TableCosts.uniform(shape.num_stages, **times)
    return program_from_trace(run_policy(scheduler.placed(profile), costs, Network.uniform(shape.num_ranks)))


def test_its_name_is_listed_after_ours():
    assert SCHEDULERS.names()[-1] == "backward_first"


def test_it_is_loaded_by_name_with_its_parameters():
    assert SCHEDULERS.get("backward_first")(extra=2).extra == 2
    with pytest.raises(UsageError, match="extra must be at least 0, but got -1"):
        SCHEDULERS.get("backward_first")(extra=-1)


def test_a_misspelt_name_is_answered_with_the_plug_in_s():
    with pytest.raises(UsageError, match="unknown schedule 'backwards_first': did you mean 'backward_first'"):
        SCHEDULERS.get("backwards_first")


@pytest.mark.parametrize(("p", "m"), [(1, 3), (2, 5), (4, 16), (6, 4)])
def test_on_stages_of_equal_length_it_decides_exactly_1f1b(p, m):
    shape = Shape.loop(p, num_microbatches=m)
    program = SCHEDULERS.get("1f1b")().build(StageCosts.uniform(shape))
    assert simulate(SCHEDULERS.get("backward_first")(), shape) == program


class TestBackwardFirst(SchedulerConformance):
    """The plug-in passes the suite that our own schedules pass."""

    def make(self):
        return SCHEDULERS.get("backward_first")()

    def most_in_flight(self, shape, rank):
        return shape.num_ranks - rank
