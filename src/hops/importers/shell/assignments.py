"""Assignments of a script: texts, arrays and their items."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hops.importers.shell.flow import Flow, Handler
from hops.importers.shell.grammar import line_of, source
from hops.importers.shell.values import Array, Value, is_known

if TYPE_CHECKING:
    from tree_sitter import Node

    from hops.importers.shell.walk import Walk


def variable_assignment(walk: "Walk", node: "Node") -> Flow:
    _assign(walk, node)
    walk.success = True
    return Flow.GO_ON


def variable_assignments(walk: "Walk", node: "Node") -> Flow:
    return walk.all(node.children)


def declaration_command(walk: "Walk", node: "Node") -> Flow:
    options = "".join(source(child) for child in node.children if child.type == "word" and source(child)[0] == "-")
    for child in node.children[1:]:
        if child.type == "variable_assignment":
            _assign(walk, child, named="A" in options)
        elif child.type == "variable_name" and source(node.children[0]) != "export":
            name = source(child)
            if "A" in options or "a" in options:
                walk.assign(name, Array({}, named="A" in options), line_of(node))
            elif source(node.children[0]) == "local":
                walk.assign(name, "", line_of(node))
        elif child.type in {"string", "concatenation", "expansion", "simple_expansion"}:
            for text, _ in walk.expander.words([child]):
                name, equals, value = text.partition("=")
                if equals and re.fullmatch(r"[A-Za-z_]\w*", name):
                    walk.assign(name, value, line_of(node))
    walk.success = True
    return Flow.GO_ON


def unset_command(walk: "Walk", node: "Node") -> Flow:
    for child in node.children[1:]:
        walk.state.variables.pop(source(child), None)
    walk.success = True
    return Flow.GO_ON


def _assign(walk: "Walk", node: "Node", *, named: bool = False) -> None:
    target, *_, last = node.children
    line = line_of(node)
    adds = any(child.type == "+=" for child in node.children)
    value_node = last if last.type not in {"=", "+="} else None
    if target.type == "subscript":
        _assign_item(walk, target, value_node, adds=adds, line=line)
        return
    name = source(target)
    old = walk.state.variables.get(name)
    if old is None and adds:
        old = walk.knowledge.given_value(name)
    if value_node is not None and value_node.type == "array":
        walk.assign(name, _array(walk, value_node, old if adds else None, named=named or _is_named(old)), line)
        return
    text = "" if value_node is None else walk.expander.text(value_node)
    if isinstance(old, Array):
        items = dict(old.items)
        items["0"] = (items.get("0", "") if adds else "") + text
        walk.assign(name, Array(items, old.named), line)
        return
    walk.assign(name, (old or "") + text if adds else text, line)


def _assign_item(walk: "Walk", target: "Node", value_node: "Node | None", *, adds: bool, line: int) -> None:
    name, _, index = source(target)[:-1].partition("[")
    old = walk.state.variables.get(name, Array({}))
    old = old if isinstance(old, Array) else Array({"0": old})
    index = walk.expander.inside(index.strip("\"'"))
    if not old.named:
        index = walk.expander.arithmetic(index, line)
    text = "" if value_node is None else walk.expander.text(value_node)
    items = {**old.items, index: (old.items.get(index, "") if adds else "") + text}
    if not is_known(index) or (not old.named and not index.isdigit()):
        walk.assign(name, walk.unknown(f"has an unknown index (line {line})"), line)
    else:
        walk.assign(name, Array(items, old.named), line)


def _array(walk: "Walk", node: "Node", old: Value | None, *, named: bool) -> Array:
    items: dict[str, str] = {}
    if old is not None:
        items = dict(old.items) if isinstance(old, Array) else {"0": old}
    following = max((int(each) for each in items), default=-1) + 1 if not named else 0
    for child in node.children:
        if child.type in {"(", ")", "comment"}:
            continue
        at_index = re.match(r"\[([^\]]+)\]=", source(child)) if child.type == "concatenation" else None
        if at_index:
            index = walk.expander.inside(at_index[1].strip("\"'"))
            text = walk.expander.text(child)
            items[index if named or index.isdigit() else str(following)] = text[text.index("]=") + 2 :]
            continue
        for text, bare in walk.expander.words([child]):
            items[str(following)] = walk.knowledge.member(text) if bare else text
            following += 1
    return Array(items, named)


def _is_named(value: Value | None) -> bool:
    return isinstance(value, Array) and value.named


HANDLERS: Mapping[str, Handler] = {
    "variable_assignment": variable_assignment,
    "variable_assignments": variable_assignments,
    "declaration_command": declaration_command,
    "unset_command": unset_command,
}
