"""What layout tests measure: where texts lie on a figure, and whether they collide."""

import numpy as np
from matplotlib.text import Text


def drawn_texts(figure):
    """(text, box in pixels) of every text that a reader sees."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    unseen = {id(label) for axes in figure.axes for label in undrawn_labels(axes)}
    texts = [text for text in figure.findobj(Text) if text.get_text().strip() and id(text) not in unseen]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_visible()]


def undrawn_labels(axes):
    """Labels that matplotlib has but does not draw: of axes switched off, and of ticks beyond the limits."""
    for axis in (axes.xaxis, axes.yaxis):
        if not axes.axison:
            yield from axis.findobj(Text)
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():
            if not low <= tick.get_loc() <= high:
                yield from (tick.label1, tick.label2)


def overlapping(texts):
    """Pairs of texts whose boxes share more than half a pixel in both directions."""
    low = np.array([(box.x0, box.y0) for _, box in texts])
    high = np.array([(box.x1, box.y1) for _, box in texts])
    shared = np.minimum(high[:, None], high[None]) - np.maximum(low[:, None], low[None])
    first, second = np.nonzero(np.triu((shared > 0.5).all(axis=2), k=1))
    return [(texts[a][0], texts[b][0]) for a, b in zip(first, second, strict=True)]


def outside(texts, figure):
    """Texts that do not lie on the sheet."""
    return [
        text for text, box in texts if box.x0 < 0 or box.y0 < 0 or box.x1 > figure.bbox.x1 or box.y1 > figure.bbox.y1
    ]


def artists(figure, prefix):
    """Collections whose `gid` begins so."""
    return [c for axes in figure.axes for c in axes.collections if (c.get_gid() or "").startswith(prefix)]


def boxes(figure, prefix="op-"):
    """How many paths those collections hold."""
    return sum(len(collection.get_paths()) for collection in artists(figure, prefix))
