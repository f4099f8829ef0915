"""What a script's variables hold: text, of which parts may be unknown until the script runs.

An unknown part is one character of a private plane of Unicode, so that text with unknown parts can be cut and joined
like any text; `Unknowns` remembers what each of them stands for.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_FIRST = 0xF0000
_MOST = 0xFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """One unknown part.

    Attributes:
        why: such as "the output of `nproc` (line 3)".
        name: the variable by which it came into the script, "" if none; a caller can state it.
        unset: no variable of that name is set: in a shell this is nothing.
        either: what it is in one case or the other, where an undecided test decides.
        words: it stands for members of an array, none or several.
    """

    why: str
    name: str = ""
    unset: bool = False
    either: tuple[str, ...] = ()
    words: bool = False


@dataclass(frozen=True, slots=True)
class Array:
    """An array: text by index, or by name where `named`. Indices may have gaps; they are in rising order."""

    items: Mapping[str, str]
    named: bool = False

    def indices(self) -> list[str]:
        """In the order in which a shell lists them."""
        return list(self.items) if self.named else sorted(self.items, key=int)

    def texts(self) -> list[str]:
        return [self.items[index] for index in self.indices()]


Value = str | Array


class Unknowns:
    """Marks for unknown parts, and what they stand for."""

    def __init__(self) -> None:
        self._known: list[Unknown] = []

    def mark(self, unknown: Unknown) -> str:
        """A character that stands for it."""
        if unknown in self._known:
            return chr(_FIRST + self._known.index(unknown))
        if len(self._known) < _MOST:
            self._known.append(unknown)
        return chr(_FIRST + len(self._known) - 1)

    def among(self, text: str) -> list[Unknown]:
        """The unknown parts of a text."""
        return [self._known[ord(each) - _FIRST] for each in text if is_mark(each)]

    def settled(self, text: str) -> str:
        """The text with variables that are set nowhere as nothing."""
        return "".join(each for each in text if not (is_mark(each) and self._known[ord(each) - _FIRST].unset))

    def printed(self, text: str) -> str:
        """For messages: `$NAME` or `$(...)` in place of marks."""
        return "".join(self._shown(each) if is_mark(each) else each for each in text)

    def _shown(self, mark: str) -> str:
        name = self._known[ord(mark) - _FIRST].name
        return f"${name}" if name else "$(...)"


def is_mark(character: str) -> bool:
    return _FIRST <= ord(character) <= _FIRST + _MOST


def is_known(text: str) -> bool:
    """Whether no part of it is unknown."""
    return not any(is_mark(each) for each in text)


def without_marks(text: str) -> str:
    """A script's own text, with characters that could be taken for marks replaced."""
    return "".join("�" if is_mark(each) else each for each in text)
