"""`hops schedule`: look at a schedule's program, check a program of your own."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hops.cli.options import JsonOption
from hops.cli.search import search

if TYPE_CHECKING:
    from hops.schedule import Program

app = typer.Typer(help="Show, check and search schedules as programs.", no_args_is_help=True)
app.command("search")(search)
Ranks = Annotated[int, typer.Option("--ranks", "-p", min=1, max=4096, help="Ranks of the pipeline.")]
Microbatches = Annotated[
    int, typer.Option("--microbatches", "-m", min=1, max=65536, help="Microbatches per iteration.")
]

_WIDTH = 100  # of the grid where the output is no terminal
_LEGEND = "F forward, B backward, I and W its halves (inputs, weights); .: idle"
_LEGEND_OF_CHUNKS = "\nlower case: a rank's second chunk (upper case again on its third, and so on)"


@app.command("show")
def show_schedule(
    name: Annotated[
        str, typer.Argument(metavar="SCHEDULE", help="A name from `hops list schedules`, or a program file.")
    ],
    ranks: Ranks = 4,
    microbatches: Microbatches = 8,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the schedule, such as chunks=4."),
    ] = None,
    *,
    as_program: Annotated[bool, typer.Option("--program", help="Print the program file instead of a grid.")] = False,
) -> None:
    """Print a schedule as a grid over time (F, I and W take 1 ms, messages no time), one row per rank."""
    from shutil import get_terminal_size

    from hops.schedule import Profile
    from hops.schedule.evaluate import evaluate
    from hops.schedule.show import grid

    program = load_program(name, ranks, microbatches, parameters or [])
    if as_program:
        typer.echo(str(program))
        return
    evaluation = evaluate(program, Profile.uniform(program.shape, f=1e-3, i=1e-3, w=1e-3))
    typer.echo(grid(program, evaluation, width=get_terminal_size((_WIDTH, 0)).columns))
    typer.echo(_LEGEND + (_LEGEND_OF_CHUNKS if program.shape.num_stages > program.shape.num_ranks else ""))


@app.command()
def check(
    path: Annotated[Path, typer.Argument(metavar="PROGRAM", help="A program file.")], *, as_json: JsonOption = False
) -> None:
    """Check a program: complete, on the right ranks, in a possible order, without deadlock."""
    from hops.cli.console import show_json
    from hops.schedule import Profile, Program
    from hops.schedule.evaluate import evaluate

    program = Program.load(path)
    program.check()
    found = evaluate(program, Profile.uniform(program.shape))
    if as_json:
        show_json(
            {
                "ranks": program.shape.num_ranks,
                "stages": program.shape.num_stages,
                "microbatches": program.shape.num_microbatches,
                "actions": program.num_actions,
                "peak_in_flight": found.peak_in_flight,
            }
        )
        return
    typer.echo(
        f"{path}: {program.num_actions} actions on {program.shape.num_ranks} ranks can run; most microbatches in "
        f"flight per rank: {' '.join(map(str, found.peak_in_flight))}"
    )


def load_program(name: str, ranks: int, microbatches: int, parameters: Sequence[str]) -> "Program":
    """The program of a named schedule with uniform times, or of a file."""
    from hops.config.schedule import ScheduleChoice
    from hops.errors import UsageError
    from hops.schedule import Profile, Program, StaticScheduler

    if Path(name).is_file():
        program = Program.load(Path(name))
        program.check()
        return program
    choice = ScheduleChoice.model_validate({"name": name, **dict(map(_parameter, parameters))})
    problems = [": ".join([*map(str, each.path), each.what]) for each in choice.complaints()]
    if problems:
        raise UsageError("\n".join(problems))
    scheduler = choice.make()
    if not isinstance(scheduler, StaticScheduler):
        raise UsageError(f"{name} is a policy: it decides during the run and has no program; see it with hops run")
    scheduler.configure(Profile.uniform(scheduler.shape(ranks, microbatches)))
    return scheduler.program


def _parameter(text: str) -> tuple[str, object]:
    from hops.errors import UsageError

    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"--set: got {text!r}, expected KEY=VALUE, such as chunks=4")
    try:
        return key, int(value)
    except ValueError:
        return key, {"true": True, "false": False}.get(value, value)
