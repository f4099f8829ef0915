"""What `hops list schedules` says of each schedule, against published values and against the schedules themselves."""

from pathlib import Path

import pytest

from hops.errors import UsageError
from hops.report.schedules import schedule_rows
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.schedules.figures import figures

# At 4 ranks and 8 microbatches: bubble in units of one F, most activations per rank in microbatches, and latencies on
# the critical path, as the facts' README has them; 1F1B by its closed form, 2 (p-1) m/p + 2 (p-2) latencies.
PUBLISHED = {
    "1f1b": (9, 4, 16),
    "zb_h1": (3, 4, 12),
    "interleaved_1f1b": (4.5, 5.5, 14),
    "v_min": (5.5, 2, 40),
    "v_1f1b": (7.5, 3, 32),
    "interleaved_zb": (1.5, 4, 16),
    "looped_bfs": (4.5, 8, 6),
    "grouped_interleaved": (3, 4, 10),
    "dualpipe": (2, 5, 9),
    "dualpipe_v": (3, 4.5, 16),
    "combined_1f1b": (4.5, 6, 24),
    "chimera": (6, 4, 11),
    "seq1f1b": (4.5, 2.5, 26),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_figures_are_the_published_ones(name):
    bubble, held, messages = PUBLISHED[name]
    found = figures(name, 4, 8)
    assert found.bubble_fraction == pytest.approx(bubble / (24 + bubble))
    assert (found.peak_microbatches, found.messages) == (held, messages)
    assert found.copies == (2 if name in {"dualpipe", "chimera"} else 1)


def refuses_some_size(name):
    def refuses(p, m):
        try:
            SCHEDULERS.get(name)().shape(p, m)
        except UsageError:
            return True
        return False

    return any(refuses(p, m) for p in range(1, 9) for m in range(1, 20))


@pytest.mark.parametrize("name", [name for name in SCHEDULERS.names() if name != "program"])
def test_a_schedule_that_refuses_sizes_says_what_it_needs(name):
    stated = bool(SCHEDULERS.get(name).needs)
    assert stated == (refuses_some_size(name) or name == "grouped_interleaved")  # its stated groups may be too large


def test_where_there_are_no_figures_the_list_says_why():
    why = {row["name"]: row["no_figures"] for row in schedule_rows(3, 7)}
    assert why["dualpipe"] == "ranks must be an even number, half for each direction, but got 3"
    assert why["hops_hetero"] == "they depend on what it chooses"
    assert why["program"].startswith("it needs a file")
    assert why["1f1b"] is None


def test_a_fault_of_a_plug_in_is_its_row_s_and_no_other_s(monkeypatch):
    class Faulty(StaticScheduler):
        """Divides by zero."""

        def build(self, profile):
            return 1 // 0

    monkeypatch.setitem(SCHEDULERS._members, "faulty", Faulty)
    rows = {row["name"]: row for row in schedule_rows(2, 2)}
    assert rows["faulty"]["no_figures"] == "ZeroDivisionError: integer division or modulo by zero"
    assert rows["1f1b"]["no_figures"] is None


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "schedules.md"


def test_the_reference_page_has_every_schedule_and_its_latencies():
    rows = [line.split("|") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert sorted(row[1].strip(" `") for row in rows) == sorted(SCHEDULERS.names())
    stated = {row[1].strip(" `"): row[4].strip() for row in rows if len(row) == 7}
    for name, latencies in stated.items():
        assert str(figures(name, 4, 8).messages) in latencies.split(" to "), name
