"""Pictures appear whole, repeat byte for byte, and leave the user's matplotlib alone."""

import matplotlib as mpl
import pytest

from hops.errors import UsageError
from hops.viz.canvas import fit_text, picture, picture_format, shorten, text_width_in


@pytest.mark.parametrize(
    ("name", "got"), [("a.gif", "suffix '.gif'"), ("a", "no suffix"), ("a.png.gz", "suffix '.gz'")]
)
def test_other_suffixes_are_refused_with_the_fix(tmp_path, name, got):
    path = tmp_path / name
    with pytest.raises(UsageError) as error:
        picture_format(path)
    assert str(error.value) == f"cannot draw {path}: got {got}, expected .png, .svg or .pdf; rename the picture"


def test_the_suffix_may_be_in_capitals(tmp_path):
    assert picture_format(tmp_path / "A.PNG") == "png"


def test_a_picture_that_fails_half_way_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), picture(tmp_path / "x.png", width_in=1, height_in=1) as figure:
        figure.text(1 / 0, 0, "never")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_users_own_settings_neither_change_a_picture_nor_are_changed(tmp_path, suffix):
    def draw(path):
        with picture(path, width_in=2, height_in=1) as figure:
            figure.add_axes((0.2, 0.2, 0.7, 0.7)).plot([1, 2], [3, 4], label="a")
        return path.read_bytes()

    plain = draw(tmp_path / f"a.{suffix}")
    theirs = {"font.size": 20.0, "lines.linewidth": 7.0, "svg.hashsalt": "theirs", "savefig.dpi": 30}
    with mpl.rc_context(theirs):
        assert draw(tmp_path / f"b.{suffix}") == plain
        assert {key: mpl.rcParams[key] for key in theirs} == theirs


def test_names_are_shortened_in_the_middle_since_both_ends_tell_devices_apart():
    assert shorten("NVIDIA H100 80GB HBM3", 30) == "NVIDIA H100 80GB HBM3"
    assert shorten("NVIDIA H100 80GB HBM3 SXM5 (liquid)", 20) == "NVIDIA H100 …liquid)"
    assert len(shorten("x" * 99, 20)) == 20


def test_lists_are_cut_at_the_end_where_the_width_ends():
    width = text_width_in("ranks 0, 1, 2…", 8)
    assert fit_text("ranks 0, 1, 2, 3, 4, 5", width, 8) == "ranks 0, 1, 2…"
    assert fit_text("ranks 0, 1", width, 8) == "ranks 0, 1"


def test_dollar_signs_in_names_are_no_formulas(tmp_path):
    with picture(tmp_path / "a.svg", width_in=3, height_in=1) as figure:
        text = figure.text(0.1, 0.5, "$\\no such command$", fontsize=8)
        width_px = text.get_window_extent(figure.canvas.get_renderer()).width
        assert width_px / figure.dpi == pytest.approx(text_width_in("$\\no such command$", 8), rel=0.05)
