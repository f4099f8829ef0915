"""`hops export`: a spec or plan in the words of the runtime that shall run it."""

from pathlib import Path
from typing import Annotated

import typer

from hops.cli.console import JsonOption, QuietOption, SetOption

FOLDER_OF_PLANS = "plan-1.yaml"  # what `hops plan --output` calls its best plan


def export(
    runtime: Annotated[str, typer.Argument(metavar="RUNTIME", help="torch, torchtitan, megatron or program.")],
    spec: Annotated[
        Path,
        typer.Argument(metavar="SPEC", help="The spec, or a folder of `hops plan`, whose best plan is taken."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to write.")],
    overrides: SetOption = None,
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the order, cut and placement of a spec as files that a runtime takes.

    torch: schedule CSV, compute-only and with communication. torchtitan: schedule CSV and keys. megatron: flags.
    program: HOPS's own text form. What the runtime cannot run is refused, with the reason.
    """
    from hops.cli.console import show, show_json
    from hops.exporters import EXPORTERS, launchable
    from hops.exporters.base import write
    from hops.spec.load import load

    exporter = EXPORTERS.get(runtime)()
    path = spec / FOLDER_OF_PLANS if spec.is_dir() else spec
    exported = exporter.export(launchable(load(path, overrides or ()), path.name))
    written = write(exported, output)
    if as_json:
        show_json({"files": [str(each) for each in written], "notes": list(exported.notes)})
    elif not quiet:
        show(*(f"wrote {each}" for each in written), *exported.notes)
