"""A picture is drawn on its own figure under HOPS's settings, then written whole or not at all."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hops.errors import UsageError
from hops.files import atomic_path
from hops.viz.style import DPI, FONT, SETTINGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Metadata that would change from run to run or from version to version is left out.
_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}

# PNG's own default packs a fifth tighter in three times the time.
_OPTIONS: dict[str, dict[str, Any]] = {"png": {"pil_kwargs": {"compress_level": 1}}, "svg": {}, "pdf": {}}


def picture_format(path: Path) -> str:
    """`png`, `svg` or `pdf`, from the suffix. Raises UsageError for any other."""
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in _METADATA:
        got = f"suffix {path.suffix!r}" if path.suffix else "no suffix"
        raise UsageError(f"cannot draw {path}: got {got}, expected .png, .svg or .pdf; rename the picture")
    return suffix


def prepare() -> None:
    """Load matplotlib now, and not when drawing begins: what is loaded before a fork is loaded once."""
    import matplotlib.backends.backend_agg
    import matplotlib.figure  # noqa: F401


@contextmanager
def blank(*, width_in: float, height_in: float) -> Iterator["Figure"]:
    """A new figure. The user's matplotlib configuration is set aside inside the block and untouched after it."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)  # type: ignore[arg-type]
        figure = Figure(figsize=(width_in, height_in), dpi=DPI, facecolor="white")
        FigureCanvasAgg(figure)
        yield figure


@contextmanager
def picture(path: Path, *, width_in: float, height_in: float, scale: float = 1.0) -> Iterator["Figure"]:
    """A blank figure to draw on, written to `path`, `scale` times as large, when the block ends without an error."""
    file_format = picture_format(path)
    with blank(width_in=width_in, height_in=height_in) as figure:
        yield figure
        with atomic_path(path) as temporary:
            if file_format == "pdf" and scale != 1:
                _save_scaled_pdf(figure, temporary, scale)
                return
            options = {"metadata": _METADATA[file_format], **_OPTIONS[file_format]}
            figure.savefig(temporary, format=file_format, dpi=DPI * (scale if file_format == "png" else 1), **options)
            if file_format == "svg" and scale != 1:
                _scale_svg(temporary, scale)


def _scale_svg(path: Path, scale: float) -> None:
    """Another size on paper for the same drawing: its view box stays."""
    text = path.read_text(encoding="utf-8")
    head = re.compile(r'(<svg [^>]*?)(width|height)="([\d.]+)pt"')
    for _ in range(2):
        text = head.sub(lambda found: f'{found[1]}{found[2]}="{float(found[3]) * scale:.6f} pt"', text, count=1)
    path.write_text(text.replace(' pt"', 'pt"'), encoding="utf-8", newline="\n")


def _save_scaled_pdf(figure: "Figure", path: Path, scale: float) -> None:
    """As matplotlib prints a PDF, with a transformation before everything else."""
    mixed: Any = import_module("matplotlib.backends.backend_mixed")  # they have no types
    pdf: Any = import_module("matplotlib.backends.backend_pdf")
    width_in, height_in = figure.get_size_inches()
    figure.dpi = 72
    file = pdf.PdfFile(str(path), metadata=_METADATA["pdf"])
    try:
        file.newPage(width_in * scale, height_in * scale)
        file.output(scale, 0, 0, scale, 0, 0, pdf.Op.concat_matrix)
        inner = pdf.RendererPdf(file, DPI, height_in, width_in)
        renderer = mixed.MixedModeRenderer(figure, width_in, height_in, DPI, inner)
        figure.draw(renderer)
        renderer.finalize()
        file.finalize()
    finally:
        file.close()


@lru_cache(maxsize=4096)
def text_width_in(text: str, size_pt: float) -> float:
    """Width of a line of text on paper, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    if not text.strip():
        return 0.0
    width_pt, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(family=FONT, size=size_pt), False)
    return float(width_pt) / 72


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, the middle left out: both ends of a device's name tell devices apart."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def fit_text(text: str, width_in: float, size_pt: float) -> str:
    """As much of the beginning as fits into the width, with an ellipsis where it was cut."""
    if text_width_in(text, size_pt) <= width_in:
        return text
    kept = next(n for n in range(len(text) - 1, -1, -1) if text_width_in(f"{text[:n]}…", size_pt) <= width_in or n == 0)
    return f"{text[:kept].rstrip(' ,')}…"
