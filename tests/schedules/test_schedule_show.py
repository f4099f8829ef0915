"""Programs are shown as grids: in order, and over time."""

from dataclasses import replace

import pytest

from hops.report.schedule import grid
from hops.schedules.base import SCHEDULERS
from hops.timing.longest_path import evaluate
from hops.timing.stage_costs import StageCosts


def build(name, p, m, **times):
    scheduler = SCHEDULERS.get(name)()
    profile = StageCosts.uniform(scheduler.shape(p, m), **times)
    return scheduler.build(profile), profile


def test_order():
    program, _ = build("dualpipe_v", 2, 4)
    assert [line.rstrip() for line in grid(program, width=80).splitlines()] == [
        "rank 0 |   0F0     0F1     0F2     3F0     3I0     3W0     3F1 ... 9 more",
        "rank 1 |   1F0     2F0     1F1     2F1     1F2     2B0   2F2+1B0 ... 8 more",
    ]


def test_order_in_full():
    program, _ = build("1f1b", 2, 3)
    assert grid(program) == "rank 0 | 0F0 0F1 0B0 0F2 0B1 0B2\nrank 1 | 1F0 1B0 1F1 1B1 1F2 1B2"


def test_time_with_names_where_they_fit():
    program, profile = build("1f1b", 2, 3)
    assert [line.rstrip() for line in grid(program, evaluate(program, profile), width=57).splitlines()] == [
        "12000.000 ms in all, 250.000 ms per column",
        "rank 0 | F0- F1- ........B0----- F2- B1----- ....B2-----",
        "rank 1 | ....F0- B0----- F1- B1----- F2- B2----- ........",
    ]


def test_time_with_letters_where_names_do_not_fit_and_lower_case_on_second_chunks():
    program, profile = build("zb_v", 2, 3)
    assert grid(program, evaluate(program, profile), width=28).splitlines() == [
        "19000.000 ms in all, 1000.000 ms per column",
        "rank 0 | FFFfiwfiwIWfiwIWIW.",
        "rank 1 | .FfFfiwFIWfiwIiIWwW",
    ]


@pytest.mark.parametrize(("p", "m"), [(4, 8), (64, 128)])
def test_rows_fit_the_width(p, m):
    program, profile = build("zb_h1", p, m, hop_s=0.1)
    for text in (grid(program, width=120), grid(program, evaluate(program, profile), width=120)):
        assert max(map(len, text.splitlines())) <= 120
        assert sum(line.startswith("rank") for line in text.splitlines()) == p


def test_letters_cover_what_each_rank_is_busy():
    """A column of a time grid is idle exactly where the rank is."""
    program, profile = build("zb_h1", 4, 16)
    evaluation = evaluate(program, profile)
    rows = grid(program, evaluation, width=51 + len("rank 0 | ")).splitlines()[1:]
    assert [len(row.split("| ")[1].replace(".", "")) for row in rows] == [48] * 4


def test_stages_that_take_no_time_are_shown_in_order_of_start():
    program, profile = build("1f1b", 2, 2)
    nothing = replace(profile, fused_backward_s=(0.0, 0.0))
    assert "F" in grid(program, evaluate(program, nothing), width=40)
