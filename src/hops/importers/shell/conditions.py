"""A shell's tests: true, false, or None where only running the script can tell."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from hops.importers.shell.expand import Expander
from hops.importers.shell.grammar import source
from hops.importers.shell.patterns import MAX_TEXT, matches
from hops.importers.shell.values import is_known

if TYPE_CHECKING:
    from tree_sitter import Node

_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}
Truth = bool | None


def negation(truth: Truth) -> Truth:
    return None if truth is None else not truth


def both(left: Truth, right: Truth) -> Truth:
    return False if left is False or right is False else None if left is None or right is None else True


def either(left: Truth, right: Truth) -> Truth:
    return negation(both(negation(left), negation(right)))


def decide(node: "Node", expander: Expander) -> Truth:
    """The truth of what stands in `[ ... ]`, `[[ ... ]]`."""
    named = [child for child in node.children if child.is_named or source(child) == "!"]
    kind = node.type
    if kind == "test_command":
        inner = [child for child in node.children if source(child) not in {"[", "]", "[[", "]]"}]
        if source(node.children[0]) == "[":
            return decide_words([word for child in inner for word in _flat(child, expander)], expander)
        return decide(inner[0], expander) if len(inner) == 1 else False if not inner else None
    if kind == "parenthesized_expression":
        return decide(named[0], expander) if len(named) == 1 else None
    if kind in {"unary_expression", "negated_command"} and len(node.children) == 2:
        operator, operand = source(node.children[0]).strip(), node.children[1]
        return negation(decide(operand, expander)) if operator == "!" else _unary(operator, operand, expander)
    if kind == "binary_expression" and len(node.children) == 3:
        left, middle, right = node.children
        operator = source(middle).strip()
        if operator in {"&&", "-a"}:
            return both(decide(left, expander), decide(right, expander))
        if operator in {"||", "-o"}:
            return either(decide(left, expander), decide(right, expander))
        plain = right.type in {"string", "raw_string"}
        negated = left.type == "unary_expression" and source(left.children[0]).strip() == "!"  # it binds less tightly
        truth = compare(
            expander.text(left.children[1] if negated else left), operator, expander.text(right), expander, plain=plain
        )
        return negation(truth) if negated else truth
    text = expander.settled(expander.text(node))
    return _filled(text)


def _flat(node: "Node", expander: Expander) -> list[str]:
    """The words of `[ ... ]`: there the shell knows no precedence."""
    if node.type in {"binary_expression", "unary_expression", "parenthesized_expression", "negated_command"}:
        return [word for child in node.children for word in _flat(child, expander)]
    return [expander.text(node)]


def decide_words(words: list[str], expander: Expander) -> Truth:
    """The truth of `test` with these arguments."""
    if words[:1] == ["!"]:
        return negation(decide_words(words[1:], expander))
    for joint, combine in (("-o", either), ("-a", both)):
        if joint in words[1:-1] and len(words) > 3:
            at = words.index(joint, 1)
            return combine(decide_words(words[:at], expander), decide_words(words[at + 1 :], expander))
    if len(words) == 3:
        return compare(words[0], words[1], words[2], expander, plain=True)
    if len(words) == 2:
        return _unary_text(words[0], words[1], expander)
    return _filled(expander.settled(words[0])) if len(words) == 1 else False if not words else None


def compare(left: str, operator: str, right: str, expander: Expander, *, plain: bool) -> Truth:
    """One comparison of two texts, or of two numbers; `plain`: the right one is no pattern."""
    left, right = expander.settled(left), expander.settled(right)
    if operator in _NUMBERS:
        numbers = [each if re.fullmatch(r"\s*-?\d{1,18}\s*", each) else "" for each in (left, right)]
        return _NUMBERS[operator](int(numbers[0]), int(numbers[1])) if all(numbers) else None
    if not is_known(left) or not is_known(right) or len(left) > MAX_TEXT or len(right) > MAX_TEXT:
        return None
    if operator in {"=", "==", "!="}:
        alike = left == right if plain else matches(left, right)
        return alike == (operator != "!=")
    if operator == "=~":
        if len(left) > 200 or len(right) > 100:
            return None
        try:
            return re.search(right, left) is not None
        except re.error:
            return None
    return None if operator not in {"<", ">"} else (left < right if operator == "<" else left > right)


def _filled(text: str) -> Truth:
    return True if any(is_known(each) for each in text) else None if text else False


def _unary(operator: str, operand: "Node", expander: Expander) -> Truth:
    return _unary_text(operator, expander.text(operand), expander)


def _unary_text(operator: str, text: str, expander: Expander) -> Truth:
    if operator == "-v":
        return text in expander.state.variables or None
    text = expander.settled(text)
    if operator == "-n":
        return _filled(text)
    if operator == "-z":
        return negation(_filled(text))
    if operator in {"-f", "-e", "-s", "-r"} and text in expander.state.files:
        return True
    return None  # files, terminals: only the run knows
