"""The scatter of predicted against measured times shows every run once per variant, and no text hides another."""

import pytest
from matplotlib.collections import PathCollection
from viz_layout import drawn_texts, outside, overlapping

from hops.calibrate.score import RunFigures, RunScore
from hops.calibrate.validate import DESCRIPTIONS, ValidatedRun, Validation
from hops.errors import UsageError
from hops.report.validation import render_validation, write_report
from hops.viz import validation as module
from hops.viz.validation import draw_validation


def outcome(seconds):
    return RunFigures(
        num_microbatches=8,
        mean_iteration_s=seconds,
        p50_iteration_s=seconds,
        forward_busy_s=(0.1, 0.2, 0.1),
        backward_busy_s=(0.2, 0.3, 0.2),
        optimizer_s=(0.01, 0.01, 0.01),
        forward_s=(0.01, 0.02, 0.01),
        backward_s=(0.02, 0.03, 0.02),
        latency_s=seconds,
        pipeline_s=seconds * 0.8,
        reduce_s=seconds * 0.1,
        step_s=seconds * 0.1,
        gap_s=0.0,
    )


def made(runs=12):
    found = []
    for number in range(runs):
        name, seconds = f"scenario_{number}_of_a_long_name_run{number}", 0.2 * 1.2**number
        factors = dict(zip(DESCRIPTIONS, (0.7, 1.05 - 0.01 * number, 0.98, 1.001), strict=True))
        scores = {
            variant: RunScore(name=name, predicted=outcome(seconds * factor), measured=outcome(seconds))
            for variant, factor in factors.items()
        }
        groups = {"devices": ["h100", "a10g + l4", "a <b>"][number % 3], "depth": "3 stages", "model": "small"}
        found.append(ValidatedRun(name=name, scenario=name, groups=groups, scores=scores))
    return Validation(runs=tuple(found), how="a profile of ours")


@pytest.fixture
def figure(tmp_path, monkeypatch):
    kept = []
    original = module.picture

    def keeping(*arguments, **options):
        context = original(*arguments, **options)

        class Kept:
            def __enter__(self):
                kept.append(context.__enter__())
                return kept[-1]

            def __exit__(self, *error):
                return context.__exit__(*error)

        return Kept()

    monkeypatch.setattr(module, "picture", keeping)
    draw_validation(made(), tmp_path / "validation.png")
    assert (tmp_path / "validation.png").stat().st_size > 10_000
    return kept[0]


def test_every_run_is_a_point_in_every_panel(figure):
    assert len(figure.axes) == len(DESCRIPTIONS)
    for axes in figure.axes:
        points = [each for each in axes.collections if isinstance(each, PathCollection)]
        assert sum(len(each.get_offsets()) for each in points) == 12


def test_no_text_hides_another_or_leaves_the_sheet(figure):
    texts = drawn_texts(figure)
    assert overlapping(texts) == []
    assert outside(texts, figure) == []


def test_pictures_are_png_or_svg(tmp_path):
    with pytest.raises(UsageError, match=r"expected \.png, \.svg or \.pdf"):
        draw_validation(made(2), tmp_path / "validation.jpg")


def test_the_report_has_every_run_and_escapes_names(tmp_path):
    found = made(4)
    write_report(found, tmp_path)
    html = (tmp_path / "validation.html").read_text()
    assert "a &lt;b&gt;" in html
    assert "a <b>" not in html
    for run in found.runs:
        assert run.name in html
        assert run.name in (tmp_path / "validation.md").read_text()


def test_the_terminal_says_what_each_variant_is():
    from rich.console import Console

    console = Console(width=80, record=True)
    console.print(render_validation(made(4)))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    for name in DESCRIPTIONS:
        assert f"  {name}: " in text
    assert "diagnostic, no prediction" in text
