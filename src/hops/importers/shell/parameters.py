"""Parameters in braces: `${NAME:-word}`, `${#NAME}`, `${NAME##*/}`, `${NAME[@]:1}` and their kin."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hops.errors import UsageError
from hops.importers.shell import patterns
from hops.importers.shell.grammar import source
from hops.importers.shell.pieces import EXPANSIONS, UNQUOTED, decoded, held, lead, protected, released
from hops.importers.shell.values import Array, Unknown, is_known

if TYPE_CHECKING:
    from tree_sitter import Node

    from hops.importers.shell.expand import Expander

_PARAMETER = re.compile(r"(?P<sign>[!#]?)(?P<name>[A-Za-z_]\w*|\d+|[@*#?$!-])(?:\[(?P<index>[^]]*)\])?", re.DOTALL)
_OPERATORS = (":-", ":=", ":?", ":+", "##", "%%", "//", "/#", "/%", "^^", ",,", "-", "=", "?", "+", "#", "%", "/", "^",
              ",", ":", "@")  # fmt: skip


def braced(words: "Expander", node: "Node", inner: str, line: int) -> list[str]:
    """The texts of `${inner}`: several for arguments and whole arrays. Raises UsageError for what is not understood."""
    head = _PARAMETER.match(inner)
    if inner in {"#", "?", "$", "!", "-"}:
        return words.parameter(inner, None, line)
    if head is None:
        raise UsageError(f"{words.where}:{line}: ${{{inner[:40]}}}: expected a variable's name after ${{")
    sign, name, index = head["sign"], head["name"], head["index"]
    rest = inner[head.end() :]
    if sign == "#" and not rest:
        return [_length(words, name, index, line)]
    if sign == "!":
        value = words.value(name)
        if index in {"@", "*"}:
            return value.indices() if isinstance(value, Array) else ["0"]
        target = words.parameter(name, index, line)[0]
        if not is_known(target):
            return [target]
        name, index = target, None
        if not re.fullmatch(r"[A-Za-z_]\w*|\d+", name):
            return [""]
    texts = words.parameter(name, index, line)
    if not rest:
        return texts
    operator = next((each for each in _OPERATORS if rest.startswith(each)), "")
    if not operator:
        raise UsageError(f"{words.where}:{line}: ${{{inner[:40]}}}: {rest[:10]!r} is no operator that is understood")
    return _operated(words, node, name, texts, operator, rest[len(operator) :], line, whole=index in {"@", "*"})


def _length(words: "Expander", name: str, index: str | None, line: int) -> str:
    texts = words.parameter(name, index, line)
    if name in {"@", "*"} or index in {"@", "*"}:
        unknown = [text for text in texts if not is_known(words.settled(text))]
        return unknown[0] if unknown else str(len([text for text in texts if text != "" or len(texts) > 1]))
    text = words.settled(texts[0]) if texts else ""
    return text if not is_known(text) else str(len(text))


def _operated(
    words: "Expander", node: "Node", name: str, texts: list[str], operator: str, raw: str, line: int, *, whole: bool
) -> list[str]:
    joined = words.settled(" ".join(texts))
    is_set = bool(joined) or not _is_unset(words, texts)
    filled = bool(joined) if operator[0] == ":" else is_set
    if operator in {":-", "-"}:
        return texts if filled else [_argument(words, node, operator)]
    if operator in {":=", "="}:
        if filled:
            return texts
        value = _argument(words, node, operator)
        words.put(name, released(value), line)
        return [value]
    if operator in {":?", "?"}:
        return texts
    if operator in {":+", "+"}:
        return [_argument(words, node, operator)] if filled else [""]
    if operator == "@":
        return texts
    if operator == ":":
        return _slice(words, name, texts, released(_argument(words, node, operator)), line, whole=whole)
    return [_edited(words, text, operator, raw, line) for text in texts]


def _is_unset(words: "Expander", texts: Sequence[str]) -> bool:
    return not texts or all(
        text and not words.settled(text) and all(each.unset for each in words.knowledge.unknowns.among(text))
        for text in texts
    )


def _argument(words: "Expander", node: "Node", operator: str) -> str:
    """What follows the operator, expanded."""
    children = list(node.children)
    at = next((number for number, child in enumerate(children)
               if number >= 2 and source(child).strip()[:1] == operator[0]), None)  # fmt: skip
    if at is None:
        raw = source(node)[lead(node) + 2 : -1]
        return words.inside(protected(raw[raw.index(operator) + len(operator) :])).replace("\ue000", "")
    begin = children[at].start_byte + len(source(children[at])) - len(source(children[at]).lstrip()) + len(operator)
    return _span(words, node, children[at + 1 :], begin)


def _span(words: "Expander", node: "Node", children: Sequence["Node"], begin: int) -> str:
    """Text of a node from `begin` to its closing brace, with children expanded."""
    raw = source(node).encode("utf-8", "surrogateescape")
    out, at = [], begin - node.start_byte
    for child in (part for each in children for part in _parts(each)):
        if child.type not in EXPANSIONS | {"string", "raw_string", "regex", "ansi_c_string"}:
            continue
        start = child.start_byte - node.start_byte + (lead(child) if child.type in EXPANSIONS else 0)
        if start < at:
            continue
        out.append(UNQUOTED.sub(lambda found: found[1] or "", decoded(raw[at:start])))
        quoted = child.type in {"string", "raw_string", "ansi_c_string"}
        out.append(held(words.text(child)) if quoted else words.text(child))
        at = child.end_byte - node.start_byte
    out.append(UNQUOTED.sub(lambda found: found[1] or "", decoded(raw[at:-1])))
    return "".join(out)


def _parts(node: "Node") -> Sequence["Node"]:
    """A word that is put together of others, taken apart: each has quotes of its own."""
    return [part for child in node.children for part in _parts(child)] if node.type == "concatenation" else [node]


def _slice(words: "Expander", name: str, texts: list[str], argument: str, line: int, *, whole: bool) -> list[str]:
    if not is_known(argument):
        return [argument]
    start_text, _, length_text = argument.partition(":")
    numbers = [words.arithmetic(each, line) for each in (start_text, length_text)]
    if not all(is_known(each) for each in numbers):
        return [next(each for each in numbers if not is_known(each))]
    start, length = int(numbers[0]), int(numbers[1]) if length_text.strip() else None
    several = whole or name in {"@", "*"}
    if name in {"@", "*"}:
        start = max(start - 1, 0)
    text = words.settled(texts[0]) if texts else ""
    if not several and not is_known(text):
        return [text]
    items: Sequence[str] = texts if several else text
    start = max(len(items) + start, 0) if start < 0 else start
    end = len(items) if length is None else length + (start if length >= 0 else len(items))
    cut = items[start : max(end, start)]
    return list(cut) if several else ["".join(cut)]


def _edited(words: "Expander", text: str, operator: str, raw: str, line: int) -> str:
    text = words.settled(text)
    if operator in {"^^", ",,", "^", ","}:
        change = str.upper if "^" in operator else str.lower
        return change(text) if len(operator) == 2 else change(text[:1]) + text[1:]
    argument = words.settled(words.inside(protected(raw))).replace("\ue000", "").replace("'", "")
    if not is_known(argument):
        return next(each for each in argument if not is_known(each))
    if not is_known(text):
        return text if len(text) == 1 else next(each for each in text if not is_known(each))
    if len(text) > patterns.MAX_TEXT:
        why = f"is an edit of a long text (line {line})"
        return words.knowledge.unknowns.mark(Unknown(why=why))
    if operator[0] == "#":
        return patterns.without_prefix(text, argument, longest=operator == "##")
    if operator[0] == "%":
        return patterns.without_suffix(text, argument, longest=operator == "%%")
    tie = operator[1:] if operator in {"/#", "/%"} else ""
    wanted, _, by = argument.replace("\\/", "\0").partition("/")
    everywhere = operator == "//"
    return patterns.replaced(text, tie + wanted.replace("\0", "/"), by.replace("\0", "/"), everywhere=everywhere)
