"""`hops show`: the spec with every default written out."""

import typer

from hops.cli.options import JsonOption, SetOption, SpecArgument


def show(spec: SpecArgument, overrides: SetOption = None, *, as_json: JsonOption = False) -> None:
    """Print the fully resolved spec, every default visible; it loads back to the same run.

    Beside what is open (null, balanced) stands, as a comment, what it comes out as.
    """
    from hops.api import load
    from hops.api.inferred import inferred
    from hops.cli.console import show_json
    from hops.config.text import dump

    loaded = load(spec, overrides or ())
    if as_json:
        show_json(loaded.model_dump(mode="json"))
    else:
        typer.echo(dump(loaded, inferred(loaded)), nl=False)
