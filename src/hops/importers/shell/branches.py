"""Tests and branches of a script: what is decided is followed, of the rest every case."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from hops.importers.shell.conditions import Truth, both, decide, either, negation
from hops.importers.shell.flow import Flow, Handler, short
from hops.importers.shell.grammar import line_of, source
from hops.importers.shell.patterns import matches
from hops.importers.shell.values import is_known

if TYPE_CHECKING:
    from tree_sitter import Node

    from hops.importers.shell.walk import Walk


def compound_statement(walk: "Walk", node: "Node") -> Flow:
    if node.children[0].type == "((":
        walk.success = _arithmetic_truth(walk, node)
        return Flow.GO_ON
    return walk.all(node.children)


def subshell(walk: "Walk", node: "Node") -> Flow:
    with walk.aside():
        walk.all(node.children)
    return Flow.GO_ON


def test_command(walk: "Walk", node: "Node") -> Flow:
    walk.success = decide(node, walk.expander)
    return Flow.GO_ON


def _arithmetic_truth(walk: "Walk", node: "Node") -> Truth:
    inner = source(node).strip()[2:-2]
    value = walk.expander.arithmetic(walk.expander.inside(inner), line_of(node))
    return value != "0" if is_known(value) else None


def negated_command(walk: "Walk", node: "Node") -> Flow:
    flow = walk.statement(node.children[-1])
    walk.success = negation(walk.success)
    return flow


def and_or(walk: "Walk", node: "Node") -> Flow:
    left, operator, right = node.children[0], source(node.children[1]), node.children[-1]
    flow = walk.statement(left)
    if flow is not Flow.GO_ON:
        return flow
    first = walk.success
    if first is (operator == "||"):
        return Flow.GO_ON
    if first is None:
        flow = walk.cases(short(left), [lambda: walk.statement(right), lambda: Flow.GO_ON])
    else:
        flow = walk.statement(right)
    second = walk.success
    walk.success = both(first, second) if operator == "&&" else either(first, second)
    return flow


def pipeline(walk: "Walk", node: "Node") -> Flow:
    commands = [child for child in node.children if child.is_named and child.type != "comment"]
    text = walk.stdin
    for number, command in enumerate(commands):
        last = number == len(commands) - 1
        with walk.aside():
            if not last:
                walk.prints.append([])
            walk.statement(command, text)
            if not last:
                text = "".join(walk.prints.pop())
    return Flow.GO_ON


def if_statement(walk: "Walk", node: "Node") -> Flow:
    branches: list[tuple[Sequence[Node], Sequence[Node]]] = []
    condition: list[Node] = []
    body: list[Node] = []
    in_body = False
    otherwise: list[Node] = []
    for child in node.children[1:]:
        if child.type == "then":
            in_body = True
        elif child.type == "elif_clause":
            at = next(number for number, each in enumerate(child.children) if each.type == "then")
            branches.append((child.children[1:at], child.children[at + 1 :]))
        elif child.type == "else_clause":
            otherwise = list(child.children[1:])
        elif child.type != "fi":
            (body if in_body else condition).append(child)
    return _branch(walk, [(condition, body), *branches], otherwise)


def _branch(
    walk: "Walk", branches: Sequence[tuple[Sequence["Node"], Sequence["Node"]]], otherwise: Sequence["Node"]
) -> Flow:
    if not branches:
        return walk.all(otherwise)
    (condition, body), *rest = branches
    flow = walk.all(condition)
    if flow is not Flow.GO_ON:
        return flow
    if walk.success is None:
        label = short(next(each for each in condition if each.is_named))
        return walk.cases(label, [lambda: walk.all(body), lambda: _branch(walk, rest, otherwise)])
    flow = walk.all(body) if walk.success else _branch(walk, rest, otherwise)
    walk.success = True
    return flow


def case_statement(walk: "Walk", node: "Node") -> Flow:
    word = next(child for child in node.children[1:] if child.is_named)
    text = walk.expander.settled(walk.expander.text(word))
    items = [child for child in node.children if child.type == "case_item"]
    bodies = [(_patterns(walk, item), _body(item)) for item in items]
    if not is_known(text):
        ways: list[Callable[[], Flow]] = [partial(walk.all, body) for _, body in bodies]
        if not any("*" in wanted for wanted, _ in bodies):
            ways.append(lambda: Flow.GO_ON)
        return walk.cases(short(word), ways)
    for wanted, body in bodies:
        if any(matches(text, each) for each in wanted):
            return walk.all(body)
    return Flow.GO_ON


def _patterns(walk: "Walk", item: "Node") -> list[str]:
    found: list[str] = []
    for child in item.children:
        if child.type == ")":
            return found
        if child.type not in {"|", "("}:
            found.append(walk.expander.text(child))
    return found


def _body(item: "Node") -> list["Node"]:
    at = next(number for number, child in enumerate(item.children) if child.type == ")")
    return list(item.children[at + 1 :])


HANDLERS: Mapping[str, Handler] = {
    "compound_statement": compound_statement,
    "subshell": subshell,
    "test_command": test_command,
    "negated_command": negated_command,
    "list": and_or,
    "pipeline": pipeline,
    "if_statement": if_statement,
    "case_statement": case_statement,
}
