"""What a script knows at one point of it: variables, arguments, functions and the files it wrote itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hops.errors import UsageError
from hops.importers.shell.commands import Given
from hops.importers.shell.values import Array, Unknown, Unknowns, Value, is_known

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_STEPS = 20_000  # statements walked and texts built: a launch script needs some hundreds
_MAX_TEXT = 1 << 20
EVERYWHERE = frozenset({
    "BASHPID", "BASH_SOURCE", "BASH_VERSION", "EPOCHSECONDS", "EUID", "FUNCNAME", "HOME", "HOST", "HOSTNAME", "IFS",
    "LANG", "LINENO", "LOGNAME", "OLDPWD", "OSTYPE", "PATH", "PPID", "PWD", "RANDOM", "SECONDS", "SHELL", "SRANDOM",
    "TERM", "TMPDIR", "UID", "USER",
})  # set in any shell, known only when it runs  # fmt: skip


@dataclass(slots=True)
class ShellState:
    """Copied where a test is undecided, so that both cases can be walked."""

    variables: dict[str, Value] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)  # where each was last set
    arguments: tuple[str, ...] = ()
    functions: dict[str, tuple["Node", str]] = field(default_factory=dict)  # body and file
    files: dict[str, str] = field(default_factory=dict)

    def copy(self) -> "ShellState":
        return ShellState(
            dict(self.variables), dict(self.lines), self.arguments, dict(self.functions), dict(self.files)
        )


class Knowledge:
    """What holds for the whole walk: the caller's values, unknown parts, limits."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self.asked: set[str] = set()  # names of given values that were taken
        self.unknowns = Unknowns()
        self.unread: list[str] = []  # sourced files that were not there
        self.in_slurm = False
        self._steps = 0

    def step(self, where: str, text: str = "") -> None:
        """Count a statement or a text. Raises UsageError where a script does too much to be walked."""
        self._steps += 1
        if self._steps > _MAX_STEPS or len(text) > _MAX_TEXT:
            raise UsageError(
                f"{where}: takes more than {_MAX_STEPS} steps or {_MAX_TEXT} characters to follow; give the flags "
                "themselves with --flags"
            )

    def given_value(self, name: str) -> str | None:
        """What the caller stated for a variable or, by its number, for an argument."""
        if name in self.given.values:
            self.asked.add(name)
            return self.given.values[name]
        return None

    def unset(self, name: str) -> str:
        """The mark of a variable that nothing has set."""
        if name in EVERYWHERE or (self.in_slurm and name.startswith("SLURM_")):
            return self.unknowns.mark(Unknown(why="is known only when the script runs", name=name))
        if self.unread:
            why = f"is set nowhere here, but perhaps in {' or '.join(self.unread)}, which is not here"
            return self.unknowns.mark(Unknown(why=why, name=name))
        return self.unknowns.mark(Unknown(why="is set nowhere in the script", name=name, unset=True))

    def assign(self, state: ShellState, name: str, value: Value, line: int) -> None:
        """Set a variable; where the script's own value is not known, a value that the caller stated holds."""
        self.step(f"line {line}", value if isinstance(value, str) else "".join(value.items.values()))
        state.lines[name] = line
        if isinstance(value, str) and not is_known(value):
            stated = self.given_value(name)
            value = stated if stated is not None else self._named(value, name)
        state.variables[name] = value

    def member(self, text: str) -> str:
        """A bare word that becomes a member of an array: if it is a variable that is not set, it may be no member."""
        found = self.unknowns.among(text)
        if len(text) == len(found) == 1 and found[0].unset:
            return self.unknowns.mark(replace(found[0], words=True))
        return text

    def _named(self, text: str, name: str) -> str:
        """The text with its unnamed unknown parts named by the variable that they went into."""
        out = []
        for each in text:
            found = self.unknowns.among(each)
            if found and not found[0].name:
                each = self.unknowns.mark(Unknown(why=found[0].why, name=name, either=found[0].either))  # noqa: PLW2901
            out.append(each)
        return "".join(out)

    def merge(self, states: Sequence[ShellState], test: str) -> ShellState:
        """The state after an undecided test: what differs is unknown."""
        first, *others = states
        if not others:
            return first
        merged = first.copy()
        for other in others:
            for name in [*merged.variables, *(name for name in other.variables if name not in merged.variables)]:
                left, right = merged.variables.get(name), other.variables.get(name)
                if left != right:
                    merged.variables[name] = self._either(name, left, right, test)
            merged.lines |= other.lines
            merged.functions |= other.functions
            merged.files |= other.files
            if merged.arguments != other.arguments:
                why = f"depends on the test `{test}`, which cannot be decided"
                merged.arguments = tuple(
                    self.unknowns.mark(Unknown(why=why, name=str(number + 1)))
                    for number in range(max(len(merged.arguments), len(other.arguments)))
                )
        return merged

    def _either(self, name: str, left: Value | None, right: Value | None, test: str) -> Value:
        stated = self.given_value(name)
        if stated is not None:
            return stated
        why = f"depends on the test `{test}`, which cannot be decided"
        if isinstance(left, Array) and isinstance(right, Array) and not left.named and not right.named:
            before, (one, other), after = _common(left.texts(), right.texts())
            either = (" ".join(one), " ".join(other))
            mark = self.unknowns.mark(Unknown(why=why, name=name, either=either, words=True))
            texts = [*before, mark, *after]
            return Array({str(index): text for index, text in enumerate(texts)})
        if isinstance(left, Array) or isinstance(right, Array):
            shown = tuple(" ".join(each.texts()) if isinstance(each, Array) else each or "" for each in (left, right))
            return self.unknowns.mark(Unknown(why=why, name=name, either=shown))
        start, (one, other), end = _common((left or "").split(" "), (right or "").split(" "))
        mark = self.unknowns.mark(Unknown(why=why, name=name, either=(" ".join(one), " ".join(other))))
        return " ".join([*start, mark, *end])


def _common(left: Sequence[str], right: Sequence[str]) -> tuple[list[str], tuple[list[str], list[str]], list[str]]:
    """What two lists begin with, what differs, and what they end with."""
    most = min(len(left), len(right))
    before = next((at for at in range(most) if left[at] != right[at]), most)
    after = next((at for at in range(most - before) if left[-1 - at] != right[-1 - at]), most - before)
    middle = (list(left[before : len(left) - after]), list(right[before : len(right) - after]))
    return list(left[:before]), middle, list(left[len(left) - after :])
