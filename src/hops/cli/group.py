"""Groups of commands, in which `--json` may be followed by a file for what it would print."""

from contextvars import ContextVar
from pathlib import Path
from typing import Any

from typer.core import TyperGroup

from hops.errors import UsageError

JSON_FILE: ContextVar[Path | None] = ContextVar("json_file", default=None)


class HopsGroup(TyperGroup):
    """A group whose commands take `--json`, `--json=FILE` and `--json FILE.json`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, TyperGroup):
            rest, file = _split(command, rest)
            JSON_FILE.set(file)
        return name, command, rest


def _split(command: Any, args: list[str]) -> tuple[list[str], Path | None]:
    """The arguments with a bare `--json`, and the file that followed it.

    A name after `--json` that ends in .json may also be what the command reads (a profile, a trace). It is the output
    if the command has all that it needs without it. Raises UsageError where both are possible.
    """
    if not any("--json" in each.opts and each.is_flag for each in command.params if each.param_type_name == "option"):
        return args, None  # it has no such option, or one that takes a file by itself
    end = args.index("--") if "--" in args else len(args)
    for place, arg in enumerate(args[:end]):
        if arg.startswith("--json="):
            return [*args[:place], "--json", *args[place + 1 :]], Path(arg.removeprefix("--json="))
        if arg == "--json" and place + 1 < end and args[place + 1].endswith(".json"):
            file, others = args[place + 1], [*args[: place + 1], *args[place + 2 :]]
            if not _is_complete(command, others):
                return args, None
            if Path(file).exists() and any(each.nargs == -1 for each in command.params):
                raise UsageError(f"{file}: is it what to read, or where to write? For output write --json={file}")
            return others, Path(file)
    return args, None


def _is_complete(command: Any, args: list[str]) -> bool:
    """Whether no argument that the command must have is missing."""
    context = command.context_class(command, info_name=command.name, resilient_parsing=True)  # raises nothing
    found, _, _ = command.make_parser(context).parse_args(args=list(args))
    needed = (each for each in command.params if each.param_type_name == "argument" and each.required)
    return all(found.get(each.name) for each in needed)
