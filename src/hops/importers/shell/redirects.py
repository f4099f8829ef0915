"""What a script hands to its commands, and which files it writes: redirections and here-documents."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hops.importers.shell.flow import Flow, Handler
from hops.importers.shell.grammar import source
from hops.importers.shell.values import is_known

if TYPE_CHECKING:
    from tree_sitter import Node

    from hops.importers.shell.walk import Walk


def redirected_statement(walk: "Walk", node: "Node") -> Flow:
    text, files, after = walk.stdin, [], []
    for child in node.children[1:]:
        if child.type == "heredoc_redirect":
            text, more = _heredoc(walk, child)
            after += [each for each in more if each.type != "file_redirect"]
            files += [each for each in more if each.type == "file_redirect"]
        elif child.type == "herestring_redirect":
            text = walk.expander.text(child.children[-1]) + "\n"
        elif child.type == "file_redirect":
            files.append(child)
    target = next(
        (each for each in files if any(part.type in {">", ">>", "&>", "&>>", ">|"} for part in each.children)), None
    )
    source_file = next((each for each in files if each.children[0].type == "<"), None)
    if source_file is not None:
        text = walk.state.files.get(walk.expander.text(source_file.children[-1]), text)
    if node.children[0].type in {"file_redirect", "heredoc_redirect"}:
        return Flow.GO_ON
    catches = target is not None and source(target.children[0]) != "2"
    if catches:
        walk.prints.append([])
    pipes = [each for each in after if each.type in {"pipeline", "command"}]
    flow = walk.statement(node.children[0], text)
    if catches and target is not None:
        written = "".join(walk.prints.pop())
        name = walk.expander.text(target.children[-1])
        adds = any(part.type in {">>", "&>>"} for part in target.children)
        if is_known(name) and name != "/dev/null":
            walk.state.files[name] = (walk.state.files.get(name, "") if adds else "") + written
    for each in pipes:  # what stands behind the start of a here-document on its line: | cmd, && cmd, || cmd
        before = each.prev_sibling
        if before is not None and source(before) == "||":
            continue
        walk.statement(each)
    return flow


def _heredoc(walk: "Walk", node: "Node") -> tuple[str, list["Node"]]:
    parts = {child.type: child for child in node.children}
    more = [child for child in node.children
            if child.type not in {"<<", "<<-", "heredoc_start", "heredoc_body", "heredoc_end"}]  # fmt: skip
    body = parts.get("heredoc_body")
    if body is None:
        return "", more
    text = _text_of_root(node)
    start = text.rfind(b"\n", 0, body.start_byte) + 1
    raw = text[start : parts["heredoc_end"].start_byte].decode("utf-8", "surrogateescape")
    if "<<-" in parts:
        raw = "\n".join(line.lstrip("\t") for line in raw.split("\n"))
    quoted = bool(re.search(r"['\"\\]", source(parts["heredoc_start"])))
    return (raw if quoted else walk.expander.heredoc(raw)), more


def _text_of_root(node: "Node") -> bytes:
    root = node
    while root.parent is not None:
        root = root.parent
    assert root.text is not None
    return b"\0" * root.start_byte + root.text


HANDLERS: Mapping[str, Handler] = {
    "redirected_statement": redirected_statement,
}
