"""Commands of a script: functions and other scripts are followed, the rest is written down."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hops.errors import UsageError
from hops.importers.shell.builtins import run_builtin
from hops.importers.shell.commands import Command
from hops.importers.shell.flow import MAX_NESTED, Flow, Handler, short
from hops.importers.shell.grammar import MAX_BYTES, line_of, source
from hops.importers.shell.values import is_known, without_marks

if TYPE_CHECKING:
    from tree_sitter import Node

    from hops.importers.shell.walk import Walk

_SHELLS = {"bash", "sh", "zsh", "dash", "ksh"}
_ACTIVATIONS = re.compile(
    r"(^|/)(activate|\.?bashrc|\.?bash_profile|\.?profile|conda\.sh|lmod|modules\.sh|bash|functions)$"
)
_RUNNERS = frozenset({
    "apptainer", "bsub", "docker", "enroot", "env", "exec", "mpiexec", "mpirun", "nice", "nohup", "numactl", "pdsh",
    "podman", "qsub", "salloc", "sbatch", "setsid", "singularity", "srun", "ssh", "stdbuf", "sudo", "time",
    "timeout", "torchrun",
})  # commands whose arguments may be a command  # fmt: skip


def function_definition(walk: "Walk", node: "Node") -> Flow:
    name = next(child for child in node.children if child.type == "word")
    walk.state.functions[source(name)] = (node.children[-1], walk.expander.where)
    return Flow.GO_ON


def _call(walk: "Walk", name: str, arguments: Sequence[str]) -> Flow:
    body, where = walk.state.functions[name]
    walk.nested += 1
    if walk.nested > MAX_NESTED:
        raise UsageError(f"{where}: functions call each other more than {MAX_NESTED} deep")
    outer, outer_where = walk.state.arguments, walk.expander.where
    locals_before = {each: walk.state.variables.get(each) for each in _locals(body)}
    before = len(walk.left)
    walk.state.arguments, walk.expander.where = tuple(arguments), where
    flow = walk.statement(body, walk.stdin)
    walk.rejoin(before, {Flow.RETURN}, f"in {name}", alive=flow is not Flow.EXIT)
    walk.state.arguments, walk.expander.where = outer, outer_where
    for each, value in locals_before.items():
        if value is None:
            walk.state.variables.pop(each, None)
        else:
            walk.state.variables[each] = value
    walk.nested -= 1
    return flow if flow is Flow.EXIT else Flow.GO_ON


def command(walk: "Walk", node: "Node") -> Flow:
    line = walk.line = line_of(node)
    settings, words = _parts(walk, node)
    for child in node.children:
        if child.type == "herestring_redirect":
            walk.stdin = walk.expander.text(child.children[-1]) + "\n"
    if not words:
        for name, value in settings.items():
            walk.assign(name, value, line)
        return Flow.GO_ON
    texts = [text for text, _ in words]
    name, arguments = texts[0], texts[1:]
    if name in {"exit", "return", "break", "continue"}:
        return {"exit": Flow.EXIT, "return": Flow.RETURN, "break": Flow.BREAK, "continue": Flow.CONTINUE}[name]
    if name in walk.state.functions:
        return _call(walk, name, arguments)
    if name == "eval":
        return walk.run(" ".join(arguments))
    if name in {"source", "."} and arguments:
        return _source(walk, arguments[0])
    if name in {"time", "command", "exec", "nohup", "sudo"} and len(words) > 1 and texts[1] in walk.state.functions:
        return _call(walk, texts[1], texts[2:])
    known, walk.success = run_builtin(walk, texts)
    if known or _nested_script(walk, texts):
        return Flow.GO_ON
    if walk.prints:
        walk.print(walk.unknown(f"is the output of `{short(node)}` (line {line})"))
    walk.commands.append(Command(
        words=tuple(texts), bare=tuple(bare for _, bare in words), launcher=walk.launcher,
        where=f"{walk.expander.where}:{line}", only_if=tuple(walk.tests), settings=settings,
    ))  # fmt: skip
    walk.success = None
    return Flow.GO_ON


def _parts(walk: "Walk", node: "Node") -> tuple[Mapping[str, str], list[tuple[str, bool]]]:
    settings: dict[str, str] = {}
    words = []
    for child in node.children:
        if child.type == "variable_assignment":
            last = child.children[-1]
            settings[source(child.children[0])] = "" if last.type == "=" else walk.expander.text(last)
        elif not child.type.endswith("redirect"):
            words += walk.expander.words([child])
    return settings, words


def _source(walk: "Walk", name: str) -> Flow:
    text = _file(walk, name)
    walk.success = True
    if text is not None:
        flow = walk.run(text, where=name)
        return Flow.GO_ON if flow is Flow.RETURN else flow
    if not _ACTIVATIONS.search(name) and name != "/dev/null":
        walk.knowledge.unread.append(f"{walk.shown(name)} (line {walk.line})")
    return Flow.GO_ON


def _file(walk: "Walk", name: str) -> str | None:
    """A file that the script wrote itself, or that lies beside it."""
    if name in walk.state.files:
        return walk.state.files[name]
    folder = walk.knowledge.given.folder
    beside = re.sub(r"^.*[^\x20-\x7e]/", "", name)  # $(dirname $0)/env.sh
    if folder is None or not beside or not is_known(beside) or beside.startswith(("/", "~")):
        return None
    file = folder / Path(beside)
    try:
        small = file.is_file() and file.stat().st_size <= MAX_BYTES
        return without_marks(file.read_text(encoding="utf-8")) if small else None
    except (OSError, UnicodeDecodeError, ValueError):
        return None


def _nested_script(walk: "Walk", words: Sequence[str]) -> bool:
    """Walk what a command hands to another shell: `bash -c TEXT`, `srun sh run.sh`, `ssh host TEXT`, `bash <<EOF`."""
    runs = words[0].rsplit("/", 1)[-1] in _RUNNERS
    for at, word in enumerate(words if runs else words[:1]):
        if word.rsplit("/", 1)[-1] in _SHELLS:
            rest = words[at + 1 :]
            option = next((number for number, each in enumerate(rest) if re.fullmatch(r"-[a-z]*c", each)), None)
            if option is not None and option + 1 < len(rest):
                return _aside_run(walk, rest[option + 1], rest[option + 3 :], words[:at])
            scripts = [number for number, each in enumerate(rest) if not each.startswith("-")]
            if not scripts and walk.stdin:
                return _aside_run(walk, walk.stdin, (), words[:at])
            if scripts and (text := _file(walk, rest[scripts[0]])) is not None:
                return _aside_run(walk, text, rest[scripts[0] + 1 :], words[:at], rest[scripts[0]])
            return False
        text = _file(walk, word) if word.endswith(".sh") or word in walk.state.files else None
        if text is not None:
            return _aside_run(walk, text, words[at + 1 :], words[:at], word)
        if word.endswith(".py") and " " not in word:
            return False
    if runs and words[-1].count(" ") > 1 and re.search(r"\.py\b", words[-1]):
        return _aside_run(walk, words[-1], (), words[:-1])
    return False


def _aside_run(walk: "Walk", text: str, arguments: Sequence[str], launcher: Sequence[str], where: str = "") -> bool:
    before = walk.launcher
    walk.launcher = (*before, *launcher)
    if walk.prints:
        walk.prints.append([])
    with walk.aside():
        walk.state.arguments = tuple(arguments)
        walk.run(text, where=where)
    if walk.prints:
        walk.prints.pop()
        walk.print(walk.unknown("is the output of another shell"))
    walk.launcher = before
    return True


def _locals(body: "Node") -> list[str]:
    """Names that a function declares for itself."""
    found = []
    waiting = [body]
    while waiting:
        node = waiting.pop()
        if node.type == "declaration_command" and source(node.children[0]) in {"local", "declare", "typeset"}:
            parts = [part for part in node.children[1:] if part.type in {"variable_assignment", "variable_name"}]
            found += [source(part.children[0] if part.type == "variable_assignment" else part) for part in parts]
        waiting.extend(node.children)
    return found


HANDLERS: Mapping[str, Handler] = {
    "function_definition": function_definition,
    "command": command,
}
