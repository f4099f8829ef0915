"""The shell's own commands, as far as they change what a script's variables hold or what it prints."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hops.importers.shell.conditions import Truth, decide_words
from hops.importers.shell.values import Array, is_known

if TYPE_CHECKING:
    from hops.importers.shell.walk import Walk

_IDLE = frozenset({
    "alias", "bg", "bind", "builtin", "cd", "clear", "complete", "conda", "date", "deactivate", "dirs", "disown",
    "enable", "fg", "hash", "hostname", "jobs", "mamba", "mkdir", "ml", "module", "nvidia-smi", "popd", "pushd",
    "pwd", "rm", "shopt", "sleep", "spack", "times", "tput", "trap", "type", "ulimit", "umask", "unalias", "wait",
})  # fmt: skip
Builtin = Callable[["Walk", Sequence[str]], Truth]


def run_builtin(walk: "Walk", words: Sequence[str]) -> tuple[bool, Truth]:
    """Whether this is one of them, and its success; None: only the run knows."""
    name, arguments = words[0], words[1:]
    if name in _BUILTINS:
        return True, _BUILTINS[name](walk, arguments)
    if name in _IDLE:
        if walk.prints:
            walk.print(walk.unknown(f"is the output of `{name}` (line {walk.line})"))
        return True, None
    return False, None


def _echo(walk: "Walk", arguments: Sequence[str]) -> Truth:
    options = next((at for at, each in enumerate(arguments) if not re.fullmatch(r"-[neE]+", each)), len(arguments))
    flags = "".join(arguments[:options])
    text = " ".join(arguments[options:])
    walk.print((_escaped(text) if "e" in flags else text) + ("" if "n" in flags else "\n"))
    return True


def _escaped(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\t", "\t")


def _printf(walk: "Walk", arguments: Sequence[str]) -> Truth:
    if arguments[:1] == ["-v"] and len(arguments) > 2:
        walk.assign(arguments[1], _formatted(arguments[2], arguments[3:]), walk.line)
    elif arguments:
        rest = arguments[1:] if arguments[0] == "--" else arguments
        walk.print(_formatted(rest[0], rest[1:]) if rest else "")
    return True


def _formatted(form: str, values: Sequence[str]) -> str:
    """%s and %d (widths as written in a launch are not needed); the form repeats while values are left."""
    form = _escaped(form)
    slots = len(re.findall(r"%-?\d*[sdq]", form))
    out, left = [], list(values)
    while True:
        taken = iter(left[:slots] + [""] * (slots - len(left)))
        out.append(re.sub(r"%-?\d*[sdq]", lambda _: next(taken), form).replace("%%", "%"))  # noqa: B023
        left = left[slots:]
        if not left or not slots:
            return "".join(out)


def _set(walk: "Walk", arguments: Sequence[str]) -> Truth:
    if "--" in arguments:
        walk.state.arguments = tuple(arguments[list(arguments).index("--") + 1 :])
    elif arguments and arguments[0][:1] not in {"-", "+"}:
        walk.state.arguments = tuple(arguments)
    return True


def _shift(walk: "Walk", arguments: Sequence[str]) -> Truth:
    count = int(arguments[0]) if arguments and arguments[0].isdigit() and len(arguments[0]) < 9 else 1
    if count > len(walk.state.arguments):
        return False
    walk.state.arguments = walk.state.arguments[count:]
    return True


def _read(walk: "Walk", arguments: Sequence[str]) -> Truth:
    names, ends, array, skip = [], "\n", False, ""
    for each in arguments:
        if skip:
            ends, skip = (each if skip == "d" else ends), ""
        elif each.startswith("-") and len(each) > 1:
            array = array or "a" in each
            skip = each[-1] if each[-1] in "dpntuiN" else ""
            if each.startswith("-d") and len(each) > 2:
                ends = each[2:3]
        else:
            names.append(each)
    text = walk.stdin.split(ends[:1], maxsplit=1)[0] if ends else walk.stdin
    if array and names:
        walk.assign(names[0], Array({str(at): each for at, each in enumerate(text.split())}), walk.line)
        return None
    parts = text.strip().split(maxsplit=max(len(names) - 1, 0)) if len(names) > 1 else [text.strip("\n")]
    for at, name in enumerate(names or ["REPLY"]):
        if re.fullmatch(r"[A-Za-z_]\w*", name):
            known = walk.stdin != "" or not ends
            value = parts[at] if at < len(parts) and known else walk.unknown(f"is read at run time (line {walk.line})")
            walk.assign(name, value if at < len(parts) or not known else "", walk.line)
    return True if ends and walk.stdin else None


def _mapfile(walk: "Walk", arguments: Sequence[str]) -> Truth:
    name = next((each for each in reversed(arguments) if re.fullmatch(r"[A-Za-z_]\w*", each)), "MAPFILE")
    texts = walk.stdin.splitlines() if walk.stdin else [walk.unknown(f"is read at run time (line {walk.line})")]
    walk.assign(name, Array({str(at): each for at, each in enumerate(texts)}), walk.line)
    return True


def _let(walk: "Walk", arguments: Sequence[str]) -> Truth:
    values = [walk.expander.arithmetic(each, walk.line) for each in arguments]
    return None if not values or not is_known(values[-1]) else values[-1] != "0"


def _test(walk: "Walk", arguments: Sequence[str]) -> Truth:
    return decide_words(list(arguments), walk.expander)


def _getopts(walk: "Walk", _arguments: Sequence[str]) -> Truth:
    return None if walk.state.arguments else False


def _cat(walk: "Walk", arguments: Sequence[str]) -> Truth:
    files = [each for each in arguments if not each.startswith("-")]
    for each in files:
        missing = walk.unknown(f"is the content of {walk.shown(each)} (line {walk.line})")
        walk.print(walk.state.files.get(each, missing))
    if not files:
        walk.print(walk.stdin)
    return None


def _bc(walk: "Walk", _arguments: Sequence[str]) -> Truth:
    if re.fullmatch(r"[\d\s+*/%()-]{1,200}", walk.stdin):
        walk.print(walk.expander.arithmetic(re.sub(r"\b0+(?=\d)", "", walk.stdin.strip()), walk.line) + "\n")
    else:
        walk.print(walk.unknown(f"is the output of `bc` (line {walk.line})"))
    return True


def _expr(walk: "Walk", arguments: Sequence[str]) -> Truth:
    text = " ".join(arguments)
    if re.fullmatch(r"[\d\s+*/%()-]{1,200}", text) and text.strip():
        walk.print(walk.expander.arithmetic(text, walk.line) + "\n")
    else:
        walk.print(walk.unknown(f"is the output of `expr` (line {walk.line})"))
    return True


def _seq(walk: "Walk", arguments: Sequence[str]) -> Truth:
    if not all(re.fullmatch(r"-?\d{1,6}", each) for each in arguments) or not 1 <= len(arguments) <= 3:
        walk.print(walk.unknown(f"is the output of `seq` (line {walk.line})"))
        return None
    numbers = [int(each) for each in arguments]
    first = numbers[0] if len(numbers) > 1 else 1
    step = numbers[1] if len(numbers) == 3 else 1
    every = range(first, numbers[-1] + (1 if step > 0 else -1), step) if step else range(0)
    walk.print("".join(f"{each}\n" for each in every[:1000]))
    return True


def _xargs(walk: "Walk", arguments: Sequence[str]) -> Truth:
    known = not arguments
    walk.print(
        " ".join(walk.stdin.split()) + "\n" if known else walk.unknown(f"is the output of `xargs` (line {walk.line})")
    )
    return None


def _tr(walk: "Walk", arguments: Sequence[str]) -> Truth:
    plain = [_escaped(each) for each in arguments]
    if len(plain) == 2 and plain[0] == "-d" and len(plain[1]) == 1:
        walk.print(walk.stdin.replace(plain[1], ""))
    elif len(plain) == 2 and len(plain[0]) == len(plain[1]) == 1:
        walk.print(walk.stdin.replace(plain[0], plain[1]))
    else:
        walk.print(walk.unknown(f"is the output of `tr` (line {walk.line})"))
    return True


def _yes(_walk: "Walk", _arguments: Sequence[str]) -> Truth:
    return True


def _no(_walk: "Walk", _arguments: Sequence[str]) -> Truth:
    return False


_BUILTINS: dict[str, Builtin] = {
    ":": _yes, "true": _yes, "false": _no, "echo": _echo, "printf": _printf, "set": _set, "shift": _shift,
    "read": _read, "mapfile": _mapfile, "readarray": _mapfile, "let": _let, "test": _test, "[": _test,
    "getopts": _getopts, "cat": _cat, "bc": _bc, "expr": _expr, "seq": _seq, "xargs": _xargs, "tr": _tr,
}  # fmt: skip
