"""`hops calibrate`: measured runs become a hardware profile that a spec can name."""

from pathlib import Path
from typing import Annotated

import typer

from hops.cli.console import AllCoresOption, QuietOption
from hops.errors import UsageError

SHIPPED_DEFAULT = "megatron-aws"


def calibrate(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUNS...",
            help="Run folders, or folders of them; plain 1F1B with traces. Or KERNELS.jsonl ROWS.jsonl, public tables.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The profile to write (YAML); of public tables, a folder."),
    ],
    warmup: Annotated[int, typer.Option(min=0, help="Leading iterations of traces to leave out.")] = 0,
    *,
    quiet: QuietOption = False,
) -> None:
    """Fit the cost model's parameters to measured runs: robust least squares, bounded by the vendors' peaks.

    The same runs give the same profile. Needs scipy: pip install 'hops-sim[calibrate]'.
    """
    if all(path.suffix == ".jsonl" for path in runs):
        _learn(runs, output, quiet=quiet)
        return
    from hops.calibrate.calibrate import calibrate as fit
    from hops.calibrate.observations import observe
    from hops.calibrate.validate import run_folders
    from hops.cli.console import show
    from hops.cli.recorded import megatron
    from hops.cost.profile import write_profile
    from hops.report.validation import render_profile

    folders = [folder for path in runs for folder in run_folders(path)]
    readers = megatron(warmup)
    profile = fit([observe(readers.inputs(each), readers.trace(each), warmup=warmup) for each in folders])
    write_profile(profile, output)
    if not quiet:
        show(render_profile(profile), f"wrote {output}; a spec uses it by hardware.profile, hops validate by --profile")


def _learn(tables: list[Path], folder: Path, *, quiet: bool) -> None:
    """Profiles of frameworks from measured kernels and whole jobs of public tables."""
    from hops.cli.console import show
    from hops.published.learn import learn

    if len(tables) != 2:
        got = ", ".join(map(str, tables))
        raise UsageError(f"got {got}, expected two files of public tables: hops calibrate KERNELS.jsonl ROWS.jsonl")
    folder.mkdir(parents=True, exist_ok=True)
    kernels, rows = tables
    for each in learn(kernels, rows, folder):
        if not quiet:
            errors = f"{each.fitted_pct:.1f} % on {each.jobs} jobs, {each.left_out_pct:.1f} % on those left out"
            show(f"wrote {folder / f'published-{each.name}.yaml'}: step times {errors}")


PUBLISHED = "published"  # instead of a folder of runs


def validate(
    runs: Annotated[
        Path,
        typer.Argument(
            metavar="RUNS",
            help="A folder of run folders (run.yaml, link_bench, megatron_trace); or the word published, then FILE.",
        ),
    ],
    rows: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="After published: rows of public tables (JSON lines).", show_default=False
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            help="A profile's file, or a shipped one's name; none: the catalog alone. "
            "Default: megatron-aws; of published rows, the one of each row's framework.",
            show_default=False,
        ),
    ] = None,
    folds: Annotated[
        int,
        typer.Option(
            "--folds", metavar="N", min=0, help="Cross-validate instead: predict each run by a profile of other runs."
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="With --folds: how scenarios are shuffled.")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write figures, and errors of every run.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FOLDER", help="Write a report with groups and pictures (Markdown, HTML)."),
    ] = None,
    warmup: Annotated[
        int,
        typer.Option(min=0, help="Leading iterations of traces to leave out, beyond those that were not recorded."),
    ] = 0,
    jobs: AllCoresOption = None,
    *,
    quiet: QuietOption = False,
) -> None:
    """Predict measured runs from their launch arguments and link benchmarks alone, then score against their traces.

    `hops validate published FILE` predicts rows of public tables instead: step time and peak memory of whole jobs.
    """
    if str(runs) == PUBLISHED:
        _published(rows, profile, folds=folds, json_file=json_file, report=report, quiet=quiet)
        return
    if rows is not None:
        raise UsageError(f"got {rows} after {runs}, expected one folder of runs, or: hops validate published {rows}")
    import json

    from hops.calibrate.validate import cross_validate, run_folders
    from hops.calibrate.validate import validate as validate_runs
    from hops.cli.console import show
    from hops.cli.recorded import megatron, profile_file
    from hops.files import atomic_write
    from hops.processes import cores
    from hops.report.validation import PICTURE, render_validation, write_report
    from hops.viz.html.page import write_report as write_page
    from hops.viz.html.results import validation_page
    from hops.viz.validation import draw_validation

    folders = run_folders(runs)
    if folds:
        found = cross_validate(folders, megatron(warmup), number=folds, seed=seed, jobs=jobs or cores())
    else:
        found = validate_runs(folders, megatron(warmup), profile_file(profile or SHIPPED_DEFAULT), jobs=jobs or cores())
    if json_file is not None:
        with atomic_write(json_file) as out:
            json.dump(found.to_dict(), out, indent=2, allow_nan=False)
            out.write("\n")
    if report is not None:
        write_report(found, report)
        draw_validation(found, report / PICTURE)
        write_page(validation_page(found), report / "report.html")
    if not quiet:
        show(render_validation(found))
        for written in (json_file, report):
            if written is not None:
                show(f"wrote {written}")


def _published(
    rows: Path | None,
    profile: str | None,
    *,
    folds: int,
    json_file: Path | None,
    report: Path | None,
    quiet: bool,
) -> None:
    """Rows of public tables: a table, a JSON file, a folder with a picture."""
    import json

    from hops.cli.console import show
    from hops.files import atomic_write
    from hops.published.predict import validate_published
    from hops.report.published import PICTURE, render_published
    from hops.viz.published import draw_published

    if rows is None:
        raise UsageError("published needs a file, such as: hops validate published rows.jsonl")
    if folds:
        raise UsageError("--folds is for run folders: docs/explanation/published.md says how profiles were validated")
    found = validate_published(rows, profile)
    if json_file is not None:
        with atomic_write(json_file) as out:
            json.dump(found.to_dict(), out, indent=2, allow_nan=False)
            out.write("\n")
    if report is not None:
        draw_published(found, report / PICTURE)
    if not quiet:
        show(render_published(found))
        for written in (json_file, None if report is None else report / PICTURE):
            if written is not None:
                show(f"wrote {written}")
