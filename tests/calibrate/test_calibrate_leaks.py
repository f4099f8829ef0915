"""Predictions cannot see traces: not by what they are handed, not by what they import, not by what is on disk."""

import ast
import shutil
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from calibrate_runs import HELD_OUT, READERS, write_launch, write_trace

import hops
from hops.build.setup import LinkBenchmark, RunInputs
from hops.calibrate.predict import VARIANTS, predict
from hops.calibrate.validate import validate
from hops.errors import UsageError
from hops.trace.trace import Trace

ROOT = Path(hops.__file__).parent
READERS_OF_TRACES = {"importers", "hops.trace.files", "hops.trace.order"}


@pytest.fixture
def run(tmp_path, truth):
    folder = write_launch(tmp_path / "run", *HELD_OUT, slower=1.1)
    write_trace(folder, truth)
    return folder


def remove(folder):
    shutil.rmtree(folder / "megatron_trace")


def scramble(folder):
    for file in (folder / "megatron_trace").iterdir():
        file.write_bytes(b"\x00nonsense" * 1000)


def slow_down(folder):
    """A trace in which everything took twice as long, and is otherwise sound."""
    for file in (folder / "megatron_trace").iterdir():
        file.write_text(file.read_text().replace('"FORWARD"', '"BACKWARD"'))


@pytest.mark.parametrize("damage", [remove, scramble, slow_down])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_without_its_trace_is_predicted_exactly_the_same(run, truth, damage, variant):
    before = predict(READERS.inputs(run), variant, truth)
    damage(run)
    assert predict(READERS.inputs(run), variant, truth) == before


@pytest.mark.parametrize("damage", [remove, scramble])
def test_scoring_does_open_the_trace(run, truth, damage):
    validate([run], READERS, truth)
    damage(run)
    with pytest.raises(UsageError, match="none of the runs can be scored"):
        validate([run], READERS, truth)


def test_what_a_prediction_is_handed_holds_no_trace_and_no_path_to_one():
    names = {field.name for kind in (RunInputs, LinkBenchmark) for field in fields(kind)}
    assert names == {"name", "spec", "benchmarks", "ranks", "sizes_bytes", "seconds"}


def test_the_name_of_a_run_does_not_matter(run, truth, tmp_path):
    inputs = READERS.inputs(run)
    renamed = RunInputs(name="exp2_28", spec=inputs.spec, benchmarks=inputs.benchmarks)
    assert predict(renamed, "link_calibrated", truth) == predict(inputs, "link_calibrated", truth)


def modules_below(module):
    """All modules of ours that a module imports, directly or not; the facade imports when it is called."""
    seen, queue = set(), [module]
    while queue:
        name = queue.pop()
        file = ROOT.parent / (name.replace(".", "/") + ".py")
        file = file if file.is_file() else ROOT.parent / name.replace(".", "/") / "__init__.py"
        if name in seen or not file.is_file():
            continue
        seen.add(name)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hops"):
                queue += [node.module] if node.module != "hops" else []
                queue += [f"{node.module}.{alias.name}" for alias in node.names]
    return seen


def test_predicting_imports_no_reader_of_traces():
    below = modules_below("hops.calibrate.predict")
    assert "hops.engine.reference" in below
    assert not {name for name in below if name.split(".")[1:2] == ["importers"]}
    assert not below & {"hops.calibrate.replay", "hops.calibrate.validate", "hops.calibrate.observations"}


def test_reading_inputs_opens_files_of_the_launch_only(run, monkeypatch):
    opened = []
    open_path = Path.open

    def noted(path, *arguments, **options):
        opened.append(path)
        return open_path(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", noted)
    READERS.inputs(run)
    inside = {path.relative_to(run).parts[0] for path in opened if path.is_relative_to(run)}
    assert inside == {"run.yaml", "link_bench"}


def test_a_trace_is_a_type_of_its_own():
    assert is_dataclass(Trace)
    assert not issubclass(Trace, RunInputs)
