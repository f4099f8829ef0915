"""The layout tests' own measure finds what they look for."""

from viz_layout import drawn_texts, outside, overlapping

from hops.viz.canvas import blank


def test_texts_that_overlap_or_leave_the_sheet_are_found_and_labels_that_are_not_drawn_do_not_count():
    with blank(width_in=4, height_in=2) as figure:
        axes = figure.add_axes((0.1, 0.3, 0.8, 0.5))
        axes.set_xticks([0, 1, 2], ["a", "b", "beyond"])
        axes.set_xlim(0, 1)
        figure.text(0.4, 0.9, "one")
        figure.text(0.41, 0.9, "two")
        figure.text(0.99, 0.1, "too far right")
        texts = drawn_texts(figure)
    assert overlapping(texts) == [("one", "two")]
    assert outside(texts, figure) == ["too far right"]
    assert "beyond" not in dict(texts)
