"""Pictures of a sweep: lines, a heat map, what none beats in two figures, and parallel coordinates."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hops.arrays import FloatArray
from hops.errors import UsageError
from hops.sweep.columns import SweepColumn, check_column, column, large_is_good
from hops.sweep.table import SweepTable
from hops.viz.canvas import picture, picture_format
from hops.viz.style import INK, QUIET, RULE, SMALL_PT, TEXT_PT, TITLE_PT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_IN, _HEIGHT_IN = 8.4, 5.0
_COLOURS = "viridis"
_LINES = ("#2f6fb0", "#dd8f14", "#54306e", "#2f9e7d", "#c24a2e", "#6b7178", "#8fb8de", "#b0a030")
_MARKS = "os^Dv<>P"
_NUMBERED = 81  # cells of a heat map that get their numbers written in
_PARALLEL = 3000  # lines of parallel coordinates, at most
_MOST_TICKS = 12


def draw_sweep_picture(table: SweepTable, kind: str, path: Path, of: Sequence[str] = ()) -> None:
    """Write a PNG or SVG.

    Args:
        table: with at least one point that has figures.
        kind: lines (x, figure, and what tells lines apart), heat (x, y, figure), pareto (two figures, colour) or
            parallel (any columns, the last is the colour).
        path: the picture.
        of: columns, in this order; what is not named is chosen. Points that differ in others are averaged.

    Raises UsageError for a kind, column or suffix that there is not, and if there is nothing to draw.
    """
    check_sweep_picture(kind, path, table.keys, table.figures, of)
    if not any(row.outcome.status == "ok" for row in table.rows):
        raise UsageError("nothing to draw: no point of the sweep has figures; the column reason says why")
    chosen = [column(table, name) for name in _chosen(kind, table, of)]
    with picture(path, width_in=_WIDTH_IN, height_in=_HEIGHT_IN) as figure:
        _DRAW[kind](figure, chosen)


def check_sweep_picture(kind: str, path: Path, keys: Sequence[str], figures: Sequence[str], of: Sequence[str]) -> None:
    """Raise UsageError for what `draw_sweep_picture` cannot draw, before a sweep is run for it."""
    picture_format(path)
    if kind not in _DRAW:
        raise UsageError(f"--picture: got {kind!r}, expected one of {', '.join(_DRAW)}")
    for name in of:
        check_column(name, (*keys, *figures))
    if kind == "heat" and len({*keys, *of} - set(figures)) < 2:
        raise UsageError(f"--picture heat: got one key that varies ({', '.join(keys)}), expected two")
    if kind == "pareto" and len({*figures, *of} - set(keys)) < 2:
        raise UsageError(f"--picture pareto: got one figure ({', '.join(figures)}), expected two")


def _chosen(kind: str, table: SweepTable, of: Sequence[str]) -> list[str]:
    """The columns of a picture: those named, in their order, then usual ones."""
    keys = [name for name in of if name in table.keys] + [name for name in table.keys if name not in of]
    keys = [key for key in keys if key != "simulation.seed" or key in of] or keys
    figures = [name for name in of if name in table.figures]
    figures += [name for name in table.figures if name not in of and _is_known(table, name)]
    if kind == "lines":
        first = keys[0] if keys[0] in of else next((k for k in keys if not column(table, k).is_words), keys[0])
        return [first, figures[0], *[key for key in keys if key != first][:1]]
    if kind == "heat":
        return [*keys[:2], figures[0]]
    if kind == "pareto":
        other = [name for name in figures[1:] if name in of or name.startswith("peak_memory.")] or figures[1:]
        return [figures[0], other[0], *([of[2]] if len(of) > 2 else keys[:1])]
    return list(of) if len(of) > 1 else [*keys[:5], figures[0]]


def _is_known(table: SweepTable, figure: str) -> bool:
    return any(value is not None for value in column(table, figure).values)


def _heading(figure: "Figure", title: str, rest: str) -> None:
    figure.text(0.09, 0.94, title, fontsize=TITLE_PT, fontweight="bold", color=INK)
    figure.text(0.09, 0.895, rest, fontsize=TEXT_PT, color=QUIET)


def _mean_by(cells: Sequence[tuple[Any, ...]], values: Sequence[float | None]) -> dict[tuple[Any, ...], FloatArray]:
    """The values of every cell."""
    found: defaultdict[tuple[Any, ...], list[float]] = defaultdict(list)
    for cell, value in zip(cells, values, strict=True):
        if value is not None and None not in cell:
            found[cell].append(value)
    return {cell: np.array(each) for cell, each in found.items()}


def _lines(figure: "Figure", columns: Sequence[SweepColumn]) -> None:
    x, y, *rest = columns
    groups = rest[0] if rest else None
    axes = figure.add_axes((0.09, 0.12, 0.66 if groups else 0.86, 0.72))
    lane = groups.values if groups else (0.0,) * len(x.values)
    found = _mean_by(list(zip(lane, x.values, strict=True)), y.values)
    several = any(len(each) > 1 for each in found.values())
    for number, group in enumerate(dict.fromkeys(cell[0] for cell in found)):
        places = sorted(cell[1] for cell in found if cell[0] == group)
        each = [found[group, place] for place in places]
        style: dict[str, Any] = {"color": _LINES[number % len(_LINES)], "marker": _MARKS[number % len(_MARKS)]}
        mean = [float(values.mean()) for values in each]
        axes.plot(places, mean, markersize=4, linewidth=1.4, label=_name(groups, group), **style)
        if several:
            low, high = [float(v.min()) for v in each], [float(v.max()) for v in each]
            axes.fill_between(places, low, high, color=style["color"], alpha=0.15, linewidth=0)
    spread = "; lines are means, bands reach from the least to the greatest of the other points" if several else ""
    _heading(figure, f"{y.name} by {x.name}", f"{sum(map(len, found.values()))} points{spread}")
    _axis(axes.xaxis, x, _is_wide(x))
    axes.set_xlabel(x.title)
    axes.set_ylabel(y.title)
    axes.grid(visible=True)
    if groups is not None:
        axes.legend(title=groups.title, loc="upper left", bbox_to_anchor=(1.02, 1.02), frameon=False, fontsize=SMALL_PT)


def _heat(figure: "Figure", columns: Sequence[SweepColumn]) -> None:
    x, y, value = columns
    found = _mean_by(list(zip(x.values, y.values, strict=True)), value.values)
    across, up = (sorted({cell[place] for cell in found}) for place in (0, 1))
    grid = np.full((len(up), len(across)), np.nan)
    for (one, other), values in found.items():
        grid[up.index(other), across.index(one)] = values.mean()
    axes = figure.add_axes((0.2, 0.16, 0.64, 0.68))
    colours = _COLOURS if large_is_good(value.name) else f"{_COLOURS}_r"
    image = axes.imshow(grid, origin="lower", aspect="auto", cmap=colours)
    for axis, places, of in ((axes.xaxis, across, x), (axes.yaxis, up, y)):
        step = -(-len(places) // _MOST_TICKS)
        axis.set_ticks(range(0, len(places), step), [_name(of, place) for place in places[::step]])
    if len(across) > 5 or any(len(_name(x, place)) > 8 for place in across):
        axes.tick_params(axis="x", rotation=30)
    if grid.size <= _NUMBERED:
        _numbers(axes, grid, good=large_is_good(value.name))
    axes.set_xlabel(x.title)
    axes.set_ylabel(y.title)
    bar = figure.colorbar(image, cax=axes.inset_axes((1.03, 0.0, 0.03, 1.0)))
    bar.set_label(value.title, fontsize=SMALL_PT)
    bar.outline.set_visible(False)
    points = sum(map(len, found.values()))
    _heading(figure, f"{value.name}", f"{points} points; cells are means; bright is {_bright(value)}")


def _bright(value: SweepColumn) -> str:
    return "better: more" if large_is_good(value.name) else "better: less"


def _numbers(axes: "Axes", grid: FloatArray, *, good: bool) -> None:
    """The value of every cell; dark on bright cells."""
    low, high = float(np.nanmin(grid)), float(np.nanmax(grid))
    for row, column_ in zip(*np.nonzero(~np.isnan(grid)), strict=True):
        share = 0.5 if high == low else (float(grid[row, column_]) - low) / (high - low)
        bright = share if good else 1 - share
        colour = INK if bright > 0.55 else "white"
        axes.text(column_, row, f"{grid[row, column_]:.4g}", ha="center", va="center", fontsize=SMALL_PT, color=colour)


def _pareto(figure: "Figure", columns: Sequence[SweepColumn]) -> None:
    x, y, colour = columns
    kept = [n for n, (a, b) in enumerate(zip(x.values, y.values, strict=True)) if a is not None and b is not None]
    across, up = (np.array([each.values[n] for n in kept], dtype=np.float64) for each in (x, y))
    axes = figure.add_axes((0.09, 0.12, 0.64, 0.72))
    best = unbeaten(across if large_is_good(x.name) else -across, up if large_is_good(y.name) else -up)
    axes.plot(across[best], up[best], color=QUIET, linewidth=1.0, zorder=1)
    shades = np.array([colour.values[n] if colour.values[n] is not None else np.nan for n in kept], dtype=np.float64)
    if colour.is_words:
        for number, name in enumerate(colour.names):
            mine = shades == number
            style: dict[str, Any] = {"color": _LINES[number % len(_LINES)], "marker": _MARKS[number % len(_MARKS)]}
            axes.scatter(across[mine], up[mine], s=18, alpha=0.8, linewidths=0, label=name, **style)
        axes.legend(title=colour.title, loc="upper left", bbox_to_anchor=(1.02, 1.02), frameon=False, fontsize=SMALL_PT)
    else:
        dots = axes.scatter(across, up, c=shades, cmap=_COLOURS, s=18, linewidths=0)
        bar = figure.colorbar(dots, cax=axes.inset_axes((1.04, 0.0, 0.03, 1.0)))
        bar.set_label(colour.title, fontsize=SMALL_PT)
        bar.outline.set_visible(False)
    axes.scatter(across[best], up[best], s=46, facecolors="none", edgecolors=INK, linewidths=0.9, zorder=3)
    axes.set_xlabel(_directed(x))
    axes.set_ylabel(_directed(y))
    axes.grid(visible=True)
    axes.ticklabel_format(useOffset=False)
    rest = f"{len(kept)} points; ringed: the {len(best)} that none beats in both"
    _heading(figure, f"{x.name} and {y.name}", rest)


def unbeaten(one: FloatArray, other: FloatArray) -> list[int]:
    """Which points no other beats in both (more is better; shape (points,)), by the first; of equal ones the first."""
    kept: list[int] = []
    most = -np.inf
    for place in np.lexsort((-other, -one)).tolist():
        if other[place] > most:
            kept.append(place)
            most = float(other[place])
    return kept[::-1]


def _directed(of: SweepColumn) -> str:
    return f"{of.title} ({'more' if large_is_good(of.name) else 'less'} is better)"


def _parallel(figure: "Figure", columns: Sequence[SweepColumn]) -> None:
    rows = [row for row in zip(*(each.values for each in columns), strict=True) if None not in row]
    step = -(-len(rows) // _PARALLEL)
    table = np.array(rows[::step], dtype=np.float64)
    shown = np.column_stack([_share(table[:, place], of) for place, of in enumerate(columns)])
    axes = figure.add_axes((0.07, 0.2, 0.84, 0.62))
    last = columns[-1]
    good = shown[:, -1] if large_is_good(last.name) or last.is_words else 1 - shown[:, -1]
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection

    order = np.argsort(good, kind="stable")  # the best on top
    lines = [np.column_stack([np.arange(len(columns)), shown[row]]) for row in order]
    alpha = max(0.08, min(0.9, 60 / len(lines)))
    axes.add_collection(LineCollection(lines, colors=colormaps[_COLOURS](good[order]), linewidths=1.0, alpha=alpha))
    axes.set_xlim(-0.15, len(columns) - 0.85)
    axes.set_ylim(-0.05, 1.05)
    axes.set_yticks([])
    axes.set_xticks(range(len(columns)), [_two_lines(of.title) for of in columns], fontsize=SMALL_PT)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for place, of in enumerate(columns):
        axes.axvline(place, color=RULE, linewidth=1.0, zorder=0)
        for share, text in _marks(table[:, place], of):
            axes.annotate(
                text, (place, share), textcoords="offset points", xytext=(4, 0), va="center", fontsize=SMALL_PT,
                color=INK, bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.6},
            )  # fmt: skip
    more = f", every {step}th of {len(rows)} points" if step > 1 else f", {len(rows)} points"
    _heading(figure, "Parallel coordinates", f"bright lines are better in {last.name}{more}")


def _share(values: FloatArray, of: SweepColumn) -> FloatArray:
    """Places from 0 to 1 along an axis; factors where the values span more than one power of ten."""
    values = np.log(values) if _is_wide(of) else values
    low, high = float(values.min()), float(values.max())
    return np.full(len(values), 0.5) if high == low else (values - low) / (high - low)


def _marks(values: FloatArray, of: SweepColumn) -> list[tuple[float, str]]:
    """What is written along an axis: every name, or the ends."""
    shares = _share(values, of)
    found: Mapping[float, float] = dict(zip(shares.tolist(), values.tolist(), strict=True))
    places = sorted(found) if len(found) <= 8 else [min(found), max(found)]
    return [(place, _name(of, found[place])) for place in places]


def _two_lines(name: str) -> str:
    head, dot, tail = name.rpartition(".")
    return f"{head}.\n{tail}" if dot else name


def _is_wide(of: SweepColumn) -> bool:
    """Whether values span more than a power of ten, and are shown by factors."""
    known = [value for value in of.values if value is not None]
    return not of.is_words and min(known) > 0 and max(known) / min(known) > 10


def _axis(axis: Any, of: SweepColumn, by_factors: bool) -> None:
    if of.is_words:
        axis.set_ticks(range(len(of.names)), of.names)
    elif by_factors:
        axis.axes.set_xscale("log")
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(lambda *_: "")


def _name(of: SweepColumn | None, value: float) -> str:
    if of is None:
        return ""
    return of.names[int(value)] if of.is_words else f"{value:.6g}"


_DRAW: "Mapping[str, Any]" = {"lines": _lines, "heat": _heat, "pareto": _pareto, "parallel": _parallel}
