"""How a statement of a script ends, and what all files of the walk share."""

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from hops.importers.shell.grammar import source

if TYPE_CHECKING:
    from tree_sitter import Node

    from hops.importers.shell.walk import Walk

MAX_NESTED = 20  # scripts and functions that call each other


class Flow(Enum):
    """How a statement ends."""

    GO_ON = "goes on"
    BREAK = "leaves the loop"
    CONTINUE = "starts the loop again"
    RETURN = "leaves the function"
    EXIT = "ends the script"


Handler = Callable[["Walk", "Node"], Flow]  # what walks a statement of one kind


def short(node: "Node") -> str:
    """A statement's first line, for messages."""
    first = source(node).strip().splitlines()[0] if source(node).strip() else ""
    return first if len(first) <= 50 else f"{first[:47]}..."
