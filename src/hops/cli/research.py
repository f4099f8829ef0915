"""`hops research`: the calibration loop, by hand or by an agent."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hops.cli.console import JsonOption, QuietOption

if TYPE_CHECKING:
    from hops.research.folder import Folder

app = typer.Typer(
    help="Improve the model by measured runs: observe, change, check, accept or reject; by hand or by an agent.",
    no_args_is_help=True,
)
FolderOption = Annotated[Path, typer.Option("--folder", "-C", metavar="FOLDER", help="The research folder.")]
HypothesisOption = Annotated[
    str, typer.Option("--message", "-m", metavar="HYPOTHESIS", help="What you expected, and why, in a sentence.")
]
DEFAULT_FOLDER = Path("research")


@app.command("init")
def initialise(
    train: Annotated[Path, typer.Option("--train", metavar="RUNS", help="Folder of run folders to work on.")],
    diagnostic: Annotated[
        Path | None, typer.Option("--diagnostic", metavar="RUNS", help="Runs to look at, never judged by.")
    ] = None,
    test: Annotated[
        Path | None, typer.Option("--test", metavar="RUNS", help="Runs to seal: `hops research test` alone reads them.")
    ] = None,
    editable: Annotated[
        list[str] | None, typer.Option("--editable", metavar="PATH", help="What may be changed; default: the model.")
    ] = None,
    evaluate: Annotated[
        str, typer.Option("--evaluate", metavar="COMMAND", help="Evaluation command; default: cross-validate.")
    ] = "",
    tests: Annotated[str, typer.Option("--tests", metavar="COMMAND", help="Test command; default: pytest.")] = "",
    variant: Annotated[str, typer.Option("--variant", help="Variant of the report to judge.")] = "calibrated",
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Make a research folder: splits, tolerances, and the figures of the model as committed."""
    import shlex

    from hops.research.folder import DEFAULT_EDITABLE, DEFAULT_EVALUATE, DEFAULT_TESTS, Data, ResearchSettings
    from hops.research.loop import initialise as make
    from hops.research.scores import figures_text

    settings = ResearchSettings(
        repository="..",
        data=Data(train=_resolved(train), diagnostic=_resolved(diagnostic), test=_resolved(test)),
        variant=variant,
        editable=tuple(editable) if editable else DEFAULT_EDITABLE,
        evaluate=tuple(shlex.split(evaluate)) if evaluate else DEFAULT_EVALUATE,
        tests=tuple(shlex.split(tests)) if tests else DEFAULT_TESTS,
    )
    made = make(folder, settings)
    typer.echo(f"baseline: {figures_text(made.golden().figures)}")
    typer.echo(f"wrote {folder}; look at {folder / 'research.toml'}; next: hops research observe")


@app.command()
def observe(
    split: Annotated[Literal["train", "diagnostic"], typer.Option("--split", help="Which runs.")] = "train",
    folder: FolderOption = DEFAULT_FOLDER,
) -> None:
    """Show the largest contributors to the error, by term, group and run, as Markdown."""
    from hops.research.by_hand import observation

    typer.echo(observation(_open(folder), split), nl=False)


@app.command()
def check(folder: FolderOption = DEFAULT_FOLDER, *, as_json: JsonOption = False) -> None:
    """Judge your worktree against the golden baseline. Exit code 1 if it does not pass."""
    from dataclasses import asdict

    from hops.cli.console import show_json
    from hops.research.by_hand import check as judge
    from hops.research.scores import figures_text

    checked = judge(_open(folder))
    if as_json:
        show_json({"passes": not checked.reasons, **asdict(checked)})
    else:
        typer.echo(f"before: {figures_text(checked.before)}")
        if checked.after:
            typer.echo(f"now:    {figures_text(checked.after)}")
        for reason in checked.reasons:
            typer.echo(f"- {reason}")
        typer.echo("does not pass" if checked.reasons else "passes; next: hops research accept -m HYPOTHESIS")
    if checked.reasons:
        raise typer.Exit(1)


