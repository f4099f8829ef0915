"""The table of a sweep in files, on the screen and in pictures."""

import csv

import numpy as np
import pytest

from hops.errors import UsageError
from hops.report.sweep import render_sweep_table
from hops.sweep.columns import column
from hops.sweep.outcome import Outcome
from hops.sweep.table import SweepRow, SweepTable
from hops.viz.sweep import draw_sweep_picture, unbeaten

KEYS = ("pipeline.schedule", "hardware.interconnect.bandwidth", "pipeline.microbatches")
FIGURES = ("iteration_time.mean_ms", "throughput.tokens_per_s", "mfu", "peak_memory.bytes")


def rows():
    number = 0
    for schedule in ("1f1b", {"name": "interleaved_1f1b", "chunks": 4}, "zb_h1"):
        for bandwidth in (10, 25, 100, 400):
            for microbatches in (8, 16):
                time = 100.0 + 300 / bandwidth + microbatches + 5 * len(str(schedule))
                figures = (time, 1e6 / time, None, microbatches << 30)
                outcome = Outcome(status="ok", figures=figures, seconds=0.1)
                if schedule == "zb_h1" and microbatches == 16:
                    outcome = Outcome(status="refused", reason=f"DoesNotFitError: too large\nrank {number}")
                changes = dict(zip(KEYS, (schedule, f"{bandwidth} Gbit/s", microbatches), strict=True))
                yield SweepRow(number=number, changes=changes, outcome=outcome)
                number += 1


TABLE = SweepTable(keys=KEYS, figures=FIGURES, rows=tuple(rows()), size=30)


def screen(table, of=(), width=80):
    from rich.console import Console

    console = Console(width=width, record=True, force_terminal=False)
    with console.capture() as captured:
        console.print(render_sweep_table(table, of, most=3))
    return captured.get()


def test_the_screen_shows_the_best_and_why_points_failed():
    assert repr(TABLE) == "SweepTable(24 of 30 points, 4 without figures)"
    for width in (60, 80):
        assert [line.rstrip() for line in screen(TABLE, width=width).splitlines()] == [
            "24 of 30 points, 4 without figures",
            "                                           iteration  peak",
            "point  schedule   bandwidth  microbatches         ms   GiB",
            "─" * 58,
            "6          1f1b  400 Gbit/s             8      128.8  8.00",
            "4          1f1b  100 Gbit/s             8      131.0  8.00",
            "22        zb_h1  400 Gbit/s             8      133.8  8.00",
            "the best by iteration_time.mean_ms",
            "4 x DoesNotFitError: too large (first: point 17)",
        ]


def test_the_screen_ranks_by_the_figure_that_is_asked_for():
    by_rate = [line.split()[0] for line in screen(TABLE, ["throughput.tokens_per_s"]).splitlines()[4:7]]
    by_time = [line.split()[0] for line in screen(TABLE, ["iteration_time.mean_ms"]).splitlines()[4:7]]
    assert by_rate == by_time  # one is large where the other is small
    with pytest.raises(UsageError, match=r"got the column 'mf', expected one of .*; did you mean mfu\?"):
        screen(TABLE, ["mf"])


def test_csv_parquet_and_pandas_say_the_same(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    TABLE.to_csv(tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as stream:
        read = list(csv.DictReader(stream))
    assert len(read) == 24
    assert read[8]["pipeline.schedule"] == "interleaved_1f1b:chunks=4"
    TABLE.to_parquet(tmp_path / "t.parquet")
    columns = parquet.read_table(tmp_path / "t.parquet").to_pydict()
    assert tuple(columns) == TABLE.columns
    assert [float(row["iteration_time.mean_ms"] or "nan") for row in read] == pytest.approx(
        [np.nan if value is None else value for value in columns["iteration_time.mean_ms"]], nan_ok=True
    )
    frame = pytest.importorskip("pandas") and TABLE.to_pandas()
    assert list(frame["number"]) == columns["number"] == list(range(24))


def test_quantities_of_one_unit_are_numbers_and_others_are_words():
    bandwidth = column(TABLE, "hardware.interconnect.bandwidth")
    assert bandwidth.title == "hardware.interconnect.bandwidth (Gbit/s)"
    assert set(bandwidth.values) == {10.0, 25.0, 100.0, 400.0}
    schedule = column(TABLE, "pipeline.schedule")
    assert schedule.names == ("1f1b", "interleaved_1f1b:chunks=4", "zb_h1")
    assert schedule.values[0] == 0


def test_nobody_beats_the_unbeaten():
    rng = np.random.default_rng(0)
    one, other = rng.random((2, 200))
    best = unbeaten(one, other)
    for place in range(200):
        beaten = bool(
            np.any((one >= one[place]) & (other >= other[place]) & ((one > one[place]) | (other > other[place])))
        )
        assert (place in best) is not beaten
    assert list(one[best]) == sorted(one[best])


@pytest.mark.parametrize("kind", ["lines", "heat", "pareto", "parallel"])
def test_every_kind_is_drawn_and_repeats(tmp_path, kind):
    for name in ("a.svg", "b.svg"):
        draw_sweep_picture(TABLE, kind, tmp_path / name)
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.svg").read_text(encoding="utf-8")
    assert len(text) > 10_000


@pytest.mark.parametrize(
    ("kind", "file", "of", "message"),
    [
        ("pie", "a.png", (), "got 'pie', expected one of lines, heat, pareto, parallel"),
        ("heat", "a.gif", (), "expected .png or .svg"),
        ("heat", "a.png", ("speed",), "got the column 'speed', expected one of"),
    ],
)
def test_pictures_that_cannot_be_are_refused(tmp_path, kind, file, of, message):
    with pytest.raises(UsageError, match=message):
        draw_sweep_picture(TABLE, kind, tmp_path / file, of)


def test_a_sweep_without_figures_is_not_drawn(tmp_path):
    failed = tuple(row for row in TABLE.rows if row.outcome.status != "ok")
    with pytest.raises(UsageError, match="no point of the sweep has figures"):
        draw_sweep_picture(SweepTable(keys=KEYS, figures=FIGURES, rows=failed, size=4), "lines", tmp_path / "a.png")
