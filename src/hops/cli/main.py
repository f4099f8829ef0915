"""The `hops` command: finds the command, and turns every HopsError into a message and an exit code."""

import sys

import typer

from hops.cli import (
    bench,
    calibrate,
    compare,
    diagnose,
    draw,
    explain,
    export,
    goodput,
    importing,
    listing,
    plan,
    rehearse,
    report,
    research,
    run,
    schedule,
    sweep,
    trace,
)
from hops.cli.group import HopsGroup
from hops.errors import HopsError, SpecError

EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="hops",
    cls=HopsGroup,
    help="Predict, plan and explain pipeline-parallel LLM training on mixed GPUs.",
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(*, value: bool) -> None:
    if value:
        from hops import __version__
        from hops.cli.version import commit

        known = commit()
        typer.echo(f"hops {__version__} ({known})" if known else f"hops {__version__}")
        raise typer.Exit


WISHES = """\
hops: predicts, plans and explains pipeline-parallel LLM training on mixed GPUs

  hops init spec.yaml         start: a commented spec to fill in
  hops view spec.yaml         see: simulate it and look at it in the browser
  hops plan spec.yaml         choose: layers, order of devices, schedule
  hops trace show RUN         understand: a run that was measured

hops --help lists all commands, hops COMMAND --help says how each works."""


@app.callback(invoke_without_command=True)
def _hops(
    context: typer.Context,
    *,
    version: bool = typer.Option(  # noqa: ARG001 (its callback does all)
        False, "--version", callback=_version, is_eager=True, help="Show version and commit."
    ),
) -> None:
    """Exit codes: 0 it worked, 1 the answer is no (does not fit, stalls), 2 wrong usage or spec."""
    if context.invoked_subcommand is None:
        typer.echo(WISHES)


app.command("run")(run.run)
app.command("compare")(compare.compare)
app.command("sweep")(sweep.sweep)
app.command("report")(report.report)
app.command("view")(report.view)
app.command("draw")(draw.draw)
app.command("explain")(explain.explain)
app.command("fit")(explain.fit)
app.command("plan")(plan.plan)
app.command("goodput")(goodput.goodput)
app.command("whatif")(diagnose.whatif)
app.command("stragglers")(diagnose.stragglers)
app.command("calibrate")(calibrate.calibrate)
app.command("validate")(calibrate.validate)
app.command("export")(export.export)
app.command("rehearse")(rehearse.rehearse)
app.command("init")(listing.init)
app.command("show")(listing.show)
app.command("schema")(listing.schema)
app.add_typer(listing.app, name="list", cls=HopsGroup)
app.add_typer(schedule.app, name="schedule", cls=HopsGroup)
app.add_typer(bench.app, name="bench", cls=HopsGroup)
app.add_typer(importing.app, name="import", cls=HopsGroup)
app.add_typer(research.app, name="research", cls=HopsGroup)
app.add_typer(trace.app, name="trace", cls=HopsGroup)
app.add_typer(goodput.app, name="faults", cls=HopsGroup)


def main() -> None:
    """Run the command line; never ends in a traceback for what a user can get wrong."""
    try:
        app()
    except HopsError as error:
        # lines that begin with file:line:column stay clickable in editors and terminals
        sys.stderr.write(f"{error}\n" if isinstance(error, SpecError) else f"error: {error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone, such as `head`
        sys.exit(1)
