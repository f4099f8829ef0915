"""Validation as a table in a terminal, and as a report with groups and pictures (Markdown and HTML)."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

from rich.console import Group, RenderableType

from hops.calibrate.score import MIN_RANKS, RunScore, Suite, suite
from hops.calibrate.validate import DESCRIPTIONS, Validation
from hops.cost.profile import HardwareProfile
from hops.files import atomic_write
from hops.report.tables import number, plain_table

_HEADS = (
    "thr.\nMAPE",
    "thr.\nmax",
    "p50\nMAPE",
    "bubble\nMAE pp",
    "util.\nrank r",
    "F\nMAPE",
    "B\nMAPE",
    "latency\nMAPE",
)
DEFINITIONS = f"""\
Errors in percent. Throughput (thr.) is microbatches over the mean iteration, start to start. Bubble is 1 - busy /
(ranks x iteration), and utilisation is busy / iteration, busy being F and B (not the optimizer step). Rank r is
Spearman's correlation of the ranks' utilisation, mean over runs with at least {MIN_RANKS} ranks. F and B errors are
over medians of (run, stage)."""
PICTURE = "validation.png"


def render_validation(found: Validation) -> RenderableType:
    """What `hops validate` prints."""
    table = plain_table("", *_HEADS)
    for name in found.variants:
        table.add_row(name, *_cells(found.suite(name)))
    described = "\n".join(f"  {name}: {DESCRIPTIONS[name]}" for name in found.variants)
    far = [f"! {each}" for each in _warnings(found)]
    far += [f"! left out: {name}: {reason}" for name, reason in found.left_out]
    return Group(f"{len(found.runs)} runs, {found.how}", "", table, *far, "", described, DEFINITIONS)


def _warnings(found: Validation) -> list[str]:
    """What is warned of, each once, with the number of runs it holds for."""
    counts = Counter(each for run in found.runs for each in run.warnings)
    far = [f"{warning} ({number} of {len(found.runs)} runs)" for warning, number in sorted(counts.items())]
    seen = sum(run.seen for run in found.runs)
    in_sample = (
        f"{seen} of {len(found.runs)} runs are of scenarios that the profile was fitted on: calibrated figures of "
        "these say how well it fits and not how well it predicts; --folds does"
    )
    return [in_sample, *far] if seen else far


def write_report(found: Validation, folder: Path) -> None:
    """Write validation.md and validation.html into a folder; both show PICTURE, which is drawn beside them."""
    blocks = _blocks(found)
    with atomic_write(folder / "validation.md") as out:
        out.write(_markdown(blocks))
    with atomic_write(folder / "validation.html") as out:
        out.write(_html(blocks))


Block = str | list[list[str]]  # a heading that begins with #, a paragraph, or a table with its head


def _blocks(found: Validation) -> list[Block]:
    blocks: list[Block] = ["# Validation", f"{len(found.runs)} runs, {found.how}.", "## Variants"]
    blocks.append([["variant", *_one_line(_HEADS)], *([name, *_cells(found.suite(name))] for name in found.variants)])
    blocks += [f"**{name}**: {DESCRIPTIONS[name]}." for name in found.variants]
    blocks += [DEFINITIONS, "![predicted against measured](validation.png)"]
    blocks += _warnings(found)
    for key in found.runs[0].groups:
        blocks += [f"## By {key}", _grouped(found, key)]
    blocks += ["## Runs", _runs(found)]
    if found.left_out:
        blocks += ["## Left out", [["run", "reason"], *map(list, found.left_out)]]
    return blocks


def _grouped(found: Validation, key: str) -> list[list[str]]:
    """Figures of every variant in every group."""
    rows = [[key, "runs", "variant", *_one_line(_HEADS)]]
    for group in sorted({run.groups[key] for run in found.runs}):
        members = [run for run in found.runs if run.groups[key] == group]
        rows += [
            [group, str(len(members)), name, *_cells(suite([run.scores[name] for run in members]))]
            for name in found.variants
        ]
    return rows


def _runs(found: Validation) -> list[list[str]]:
    """Every run: measured, and each variant's errors of throughput and median iteration."""
    head = ["run", "measured ms", "measured p50 ms", *(f"{name}: throughput %, p50 %" for name in found.variants)]
    rows = [
        [
            run.name,
            f"{1e3 * run.measured.mean_iteration_s:.1f}",
            f"{1e3 * run.measured.p50_iteration_s:.1f}",
            *(_errors(run.scores[name]) for name in found.variants),
        ]
        for run in found.runs
    ]
    return [head, *rows]


