"""Loops of a script: turned as often as it says, or, where only the run knows, not at all and once."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from hops.importers.shell.conditions import Truth, negation
from hops.importers.shell.flow import Flow, Handler, short
from hops.importers.shell.grammar import line_of, source
from hops.importers.shell.values import is_known

if TYPE_CHECKING:
    from tree_sitter import Node

    from hops.importers.shell.walk import Walk

_MAX_TURNS = 200  # of a loop


def for_statement(walk: "Walk", node: "Node") -> Flow:
    name = source(node.children[1])
    body = node.children[-1]
    until = next((at for at, each in enumerate(node.children) if each.type == "in"), None)
    if until is None:
        words = [(text, False) for text in walk.state.arguments]
    else:
        stop = next((at for at in range(until, len(node.children)) if node.children[at].type in {";", "\n"}), -1)
        words = []
        for each in node.children[until + 1 : stop]:
            quoted = each.type in {"string", "raw_string"}
            words += [(text, not quoted) for text in _members(walk, each)]
    unclear = [text for text, open_ in words if open_ and (re.search(r"[*?]|\[", text) or not is_known(text))]
    if unclear:
        why = f"is one of {walk.shown(' '.join(unclear))[:40]!r} (line {line_of(node)})"
        return _maybe(walk, short(node), lambda: _turn(walk, name, walk.unknown(why), body, line_of(node)))
    return _turns(walk, [partial(_turn, walk, name, text, body, line_of(node)) for text, _ in words], node)


def _members(walk: "Walk", node: "Node") -> list[str]:
    """What a loop goes through for one written word; an expansion of nothing is no word."""
    words = [(walk.expander.settled(text) if bare else text, bare) for text, bare in walk.expander.words([node])]
    return [text for text, bare in words if text or not bare]


def _turn(walk: "Walk", name: str, value: str, body: "Node", line: int) -> Flow:
    walk.assign(name, value, line)
    return walk.statement(body)


def _maybe(walk: "Walk", test: str, turn: Callable[[], Flow]) -> Flow:
    """A loop that may have any number of turns: none or one, and what differs is unknown."""
    before = len(walk.left)
    flow = walk.cases(test, [turn, lambda: Flow.GO_ON])
    walk.rejoin(before, {Flow.BREAK, Flow.CONTINUE}, test)
    return Flow.GO_ON if flow in {Flow.BREAK, Flow.CONTINUE} else flow


def _turns(walk: "Walk", turns: Sequence[Callable[[], Flow]], node: "Node") -> Flow:
    before = len(walk.left)
    for turn in turns:
        flow = turn()
        if flow is Flow.BREAK:
            break
        if flow in {Flow.RETURN, Flow.EXIT}:
            return flow if not walk.rejoin(before, {Flow.BREAK}, short(node), alive=False) else Flow.GO_ON
        walk.rejoin(before, {Flow.CONTINUE}, short(node))
    walk.rejoin(before, {Flow.BREAK, Flow.CONTINUE}, short(node))
    return Flow.GO_ON


def c_style_for_statement(walk: "Walk", node: "Node") -> Flow:
    head = re.match(r"for\s*\(\((.*?);(.*?);(.*?)\)\)", source(node), re.DOTALL)
    if head is None:
        return Flow.GO_ON
    start, test, step = (walk.expander.inside(each) for each in head.groups())
    line, body = line_of(node), node.children[-1]
    if start.strip():
        walk.expander.arithmetic(start, line)

    def decided() -> Truth:
        value = walk.expander.arithmetic(test, line) if test.strip() else "1"
        return value != "0" if is_known(value) else None

    def turn() -> Flow:
        flow = walk.statement(body)
        if step.strip() and flow in {Flow.GO_ON, Flow.CONTINUE}:
            walk.expander.arithmetic(step, line)
        return flow

    return _while(walk, decided, turn, node)


def while_statement(walk: "Walk", node: "Node") -> Flow:
    body = node.children[-1]
    condition = [child for child in node.children[1:-1] if child.type != ";"]
    until = node.children[0].type == "until"

    def decided() -> Truth:
        walk.all(condition)
        return negation(walk.success) if until else walk.success

    return _while(walk, decided, lambda: walk.statement(body), node)


def _while(walk: "Walk", decided: Callable[[], Truth], turn: Callable[[], Flow], node: "Node") -> Flow:
    before = len(walk.left)
    for _ in range(_MAX_TURNS):
        truth = decided()
        if truth is False:
            break
        if truth is None:
            return _maybe(walk, short(node), turn)
        flow = turn()
        if flow is Flow.BREAK:
            break
        if flow in {Flow.RETURN, Flow.EXIT}:
            return flow if not walk.rejoin(before, {Flow.BREAK}, short(node), alive=False) else Flow.GO_ON
        walk.rejoin(before, {Flow.CONTINUE}, short(node))
    else:  # it never ends by itself: only the cases that left it go on
        return Flow.GO_ON if walk.rejoin(before, {Flow.BREAK}, short(node), alive=False) else Flow.EXIT
    walk.rejoin(before, {Flow.BREAK, Flow.CONTINUE}, short(node))
    return Flow.GO_ON


HANDLERS: Mapping[str, Handler] = {
    "for_statement": for_statement,
    "c_style_for_statement": c_style_for_statement,
    "while_statement": while_statement,
}
