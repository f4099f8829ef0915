"""The log: every entry with its verdict and figures, in order; the project's own page is what its journal says."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.research.evaluation import main
from hops.research.folder import DEFAULT_EDITABLE
from hops.research.journal import (
    Accepted,
    Baseline,
    Experiment,
    Journal,
    Rejected,
    Tested,
    TestOpened,
    render_lines,
    render_log,
)

ROOT = Path(__file__).parent.parent.parent
BEFORE = {"throughput_mape_pct": 4.0, "utilization_spearman": None}
AFTER = {"throughput_mape_pct": 3.456, "utilization_spearman": None}
ENTRIES = (
    Baseline(date="2026-01-01", what="roofline", measured="on train", commit="a" * 40, figures=BEFORE),
    Experiment(
        date="2026-01-02", hypothesis="a | b", verdict="noted", why="so it is", measured="by hand", figures={}
    ),
    Experiment(date="2026-01-02", hypothesis="c", verdict="noted", why="", measured="by hand", figures={}),
    Accepted(date="2026-01-03", attempt=1, hypothesis="floors", commit="b" * 40, before=BEFORE, after=AFTER),
    Rejected(
        date="2026-01-04",
        attempt=2,
        hypothesis="magic",
        snapshot="c" * 40,
        reasons=("one\ntwo", "three"),
        before=AFTER,
        after={},
    ),
    TestOpened(date="2026-01-05", count=1, commit="d" * 40),
    Tested(date="2026-01-05", count=1, commit="d" * 40, runs=7, figures={"throughput_mape_pct": 5.0}),
)  # fmt: skip
PAGE = """\
How the figures were measured:

- 1: on train
- 2 to 3: by hand

## Figures

| # | what | verdict | throughput MAPE % | utilisation Spearman |
|--:|---|---|--:|--:|
| 1 | roofline | baseline | 4.00 | - |
| 2 | a \\| b | noted | - | - |
| 3 | c | noted | - | - |
| 4 | floors | accepted | 3.46 | - |
| 5 | magic | rejected | - | - |
| 6 | test split opened, no. 1 | test | - | - |
| 7 | test split, no. 1: 7 runs | test | 5.00 | - |

## Entries

1. **roofline** (2026-01-01; baseline)
   Commit `aaaaaaaaaaaa`.

2. **a | b** (2026-01-02; noted)
   so it is

3. **c** (2026-01-02; noted)

4. **floors** (2026-01-03; accepted)
   Attempt 1, commit `bbbbbbbbbbbb`. throughput MAPE % 4.00 to 3.46, utilisation Spearman - to -.

5. **magic** (2026-01-04; rejected)
   Attempt 2, kept as `cccccccccccc`.
   - one two
   - three

6. **test split opened, no. 1** (2026-01-05; test)
   Commit `dddddddddddd`.

7. **test split, no. 1: 7 runs** (2026-01-05; test)
   Commit `dddddddddddd`.
"""


def test_a_log_as_a_page():
    assert render_log(ENTRIES).partition("\n\n")[2].partition("\n\n")[2] == PAGE


def test_a_log_in_lines():
    assert render_lines(ENTRIES).splitlines()[3:5] == [
        "  4  2026-01-03  accepted  floors  [throughput MAPE % 3.46, utilisation Spearman -]",
        "  5  2026-01-04  rejected  magic",
    ]
    assert render_lines(()) == "nothing yet\n"
    assert render_log(()).endswith("\nNothing yet.\n")


TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)
FIGURES = st.dictionaries(st.sampled_from(["throughput_mape_pct", "bubble_mae_pp"]), st.none() | st.floats(0, 1e6))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.builds(Rejected, date=TEXTS, attempt=st.integers(1, 99), hypothesis=TEXTS, snapshot=TEXTS,
                          reasons=st.lists(TEXTS).map(tuple), before=FIGURES, after=FIGURES), max_size=4))  # fmt: skip
def test_every_entry_comes_back_from_the_disk_as_it_was(tmp_path_factory, entries):
    journal = Journal(tmp_path_factory.mktemp("journal") / "journal.jsonl")
    for entry in entries:
        journal.append(entry)
    assert list(journal.entries()) == entries


def test_the_projects_log_is_what_its_journal_says():
    """hops research log --journal docs/research-journal.jsonl --markdown -o docs/research-log.md."""
    entries = Journal(ROOT / "docs/research-journal.jsonl").entries()
    assert (ROOT / "docs/research-log.md").read_text(encoding="utf-8") == render_log(entries)
    assert isinstance(entries[0], Baseline)
    assert {each.verdict for each in entries[1:] if isinstance(each, Experiment)} == {"accepted", "rejected", "noted"}


def test_what_may_be_changed_by_default_is_there():
    missing = [path for path in DEFAULT_EDITABLE if not (ROOT / path).exists()]
    assert not missing


@pytest.mark.parametrize("same", [True, False])
def test_the_default_evaluation_cross_validates_what_it_is_also_to_be_fitted_on(tmp_path, same):
    """One fit never predicts a run that it has seen."""
    for name in ("runs/a", "runs/b", "train/c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "run.yaml").touch()
    asked = []

    def evaluate(runs, train):
        asked.append(([each.name for each in runs], train and [each.name for each in train]))
        return {"n": len(runs)}

    main(tmp_path / "runs", tmp_path / ("train/../runs" if same else "train"), tmp_path / "r.json", evaluate)
    assert asked == [(["a", "b"], None if same else ["c"])]
    assert (tmp_path / "r.json").read_text() == '{\n "n": 2\n}\n'