def _errors(score: RunScore) -> str:
    return f"{score.throughput_pct:+.1f}, {score.p50_pct:+.1f}"


def _cells(figures: Suite) -> list[str]:
    correlation = figures.utilization_spearman
    return [
        f"{figures.throughput_mape_pct:.2f}",
        f"{figures.throughput_max_pct:.1f}",
        f"{figures.iteration_p50_mape_pct:.2f}",
        f"{figures.bubble_mae_pp:.2f}",
        "-" if correlation is None else f"{correlation:.3f}",
        f"{figures.forward_mape_pct:.1f}",
        f"{figures.backward_mape_pct:.1f}",
        f"{figures.latency_mape_pct:.2f}",
    ]


def _one_line(heads: Sequence[str]) -> list[str]:
    return [head.replace("\n", " ") for head in heads]


def _markdown(blocks: Sequence[Block]) -> str:
    parts = []
    for block in blocks:
        if isinstance(block, str):
            parts.append(block)
        else:
            head, *rows = block
            lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
            parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in lines))
    return "\n\n".join(parts) + "\n"


_STYLE = """\
body { font: 14px/1.5 sans-serif; max-width: 72em; margin: 2em auto; padding: 0 1em; color: #1f2328 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums } img { max-width: 100% }
th, td { padding: 0.2em 0.8em; text-align: right; border-bottom: 1px solid #c9cdd2 }
th:first-child, td:first-child { text-align: left }"""


def _html(blocks: Sequence[Block]) -> str:
    body = "\n".join(_html_table(block) if isinstance(block, list) else _html_text(block) for block in blocks)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Validation</title>'
        f"<style>\n{_STYLE}\n</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _html_text(block: str) -> str:
    if block.startswith("#"):
        marks, text = block.split(" ", 1)
        return f"<h{len(marks)}>{escape(text)}</h{len(marks)}>"
    if block.startswith("!["):
        text, source = block[2:-1].split("](")
        return f'<img src="{escape(source)}" alt="{escape(text)}">'
    if block.startswith("**"):
        name, text = block[2:].split("**", 1)
        return f"<p><b>{escape(name)}</b>{escape(text)}</p>"
    return f"<p>{escape(block)}</p>"


def _html_table(block: list[list[str]]) -> str:
    head, *rows = block
    lines = ["".join(f"<th>{escape(cell)}</th>" for cell in head)]
    lines += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    return "<table>\n" + "\n".join(f"<tr>{line}</tr>" for line in lines) + "\n</table>"


def render_profile(profile: HardwareProfile) -> RenderableType:
    """What `hops calibrate` prints."""
    scope = profile.scope
    table = plain_table("parameter", "value", "from", "to")
    notes = []
    for part, report in profile.report.items():
        for name, (value, low, high) in report["value_and_90_percent_interval"].items():
            table.add_row(name, *(_scaled(name, each) for each in (value, low, high)))
        mean, largest = report["mean_abs_residual"], report["largest_residual"]
        notes.append(
            f"{part}: {report['observations']} observations, residuals {mean:.3f} on average, {largest:.3f} at most"
        )
        notes += [
            f"  cannot be told apart: {one} and {other} ({r:+.2f})" for one, other, r in report["correlated_beyond_0.9"]
        ]
        for title, key in (("the data say little of", "as_uncertain_as_before"), ("at a bound", "at_their_bounds")):
            if report[key]:
                notes.append(f"  {title}: {', '.join(report[key])}")
    stalls = [
        f"{' - '.join(each.between)} {each.stalls}/{each.reductions}" for each in profile.reduce.paths if each.stalls
    ]
    notes.append(f"stalled reductions: {', '.join(stalls) or 'none'}")
    return Group(f"{scope.runs} runs of {scope.scenarios} scenarios; intervals of 90 %", "", table, "", *notes)


def _scaled(name: str, value: float) -> str:
    """With a unit that a reader wants: us for times, GB/s for rates, MB for sizes."""
    quantity = name.split(".", maxsplit=1)[0]
    if quantity.endswith("_bytes_per_s"):
        return f"{number(value / 1e9)} GB/s"
    if quantity.endswith("_bytes"):
        return f"{number(value / 1e6)} MB"
    if quantity.endswith("_s"):
        return f"{number(value * 1e6)} us"
    return number(value)
