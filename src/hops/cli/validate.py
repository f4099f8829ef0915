"""`hops validate`: predict runs that were measured, from what was known before them, and say how far off."""

from pathlib import Path
from typing import Annotated

import typer

from hops.cli.options import JobsOption, QuietOption


def validate(
    runs: Annotated[
        Path, typer.Argument(metavar="RUNS", help="A folder of run folders (run.yaml, link_bench, megatron_trace).")
    ],
    profile: Annotated[
        str, typer.Option("--profile", metavar="NAME", help="A profile's file, or a shipped one's name.")
    ] = "megatron-aws",
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
    jobs: JobsOption = 2,
    *,
    quiet: QuietOption = False,
) -> None:
    """Predict measured runs from their launch arguments and link benchmarks alone, then score against their traces."""
    import json

    from hops.calibrate import cross_validate, run_folders
    from hops.calibrate import validate as validate_runs
    from hops.cli.console import show
    from hops.cli.readers import megatron, profile_file
    from hops.files import atomic_write
    from hops.report.validation import PICTURE, render_validation, write_report
    from hops.viz.validation import draw_validation

    folders = run_folders(runs)
    if folds:
        found = cross_validate(folders, megatron(warmup), number=folds, seed=seed, jobs=jobs)
    else:
        found = validate_runs(folders, megatron(warmup), profile_file(profile), jobs=jobs)
    if json_file is not None:
        with atomic_write(json_file) as out:
            json.dump(found.to_dict(), out, indent=2, allow_nan=False)
            out.write("\n")
    if report is not None:
        write_report(found, report)
        draw_validation(found, report / PICTURE)
    if not quiet:
        show(render_validation(found))
        for written in (json_file, report):
            if written is not None:
                show(f"wrote {written}")
