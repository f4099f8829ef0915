"""Arguments and options that several commands share, so that they mean and read the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

SpecArgument = Annotated[
    Path, typer.Argument(metavar="SPEC", help="The spec file (see `hops init`).", show_default=False)
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the spec, such as pipeline.microbatches=16."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
JobsOption = Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Processes that work at once.")]
