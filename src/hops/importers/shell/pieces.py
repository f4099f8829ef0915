"""Pieces of a script's words: what the parser's nodes are, and where their own text starts."""

import re
from typing import TYPE_CHECKING

from hops.importers.shell.grammar import source

if TYPE_CHECKING:
    from tree_sitter import Node

EXPANSIONS = {"simple_expansion", "expansion", "command_substitution", "arithmetic_expansion", "process_substitution"}
_BLANKS = {" ": "\ue001", "\n": "\ue002", "\t": "\ue003"}
UNQUOTED = re.compile(r"\\(.)|\\\n", re.DOTALL)


def decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def lead(node: "Node") -> int:
    """Blanks that the parser counts as part of an expansion."""
    text = source(node)
    return next((at for at, each in enumerate(text) if each in "$`<>"), 0)


def protected(text: str) -> str:
    """Text whose double quotes, outside of `$(...)`, stand for themselves when it is read between double quotes."""
    out, depth = [], 0
    for number, each in enumerate(text):
        before = text[number - 1] if number else ""
        depth += (each == "(" and (before == "$" or depth > 0)) - (each == ")" and depth > 0)
        out.append("\ue000" if each == '"' and not depth else each)
    return "".join(out)


def held(text: str) -> str:
    """Text whose blanks end no word, as it was quoted inside of what is split."""
    return text.translate({ord(blank): mark for blank, mark in _BLANKS.items()})


def released(text: str) -> str:
    """The same with its blanks as they are."""
    return text.translate({ord(mark): blank for blank, mark in _BLANKS.items()})