@app.command()
def accept(message: HypothesisOption, folder: FolderOption = DEFAULT_FOLDER) -> None:
    """Commit your change if it passes, move the golden baseline, log it. Exit code 1 if it does not pass."""
    from hops.research.by_hand import accept as decide
    from hops.research.scores import figures_text

    checked = decide(_open(folder), message)
    typer.echo(f"accepted; before: {figures_text(checked.before)}\n          after:  {figures_text(checked.after)}")


@app.command()
def reject(message: HypothesisOption, folder: FolderOption = DEFAULT_FOLDER) -> None:
    """Log your change as rejected and restore the tree; git keeps what you had."""
    from hops.research.by_hand import reject as decide

    rejected = decide(_open(folder), message)
    typer.echo(f"rejected and restored; what you had is in git: git show {rejected.snapshot[:12]}")


@app.command()
def log(
    folder: FolderOption = DEFAULT_FOLDER,
    journal: Annotated[
        Path | None, typer.Option("--journal", metavar="FILE", help="A journal file instead of the folder's.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of the terminal.")
    ] = None,
    *,
    markdown: Annotated[bool, typer.Option("--markdown", help="As a Markdown page with all details.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what was tried, with its figures."""
    import json
    from dataclasses import asdict

    from hops.errors import UsageError
    from hops.files import atomic_write
    from hops.research.journal import KIND_OF, Journal, render_lines, render_log

    if journal is not None and not journal.is_file():
        raise UsageError(f"--journal: {journal} is no file")
    entries = (_open(folder).journal if journal is None else Journal(journal)).entries()
    if as_json:
        text = json.dumps([{"kind": KIND_OF[type(each)], **asdict(each)} for each in entries], indent=2) + "\n"
    else:
        text = render_log(entries) if markdown else render_lines(entries)
    if output is None:
        typer.echo(text, nl=False)
        return
    with atomic_write(output) as out:
        out.write(text)
    typer.echo(f"wrote {output}")


@app.command("test")
def sealed_test(
    source: Annotated[
        Path | None, typer.Option("--from", metavar="RUNS", help="Where the sealed runs are now, if they were moved.")
    ] = None,
    folder: FolderOption = DEFAULT_FOLDER,
    *,
    as_json: JsonOption = False,
) -> None:
    """Score the committed model on the sealed test split: counted, and suite figures only."""
    from dataclasses import asdict

    from hops.cli.console import show_json
    from hops.research.scores import figures_text
    from hops.research.sealed_test import run_sealed_test

    tested = run_sealed_test(_open(folder), source)
    if as_json:
        show_json(asdict(tested))
    else:
        typer.echo(f"test no. {tested.count}, {tested.runs} runs: {figures_text(tested.figures)}")


@app.command()
def run(
    agent: Annotated[str, typer.Option("--agent", metavar="COMMAND", help="The agent, run by sh; prompt on stdin.")],
    iterations: Annotated[int, typer.Option("--iterations", "-n", min=1, help="Attempts to decide.")] = 1,
    timeout_s: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Per agent; default: research.toml's.")
    ] = None,
    folder: FolderOption = DEFAULT_FOLDER,
    *,
    quiet: QuietOption = False,
) -> None:
    """Let an agent try: it works in a worktree of its own, passes the gates or is undone; goes on after a crash.

    Exit code 0 if an attempt was accepted, 1 if none was.
    """
    from hops.research.loop import run_loop

    outcome = run_loop(
        _open(folder), agent, iterations, limit_s=timeout_s, tell=(lambda _: None) if quiet else typer.echo
    )
    if not quiet:
        typer.echo(f"{outcome.attempts} attempts, {outcome.accepted} accepted")
    if not outcome.accepted:
        raise typer.Exit(1)


def _open(folder: Path) -> "Folder":
    from hops.research.folder import Folder

    return Folder.open(folder)


def _resolved(path: Path | None) -> str:
    return "" if path is None else str(path.resolve())
