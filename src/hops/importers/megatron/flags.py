"""Megatron-LM's command line, read as it stands in a launch script: `--name value` and `--switch`."""

import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import pairwise

from hops.errors import UsageError

_ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w*)=(\S+)\s*(?:#.*)?$")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")


def parse_flags(text: str, *, name: str = "command line") -> dict[str, object]:
    """Flags of a command line or of a shell script that holds one, by name without dashes.

    Comments and line continuations are understood, and variables that the script sets to a plain word. A flag without
    a value is True. Raises UsageError if there is no flag, or a quote is not closed.
    """
    joined = re.sub(r"\\\s*\n", " ", text)
    variables = {match[1]: match[2].strip("\"'") for line in joined.splitlines() if (match := _ASSIGNMENT.match(line))}
    filled = _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[0]), joined)
    try:
        words = [word for line in filled.splitlines() for word in shlex.split(line, comments=True)]
    except ValueError as error:
        raise UsageError(f"{name}: cannot be read as a shell command: {error}; close the quote") from None
    flags = dict(_pairs(words))
    if not flags:
        raise UsageError(f"{name}: no Megatron-LM flag found, expected some such as --num-layers 24")
    return flags


def _pairs(words: list[str]) -> Iterator[tuple[str, object]]:
    """Each flag with what follows it up to the next flag."""
    starts = [at for at, word in enumerate(words) if word.startswith("--") and len(word) > 2]
    for at, end in pairwise([*starts, len(words)]):
        flag, equals, value = words[at][2:].partition("=")
        following = [value] if equals else [word for word in words[at + 1 : end] if not word.startswith("-")][:1]
        yield flag, following[0] if following else True


class Arguments:
    """Flags with types: each getter says what was expected where a value is missing or of the wrong kind."""

    def __init__(self, flags: Mapping[str, object], *, where: str) -> None:
        self._flags = flags
        self._where = where

    def count(self, flag: str, default: int | None = None) -> int:
        """A whole number >= 1. Without a default the flag is required."""
        if flag not in self._flags:
            if default is None:
                raise UsageError(f"{self._where}: --{flag} is missing; add it, such as --{flag} 8")
            return default
        text = str(self._flags[flag]).strip("\"'")
        if not text.isascii() or not text.isdigit() or int(text) < 1:
            raise UsageError(f"{self._where}: --{flag}: got {self._flags[flag]!r}, expected a whole number >= 1")
        return int(text)

    def optional(self, flag: str) -> int | None:
        """A whole number >= 1, if the flag is given."""
        return self.count(flag) if flag in self._flags else None

    def number(self, flag: str, default: float) -> float:
        """A number >= 0."""
        value = self._flags.get(flag, default)
        try:
            number = float(str(value))
        except ValueError:
            number = -1.0
        if not number >= 0:
            raise UsageError(f"{self._where}: --{flag}: got {value!r}, expected a number >= 0")
        return number

    def on(self, flag: str) -> bool:
        """Whether a switch is set."""
        return self._flags.get(flag, False) not in {False, "false", "False", None}

    def choice(self, flag: str, choices: tuple[str, ...], default: str) -> str:
        """One of some words."""
        value = str(self._flags[flag]) if flag in self._flags else default
        if value not in choices:
            raise UsageError(f"{self._where}: --{flag}: got {value!r}, expected one of {', '.join(choices)}")
        return value

    def refuse(self, flag: str, why: str) -> None:
        """Raise UsageError if a size that HOPS does not model is above 1."""
        if self.count(flag, 1) > 1:
            raise UsageError(f"{self._where}: --{flag} {self._flags[flag]}: {why}; expected 1")
