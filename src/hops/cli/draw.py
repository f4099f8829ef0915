"""`hops draw`: a figure of a run for a paper or a slide, as wide and with letters as large as it is printed."""

from pathlib import Path
from typing import Annotated

import typer

from hops.cli.trace import RunArgument, WarmupOption


def draw(
    run: RunArgument,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="*.pdf (fonts inside), *.svg (text is text) or *.png."),
    ],
    width: Annotated[
        str | None, typer.Option("--width", metavar="LENGTH", help="Of the page or column, such as 3.3in or 84mm.")
    ] = None,
    font_size: Annotated[
        float | None, typer.Option("--font-size", metavar="POINTS", help="Of the text as printed; default 8.")
    ] = None,
    window: Annotated[
        str | None, typer.Option("--window", metavar="FROM:TO", help="A stretch of the run, such as 0s:2s.")
    ] = None,
    iterations: Annotated[
        str | None, typer.Option("--iterations", metavar="N-M", help="Iterations; default: as many as are readable.")
    ] = None,
    ranks: Annotated[str | None, typer.Option("--ranks", metavar="N-M", help="Ranks, such as 0-7 or 0,2,4.")] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Above it; empty for none.")] = None,
    style: Annotated[
        Path | None, typer.Option("--style", metavar="FILE", help="Width, font_size, title and colours of ops (YAML).")
    ] = None,
    warmup: WarmupOption = None,
) -> None:
    """Draw the timeline of a run into a PDF, SVG or PNG of a given width."""
    from hops.cli.console import show
    from hops.cli.recorded import opened
    from hops.errors import UnitError, UsageError
    from hops.units import parse_time
    from hops.viz.canvas import picture_format
    from hops.viz.look import look_of, parse_ranks
    from hops.viz.timeline import draw_timeline

    picture_format(output)
    look = look_of(width=width, font_size=font_size, title=title, style=style)
    stretch = None
    if window is not None:
        first, _, last = window.partition(":")
        try:
            stretch = (parse_time(first), parse_time(last))
        except UnitError as error:
            raise UsageError(f"--window: got {window!r}, expected two times such as 0s:2s; {error}") from None
    recorded = opened(run, warmup=warmup)
    draw_timeline(
        recorded.trace,
        recorded.facts,
        output,
        iterations=None if iterations is None else parse_ranks(iterations, what="iterations"),
        window_s=stretch,
        ranks=None if ranks is None else parse_ranks(ranks),
        look=look,
    )
    show(f"wrote {output}")
