"""The grammar of a shell script: its text becomes a tree, or an error that points at the place."""

from functools import cache
from typing import TYPE_CHECKING

from hops.errors import UsageError

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_BYTES = 1 << 20  # launch scripts have a few KiB; what is larger is something else
_MAX_DEPTH = 150  # of the tree: the walk is recursive


@cache
def _parser() -> "Parser":
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def parse(text: str, *, where: str) -> "Node":
    """The tree of a script. Raises UsageError with line and column where the text is no shell script."""
    data = text.encode("utf-8", "surrogateescape")
    if len(data) > MAX_BYTES:
        raise UsageError(f"{where}: got {len(data)} bytes, expected a shell script of at most {MAX_BYTES}")
    root = _parser().parse(data).root_node
    bad = _first_error(root, where)
    if bad is not None:
        raise UsageError(
            f"{where}:{line_of(bad)}:{bad.start_point[1] + 1}: cannot be read as a shell script"
            f"{_near(bad)}; close quotes, braces and blocks, and fill in placeholders"
        )
    return root


def line_of(node: "Node") -> int:
    """The line on which a node starts, from 1."""
    return int(node.start_point[0]) + 1


def source(node: "Node") -> str:
    """The text of a node."""
    assert node.text is not None
    return node.text.decode("utf-8", "surrogateescape")


def _near(node: "Node") -> str:
    if node.is_missing:
        return f": {node.type!r} is missing"
    near = source(node).strip().splitlines()
    return f" near {near[0][:40]!r}" if near and near[0] else ""


def _first_error(root: "Node", where: str) -> "Node | None":
    """The first node that the parser could not place. Raises UsageError where the tree is too deep to be walked."""
    waiting = [(root, 0)]
    found: Node | None = None
    while waiting:
        node, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise UsageError(f"{where}:{line_of(node)}: nested more than {_MAX_DEPTH} deep; simplify the script")
        if (node.is_error or node.is_missing) and (found is None or node.start_byte < found.start_byte):
            found = node
        waiting.extend((child, depth + 1) for child in node.children)
    return found
