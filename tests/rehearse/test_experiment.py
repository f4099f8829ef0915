"""The experiment's cases, and how it counts pairs; what it runs is tested as rehearsals are."""

from io import StringIO

import pytest
from rich.console import Console

import hops
from hops.diagnose.versus import hetero_times
from hops.rehearse.experiment import CaseRow, layout_cases, ranked, schedule_cases, slow_stage_cases
from hops.report.rehearsal import render_experiment


def row(schedule, simulated, measured, *, late=0, case="a"):
    return CaseRow(
        case=case, schedule=schedule, simulated_ms=simulated, measured_ms=measured, late=late, order_equal=True
    )


def test_pairs_of_clean_rows_of_one_case_that_are_apart_count():
    rows = [
        row("x", 100, 101), row("y", 110, 111), row("z", 102, 90), row("late", 200, 100, late=1),
        row("x", 300, 300, case="b"),
    ]  # fmt: skip
    found = ranked(rows)
    assert (found.agree, found.differ) == (2, ())  # x-y and y-z; x-z is too close
    assert ranked([*rows, row("w", 90, 120)]).differ == ("x and w on a", "y and w on a", "z and w on a")


def test_cases_are_what_their_names_say():
    cases = {case.name: case.specs for case in slow_stage_cases(4)}
    assert len(cases) == 6
    slow = cases["4 stages, slow middle, split x1.2"]["zb_h1"].pipeline.stage_times
    assert [form.value for form in slow.forward] == pytest.approx([0.01, 0.01, 0.015, 0.01])
    assert [form.value for form in slow.backward] == pytest.approx([0.02, 0.02, 0.03, 0.02])
    assert [form.value for form in slow.input_backward] == pytest.approx([0.012, 0.012, 0.018, 0.012])
    (first,) = layout_cases({"bench_a10g_front": hetero_times()["bench_a10g_front"]})
    assert first.specs["1f1b"].pipeline.stage_times.forward[3].value == pytest.approx(0.0229363)
    with_hops = list(schedule_cases(4, p2p="posted"))[1]
    assert with_hops.name == "4 equal stages, messages of 3 ms, posted"
    one = hops.summarize(hops.simulate(with_hops.specs["1f1b"])).iteration_time.mean_ms
    assert one == pytest.approx(11 * 30 + 16 * 3)


def test_the_table_marks_the_fastest_and_says_what_was_not_clean():
    out = StringIO()
    rows = [row("x", 100, 101), row("y", 110, 111), row("z", 130, 150, late=3)]
    Console(file=out, width=80).print(render_experiment(rows, ranked(rows)))
    text = out.getvalue()
    assert "100.0 *" in text
    assert "101.0 *" in text
    assert "3 of 3 executed their program's order; 2 had a clean iteration" in text
    assert "clean: measured is 1.0 % off on average, 1.0 % at most" in text
    assert "1 of 1 pairs that the simulator sees more than 3.0 % apart were ranked alike" in text
