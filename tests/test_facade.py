"""The front door: every verb is there, documented by an example that runs, and nothing heavy loads unasked."""

import doctest
import inspect
import re
import subprocess
import sys
from dataclasses import is_dataclass
from pathlib import Path

import pytest

import hops

EXAMPLE = {
    "pipeline": {
        "stage_times": {"forward": "10 ms", "backward": "20 ms", "message": "8 MiB"},
        "microbatches": 8,
    },
    "hardware": {"nodes": [{"devices": ["h100", "h100", "h100", "h100"]}]},
}
VERBS = [name for name in hops.__all__ if inspect.isfunction(getattr(hops, name))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the examples find what they read."""
    from hops.trace.files import write_events

    monkeypatch.chdir(tmp_path)
    spec = hops.from_dict(EXAMPLE)
    (tmp_path / "spec.yaml").write_text(hops.dump(spec), encoding="utf-8")
    run = hops.simulate(spec)
    write_events(run.trace, tmp_path / "run.csv")
    return {"hops": hops, "spec": spec, "run": run, "summary": hops.summarize(run)}


@pytest.mark.parametrize("name", ["", *VERBS])
def test_the_example_of_every_verb_runs(folder, name):
    thing = getattr(hops, name) if name else hops
    (test,) = doctest.DocTestFinder(recurse=False).find(thing, name or "hops", module=hops, extraglobs=folder)
    assert test.examples, f"{name} needs an example"
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert result.failed == 0


def test_all_names_are_there_and_listed():
    assert dir(hops) == sorted(hops.__all__)
    assert hops.__all__ == sorted(hops.__all__)
    for name in hops.__all__:
        assert getattr(hops, name) is not None
    with pytest.raises(AttributeError, match="module 'hops' has no attribute 'nonsense'"):
        _ = hops.nonsense


def test_every_type_of_a_verbs_signature_is_exported():
    """Who writes `run: hops.SimulatedRun` needs no other import."""
    plain = {"File", "Any", "None", "False", "True", "Mapping", "Sequence", "Callable", "Iterable", "Executor"}
    for name in VERBS:
        words = set(re.findall(r"[A-Z]\w+", str(inspect.signature(getattr(hops, name)))))
        assert words <= set(hops._TYPES) | plain, name
    for name in hops._TYPES:
        assert getattr(hops, name).__name__ == name


def test_a_verb_stays_a_verb_beside_the_room_of_its_name():
    code = (
        "import hops, hops.build.run, hops.search.search, hops.calibrate.calibrate; "
        "from hops.search.search import Result; from hops.search import iterations_for; from hops import search; "
        "print(hops.search.__name__, hops.calibrate.__module__, search is hops.search)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["search", "hops", "True"]


HEAVY = ("numpy", "pydantic", "matplotlib", "scipy", "numba", "ruamel", "rich.table")


@pytest.mark.parametrize("statement", ["import hops; dir(hops)", "import hops.cli.main"])
def test_nothing_heavy_is_loaded_before_it_is_used(statement):
    code = f"import sys; {statement}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_results_show_themselves_in_a_line(folder):
    spec, run = folder["spec"], folder["run"]
    for thing in (spec, run, run.setup, run.trace, hops.read_trace("run.csv").trace):
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 120
        assert repr(thing).startswith(f"{type(thing).__name__}(")
    assert repr(run) == "SimulatedRun(1f1b, 4 ranks, 3 iterations, 336 rows)"
    assert is_dataclass(run)


def test_compare_says_why_a_schedule_cannot_run():
    found = hops.compare(hops.from_dict(EXAMPLE).with_({"pipeline.microbatches": 2}), ["1f1b", "dualpipe_v"])
    assert list(found.runs) == ["1f1b"]
    assert found.refused["dualpipe_v"].startswith("dualpipe_v: ")
    with pytest.raises(hops.HopsError, match="unknown schedule '1f1c'"):
        hops.compare(hops.from_dict(EXAMPLE), ["1f1b", "1f1c"])


def test_an_open_spec_from_data_is_judged_by_paths():
    data = {"pipeline": {"model": "gpt2", "microbatches": [4, 0]}, "hardware": {"nodes": [{"devices": ["l4"]}]}}
    with pytest.raises(hops.HopsError, match=r"^pipeline\.microbatches: got 0, expected at least 1"):
        hops.plan(data)


def test_the_reference_page_is_what_the_docstrings_say():
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, root / "tools/api_page.py"], capture_output=True, text=True, check=True)
    assert (root / "docs/reference/api.md").read_text(encoding="utf-8") == done.stdout, (
        "run: python tools/api_page.py > docs/reference/api.md"
    )
