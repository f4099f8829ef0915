"""Figures over rows and pairs, what is printed and drawn, and a small file through the command line."""

import json

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hops.cli.main import app
from hops.errors import CatalogError, UsageError
from hops.published.predict import validate_published
from hops.published.row import PublishedRow
from hops.published.score import PublishedValidation, RowResult, figures, pairs
from hops.report.published import render_published
from hops.viz.published import draw_published

ROW = {
    "source": "vtrain-single",
    "model": "gpt-tiny",
    "shape": {"layers": 4, "hidden": 512, "heads": 8},
    "gpu": "A100",
    "n_gpus": 4,
    "gpus_per_node": 8,
    "mbs": 2,
    "gbs": 16,
    "seq": 512,
    "precision": "bf16",
    "zero": 0,
}


def result(number, predicted, measured, **more):
    return RowResult(
        id=f"r{number}", source="s", status="predicted", predicted_s=predicted, measured_s=measured, **more
    )


def test_figures_are_of_rows_that_were_measured():
    rows = [
        result(1, 1.1, 1.0, predicted_gib=10.0, measured_gib=8.0),
        result(2, 0.7, 1.0, predicted_gib=9.0, measured_gib=10.0),
        result(3, 1.0, None),
        RowResult(id="r4", source="s", status="refused", reason="why"),
    ]
    found = figures(rows)
    assert (found.rows, found.refused, found.expressible_pct, found.timed) == (4, 1, 75.0, 2)
    assert found.time_mape_pct == pytest.approx(20.0)
    assert found.time_signed_pct == pytest.approx(-10.0)
    assert found.time_worst_pct == pytest.approx(-30.0)
    assert found.memory_median_pct == pytest.approx(17.5)
    assert found.memory_max_pct == pytest.approx(25.0)


def test_nothing_measured_is_none_not_zero():
    found = figures([result(1, 1.0, None)])
    assert (found.time_mape_pct, found.memory_max_pct) == (None, None)


def test_pairs_differ_in_one_choice_and_by_more_than_three_percent():
    def row(number, **changes):
        return PublishedRow(id=f"r{number}", source="s", model="m", n_gpus=8, **changes)

    rows = [row(1, tp=1, pp=8), row(2, tp=2, pp=4), row(3, tp=2, pp=4, mbs=2), row(4, tp=1, pp=8, recompute="full")]
    results = [result(1, 1.0, 1.0), result(2, 1.2, 1.1), result(3, 1.0, 1.11), result(4, 0.9, 1.3)]
    found = {(each.first, each.second): each for each in pairs(rows, results)}
    assert set(found) == {("r1", "r2"), ("r1", "r4")}  # r2 and r3 differ by 1 %, r1 and r3 in more than one choice
    assert found["r1", "r2"].choice == "tp and pp"
    assert found["r1", "r2"].right
    assert not found["r1", "r4"].right


def test_rows_of_two_releases_are_no_pair():
    rows = [
        PublishedRow(id="r1", source="s", model="m", tp=1, note="release 26.02; x"),
        PublishedRow(id="r2", source="s", model="m", tp=2, note="release 26.04; x"),
    ]
    assert not list(pairs(rows, [result(1, 1.0, 1.0), result(2, 2.0, 2.0)]))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.jsonl"
    lines = [
        {**ROW, "id": "a", "tp": 1, "pp": 2, "step_s": 0.1, "memory_gib": 2.0},
        {**ROW, "id": "b", "tp": 2, "pp": 2, "step_s": 0.2},
        {**ROW, "id": "c", "tp": None, "pp": 2},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_a_file_is_predicted_row_by_row(table):
    found = validate_published(table, "none")
    assert [each.status for each in found.results] == ["predicted", "predicted", "refused"]
    assert found.results[0].predicted_s > 0
    assert found.results[0].predicted_gib > 0
    assert found.to_dict()["all"]["expressible_pct"] == pytest.approx(200 / 3)
    assert set(found.to_dict()) == {"how", "rows", "sources", "all", "pairs"}
    assert set(found.to_dict()["rows"][0]) >= {
        *("id", "source", "status", "reason", "predicted_s", "measured_s"),
        *("error_pct", "predicted_gib", "measured_gib"),
    }


def test_rows_alike_are_predicted_alike_whatever_was_measured(table):
    """What was measured is for scoring alone: it does not move a prediction."""
    first = validate_published(table, "none").results
    text = table.read_text().replace('"step_s": 0.1', '"step_s": 9.9').replace('"memory_gib": 2.0', '"memory_gib": 77')
    table.write_text(text)
    second = validate_published(table, "none").results
    assert [each.predicted_s for each in first] == [each.predicted_s for each in second]
    assert [each.predicted_gib for each in first] == [each.predicted_gib for each in second]


def test_the_table_fits_sixty_columns(table):
    console = Console(width=60, record=True)
    console.print(render_published(validate_published(table, "none")))
    text = console.export_text()
    assert "3 rows in" in text
    assert "vtrain-single" in text
    assert "does not state tp" in text


def test_the_picture_is_drawn_with_nothing_measured_too(tmp_path):
    empty = PublishedValidation(results=(result(1, 1.0, None),), pairs=(), how="by hand", seconds=1.0)
    for name in ("a.png", "a.svg"):
        draw_published(empty, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000


def test_the_command_writes_json_and_a_picture(table, tmp_path):
    out = tmp_path / "found.json"
    arguments = ["validate", "published", str(table), "--profile", "none", "--json", str(out)]
    done = CliRunner().invoke(app, [*arguments, "--report", str(tmp_path / "report")])
    assert done.exit_code == 0, done.output
    assert json.loads(out.read_text())["all"]["rows"] == 3
    assert (tmp_path / "report" / "published.png").is_file()


def test_the_command_says_what_is_missing():
    with pytest.raises(UsageError, match="published needs a file"):
        CliRunner().invoke(app, ["validate", "published"], catch_exceptions=False)


def test_a_profile_that_is_not_there_is_an_error_at_once(table):
    with pytest.raises(CatalogError, match="nosuch: cannot be read: there is no such file"):
        validate_published(table, "nosuch")
