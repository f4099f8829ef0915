"""`hops init`: a commented spec to start from."""

from pathlib import Path
from typing import Annotated

import typer


def init(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")] = Path("spec.yaml"),
    *,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a commented starter spec."""
    from hops.config.text import starter
    from hops.errors import UsageError
    from hops.files import atomic_write

    if path.exists() and not force:
        raise UsageError(f"{path} exists already; give another name, or --force to replace it")
    with atomic_write(path) as out:
        out.write(starter())
    typer.echo(f"wrote {path}; next: hops run {path}")
