"""Notebooks run from top to bottom, show tables and pictures, and what they show comes as data frames as well."""

import subprocess
import sys
from pathlib import Path

import pytest

import hops
from hops.errors import UsageError
from hops.trace.trace import COLUMNS, Stream
from hops.viz.headline import key_table
from hops.viz.notebook import as_html

FOLDER = Path(__file__).parent.parent.parent / "examples/notebooks"
SPEC = {
    "pipeline": {"model": "gpt2", "microbatches": 4, "schedule": ["1f1b", "gpipe"]},
    "hardware": {"nodes": [{"devices": ["l4", "l4"]}]},
}


@pytest.fixture(scope="module")
def run():
    spec = hops.from_dict({**SPEC, "pipeline": {**SPEC["pipeline"], "schedule": "1f1b"}})
    return hops.simulate(spec)


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.ipynb")))
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own
def test_a_notebook_runs_and_shows_html(name, tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed (extra `test`)")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = nbformat.read(FOLDER / name, as_version=4)
    client.NotebookClient(book, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [
        output["data"]["text/html"]
        for cell in book.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "text/html" in output.get("data", {})
    ]
    assert any("<svg" in each for each in shown)
    assert any("<table" in each for each in shown)


def test_a_summary_shows_its_figures_and_every_rank(run):
    summary = hops.summarize(run)
    text = as_html(summary)
    assert text.count("<tr>") == 2 + len(summary.ranks) + len(key_table(summary))
    assert "l4 node0/1" in text
    assert repr(summary) == (
        f"Summary(1f1b, 2 ranks, {summary.iteration_time.mean_ms:,.5g} ms an iteration, "
        f"pipeline bubble {100 * summary.bubble.pipeline.fraction:.1f} %)"
    )


def test_spec_trace_run_and_plans_have_a_look_of_their_own(run):
    assert "pipeline:" in as_html(run.setup.spec)
    assert as_html(run.trace).count("<tr>") == 1 + 8
    assert f"8 of {len(run.trace):,} rows" in as_html(run.trace)
    assert "<svg" in as_html(run)
    report = hops.plan(SPEC, budget="0.1 s", top=2)
    assert as_html(report).count("<tr>") == 1 + len(report.plans) + len(report.others)


def test_data_frames_hold_the_columns_with_names(run):
    frame = run.trace.to_pandas()
    assert list(frame.columns) == list(COLUMNS)
    assert frame.start_ns.tolist() == run.trace.start_ns.tolist()
    assert frame.stream.tolist() == [Stream(each).name for each in run.trace.stream]
    table = run.trace.to_arrow()
    assert table.column("end_ns").to_pylist() == run.trace.end_ns.tolist()
    ranks = hops.summarize(run).to_pandas()
    assert ranks["idle_messages_ms"].tolist() == [each.idle_ms.messages for each in hops.summarize(run).ranks]
    assert ranks["peak_bytes"].tolist() == [each.memory.peak_bytes for each in hops.summarize(run).ranks]


def test_without_the_library_it_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="this needs pandas, which is not installed: run `pip install pandas`"):
        run.trace.to_pandas()


def test_importing_hops_loads_no_ipython():
    code = "import sys, hops; assert 'IPython' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
