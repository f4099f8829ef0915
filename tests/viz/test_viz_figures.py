"""Figures for print: as wide as asked, letters of the size asked, fonts inside, text as text, other colours."""

import re
import zlib

import matplotlib as mpl
import numpy as np
import pytest
from viz_traces import facts_of, one_f_one_b, trace_of

import hops
from hops.errors import UsageError
from hops.program.action import Op
from hops.trace.trace import Stream
from hops.viz.look import Look, look_of, parse_length_in, parse_ranks, read_look
from hops.viz.style import OPS
from hops.viz.timeline import draw_timeline, on_lanes, timeline_scene
from hops.viz.window import choose_window

TRACE = trace_of(one_f_one_b(4, 4), iterations=2)
FACTS = facts_of(TRACE)


def pdf_texts(raw):
    """The decompressed streams of a PDF."""
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", raw, re.DOTALL)
    return [zlib.decompress(each) for each in streams if each[:1] == b"x"]


@pytest.mark.parametrize("font_pt", [8.0, 6.0, 9.5])
def test_a_pdf_is_as_wide_as_asked_with_fonts_inside(tmp_path, font_pt):
    draw_timeline(TRACE, FACTS, tmp_path / "a.pdf", look=Look(width_in=3.3, font_pt=font_pt))
    raw = (tmp_path / "a.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", raw)
    assert float(box[1]) == pytest.approx(3.3 * 72, abs=0.1)
    assert b"/FontFile2" in raw  # TrueType, embedded
    assert b"/Type3" not in raw
    sizes = {float(size) for text in pdf_texts(raw) for size in re.findall(rb"/F\d+ ([\d.]+) Tf", text)}
    assert 8.0 in sizes  # of the drawing, which is scaled
    scales = [float(each) for text in pdf_texts(raw) for each in re.findall(rb"(?m)^([\d.]+) 0 0 \1 0 0 cm", text)]
    assert scales == ([] if font_pt == 8 else [pytest.approx(font_pt / 8)])


def test_an_svg_holds_its_text_as_text_and_is_as_wide_as_asked(tmp_path):
    draw_timeline(TRACE, FACTS, tmp_path / "a.svg", look=Look(width_in=3.3, font_pt=6, title="Warm-up"))
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert 'width="237.600000pt"' in text
    for words in ("rank 3", "Warm-up", "B backward"):
        assert re.search(f"<text[^>]*>{words}</text>", text), words


def test_a_png_has_the_pixels_of_its_width(tmp_path):
    draw_timeline(TRACE, FACTS, tmp_path / "a.png", look=Look(width_in=4.0, font_pt=6))
    assert mpl.image.imread(tmp_path / "a.png").shape[1] == 480  # at 120 a inch


def test_a_narrow_figure_leaves_title_and_devices_to_its_caption():
    window = choose_window(TRACE, FACTS)
    wide, narrow = (timeline_scene(TRACE, FACTS, window, look=look) for look in (Look(), Look(width_in=3.3)))
    assert (narrow.title, narrow.subtitle) == ("", "")
    assert narrow.names == ("rank 0", "rank 1", "rank 2", "rank 3")
    assert wide.title.startswith("1f1b")
    assert timeline_scene(TRACE, FACTS, window, look=Look(width_in=3.3, title="mine")).title == "mine"


