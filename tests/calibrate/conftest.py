"""Simulated runs with known truth, made once for all tests of this folder."""

import pytest
from calibrate_runs import HELD_OUT, LAUNCHES, READERS, write_launch, write_trace, write_truth

from hops.calibrate.calibrate import calibrate
from hops.calibrate.observations import observe
from hops.cost.profile import write_profile


@pytest.fixture(scope="session")
def truth(tmp_path_factory):
    """The file of the profile that the runs were simulated with."""
    return write_truth(tmp_path_factory.mktemp("truth") / "truth.yaml")


@pytest.fixture(scope="session")
def folders(tmp_path_factory, truth):
    """Run folders to learn from."""
    root = tmp_path_factory.mktemp("runs")
    made = []
    for seed, (name, launch) in enumerate(LAUNCHES.items()):
        made.append(write_launch(root / name, *launch))
        write_trace(made[-1], truth, seed=seed)
    return made


@pytest.fixture(scope="session")
def held_out(tmp_path_factory, truth):
    """A run folder that nothing is learned from."""
    folder = write_launch(tmp_path_factory.mktemp("held") / "held_out", *HELD_OUT)
    write_trace(folder, truth, seed=99)
    return folder


@pytest.fixture(scope="session")
def runs(folders):
    return [observe(READERS.inputs(folder), READERS.trace(folder)) for folder in folders]


@pytest.fixture(scope="session")
def fitted(runs):
    return calibrate(runs)


@pytest.fixture(scope="session")
def fitted_file(tmp_path_factory, fitted):
    path = tmp_path_factory.mktemp("fitted") / "fitted.yaml"
    write_profile(fitted, path)
    return path