def test_ranks_are_lanes_of_their_own_with_their_own_names_and_messages():
    lanes = on_lanes(TRACE, (1, 3))
    ours = TRACE.where(np.isin(TRACE.rank, (1, 3)) & (TRACE.stream == Stream.COMPUTE))
    compute = lanes.of(Stream.COMPUTE)
    assert compute.start_ns.tolist() == ours.start_ns.tolist()
    assert set(compute.rank.tolist()) == {0, 1}
    assert not len(lanes.of(Stream.MESSAGE))  # ranks 1 and 3 are no neighbours
    both = on_lanes(TRACE, (2, 3)).of(Stream.MESSAGE)
    between = (TRACE.stream == Stream.MESSAGE) & np.isin(TRACE.rank, (2, 3)) & np.isin(TRACE.peer, (2, 3))
    assert len(both) == between.sum() > 0
    scene = timeline_scene(TRACE, FACTS, choose_window(TRACE, FACTS), ranks=(1, 3), look=Look(width_in=3.3))
    assert scene.names == ("rank 1", "rank 3")
    with pytest.raises(UsageError, match="cannot show rank 7: the run has ranks 0 to 3"):
        timeline_scene(TRACE, FACTS, choose_window(TRACE, FACTS), ranks=(1, 7))


def test_the_axis_begins_at_0_where_the_iteration_begins():
    window = choose_window(TRACE, FACTS, iterations=[1])
    assert window.origin_ns == window.start_ns > 0
    assert window.label == "time since start of iteration 1"
    assert choose_window(TRACE, FACTS, window_s=(0.0, 0.01)).label == "time since start of run"


def test_a_width_without_room_for_lanes_is_refused(tmp_path):
    with pytest.raises(UsageError, match="widen the figure or make its letters smaller"):
        draw_timeline(TRACE, FACTS, tmp_path / "a.pdf", look=Look(width_in=1.0))


def test_a_style_file_states_width_size_title_and_colours(tmp_path):
    path = tmp_path / "style.yaml"
    path.write_text('width: 84 mm\nfont_size: 7\ntitle: ""\ncolours: {F: "#000000", B: "#ffffff"}\n')
    look = read_look(path)
    assert look.width_in == pytest.approx(84 / 25.4)
    assert (look.font_pt, look.title) == (7, "")
    usual = OPS[Op.F].fill
    with look.applied():
        assert (OPS[Op.F].fill, OPS[Op.F].text, OPS[Op.B].text) == ("#000000", "#ffffff", OPS[Op.I].text)
    assert OPS[Op.F].fill == usual
    wider = look_of(width="3.3in", font_size=None, title="mine", style=path)
    assert (wider.width_in, wider.font_pt, wider.title) == (3.3, 7, "mine")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("colours: {Q: '#000000'}", "colours: got the op 'Q', expected one of F, B, I, W"),
        ("colours: {F: red}", "colours.F: got 'red', expected a colour such as #a6d4f5"),
        ("width: 3", "width"),
        ("font_size: 99", "font size: got 99, expected 4 to 40 points"),
        ("fontsize: 8", "fontsize"),
    ],
)
def test_a_style_file_with_a_mistake_is_refused(tmp_path, text, complaint):
    path = tmp_path / "style.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=re.escape(complaint)):
        read_look(path)


@pytest.mark.parametrize(("text", "inches"), [("3.3in", 3.3), ("25.4 mm", 1), ("2.54cm", 1), ("72pt", 1)])
def test_lengths_have_units(text, inches):
    assert parse_length_in(text) == pytest.approx(inches)


def test_lengths_and_ranks_are_refused_with_the_right_form():
    with pytest.raises(UsageError, match=r"width: got '3.3', expected a length such as 3\.3in"):
        parse_length_in("3.3")
    assert parse_ranks("0-2,5") == (0, 1, 2, 5)
    with pytest.raises(UsageError, match="ranks: got '5-2', expected numbers and stretches"):
        parse_ranks("5-2")


def test_the_public_function_takes_text(tmp_path):
    spec = hops.from_dict(
        {"pipeline": {"model": "gpt2", "microbatches": 4}, "hardware": {"nodes": [{"devices": ["l4", "l4"]}]}}
    )
    run = hops.simulate(spec)
    hops.draw_timeline(run, tmp_path / "a.pdf", width="3.3in", ranks="1", window=("0 s", "0.1 s"), title="t")
    assert (tmp_path / "a.pdf").stat().st_size > 1000
