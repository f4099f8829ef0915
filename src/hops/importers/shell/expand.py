"""Words of a script with `$` expanded, split and joined as a shell does it."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from hops.errors import UsageError
from hops.importers.shell.arithmetic import Arithmetic, ArithmeticFault
from hops.importers.shell.grammar import line_of, parse, source
from hops.importers.shell.parameters import braced
from hops.importers.shell.pieces import EXPANSIONS, UNQUOTED, decoded, lead, protected, released
from hops.importers.shell.state import Knowledge, ShellState
from hops.importers.shell.values import Array, Unknown, Value, is_known

if TYPE_CHECKING:
    from tree_sitter import Node

_IN_QUOTES = re.compile(r"\\([\\\"$`])|\\\n")
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "e": "\x1b"}
_MAX_RANGE = 1000


class Fields:
    """The words that one written word becomes: none, one, or several."""

    def __init__(self) -> None:
        self.done: list[tuple[str, bool]] = []
        self._text: str | None = None
        self._bare = True

    def add(self, text: str) -> None:
        """Quoted or literal text: part of the present word."""
        self._text = (self._text or "") + text
        self._bare = False

    def split(self, text: str) -> None:
        """An unquoted expansion: white space in it ends words."""
        parts = re.split(r"[ \t\n]+", text)
        for number, part in enumerate(parts):
            if number:
                self.end()
            if part:
                self._text = (self._text or "") + part

    def end(self) -> list[tuple[str, bool]]:
        """Close the present word, if there is one."""
        if self._text is not None:
            self.done.append((released(self._text), self._bare))
        self._text, self._bare = None, True
        return self.done


class Expander:
    """Expands words in a state that changes as the walk goes on.

    Args:
        substitute: the output of a command substitution.
    """

    def __init__(self, knowledge: Knowledge, where: str, substitute: Callable[["Node"], str]) -> None:
        self.state = ShellState()
        self.knowledge = knowledge
        self._substitute = substitute
        self.where = where

    def words(self, nodes: Sequence["Node"]) -> list[tuple[str, bool]]:
        """Every word with whether it is bare: made of unquoted expansions alone."""
        return [field for node in nodes for field in self._fields(node)]

    def text(self, node: "Node") -> str:
        """A word that is not split, as in `X=word`."""
        out = Fields()
        self._into(out, node, split=False)
        return " ".join(text for text, _ in out.end())

    def heredoc(self, body: str) -> str:
        """The text of a here-document whose end is not quoted."""
        return self.inside(protected(body)).replace("\ue000", '"')

    def inside(self, text: str) -> str:
        """Text as between double quotes."""
        if not re.search(r"[$`\\]", text):
            return text
        tree = parse(f'"{text}"', where=self.where)
        nodes = [node for node in _below(tree) if node.type == "string"]
        return self.text(nodes[0]) if nodes else text

    def arithmetic(self, text: str, line: int) -> str:
        """The value of an expression without `$`, or the mark of what it needs."""
        found: list[str] = []

        def get(name: str) -> str:
            value = self._item(name)
            if not is_known(value):
                found.append(next(each for each in value if not is_known(each)))
                raise ArithmeticFault(name)
            return value

        def put(name: str, value: str) -> None:
            self.put(name, value, line)

        if not is_known(text):
            return next(each for each in text if not is_known(each))
        try:
            return str(Arithmetic(text, get, put).value())
        except ArithmeticFault as fault:
            if found:
                return found[0]
            raise UsageError(f"{self.where}:{line}: $(({text.strip()[:60]})): {fault}") from None

    def value(self, name: str, line: int = 0) -> Value:
        """What a variable holds; of one that is not set, a mark."""
        if name in self.state.variables:
            return self.state.variables[name]
        stated = self.knowledge.given_value(name)
        return self.knowledge.unset(name) if stated is None else stated

    def settled(self, text: str) -> str:
        return self.knowledge.unknowns.settled(text)

    # -- words

    def _fields(self, node: "Node") -> list[tuple[str, bool]]:
        if node.type == "brace_expression":
            return [(text, False) for text in self._braces(node)]
        out = Fields()
        self._into(out, node, split=True)
        return out.end()

    def _into(self, out: Fields, node: "Node", *, split: bool) -> None:
        kind = node.type
        if kind == "concatenation":
            for child in node.children:
                self._into(out, child, split=split)
        elif kind == "string":
            out.add("")
            for piece in self._pieces(node):
                if isinstance(piece, str):
                    out.add(piece)
                else:
                    self._spread(out, piece)
        elif kind in EXPANSIONS:
            found = self._expansion(node)
            for number, text in enumerate(found):
                if number:
                    out.end()
                if split:
                    out.split(text)
                else:
                    out.add(text)
        elif kind == "raw_string":
            out.add(source(node)[1:-1])
        elif kind == "ansi_c_string":
            out.add(re.sub(r"\\(.)", lambda found: _ANSI.get(found[1], found[0]), source(node)[2:-1]))
        elif kind == "command_name":
            for child in node.children:
                self._into(out, child, split=split)
        elif kind == "translated_string":
            self._into(out, node.children[-1], split=split)
        elif kind in {"extglob_pattern", "regex"}:
            out.add(self.inside(source(node)))
        else:
            out.add(UNQUOTED.sub(lambda found: found[1] or "", source(node)))

    def _spread(self, out: Fields, node: "Node") -> None:
        """An expansion between quotes: "$@" and "${A[@]}" become a word each."""
        found = self._expansion(node)
        every = re.search(r"^\$(@|\{@|\{!?\w+\[@\])", source(node).lstrip(" \t\n\\"))
        if not every:
            out.add(" ".join(found))
            return
        for number, text in enumerate(found):
            if number:
                out.end()
            out.add(text)
        if not found and out._text == "":  # noqa: SLF001 - "$@" without arguments is no word
            out._text = None  # noqa: SLF001

    def _pieces(self, node: "Node") -> Iterator["str | Node"]:
        """A string's literal text and expansions, in turn. The parser counts blanks before a `$` as part of it."""
        raw = source(node).encode("utf-8", "surrogateescape")
        at, base = 1, node.start_byte
        for child in node.children[1:-1]:
            if child.type not in EXPANSIONS:
                continue
            start = child.start_byte - base + lead(child)
            if start > at:
                yield _IN_QUOTES.sub(lambda found: found[1] or "", decoded(raw[at:start]))
            yield child
            at = child.end_byte - base
        if len(raw) - 1 > at:
            yield _IN_QUOTES.sub(lambda found: found[1] or "", decoded(raw[at:-1]))

    def _braces(self, node: "Node") -> list[str]:
        ends = re.fullmatch(r"\{(-?\d{1,9})\.\.(-?\d{1,9})\}", source(node))
        if ends is None:
            return [source(node)]
        first, last = int(ends[1]), int(ends[2])
        step = 1 if last >= first else -1
        return [str(each) for each in range(first, last + step, step)][:_MAX_RANGE]

    # -- expansions

    def _expansion(self, node: "Node") -> list[str]:
        line = line_of(node)
        self.knowledge.step(f"{self.where}:{line}")
        text = source(node)[lead(node) :]
        sums = text.startswith("$((") and text.endswith("))")  # in some places the parser sees a subshell in it
        if node.type == "command_substitution" and not sums:
            return [self._substitute(node)]
        if node.type in {"arithmetic_expansion", "command_substitution"}:
            inner = text[3:-2] if text.startswith("$((") else text[2:-1]
            return [self.arithmetic(self.inside(protected(inner)), line)]
        if node.type == "process_substitution":
            return [self.knowledge.unknowns.mark(Unknown(why=f"is a file that the script makes (line {line})"))]
        if node.type == "simple_expansion" and text[1:2].isdigit():  # $12 is $1 and a 2
            return [f"{each}{text[2:]}" for each in self.parameter(text[1], None, line)]
        if node.type == "simple_expansion":
            return self.parameter(text[1:], None, line)
        return braced(self, node, text[2:-1], line)

    def parameter(self, name: str, index: str | None, line: int) -> list[str]:
        """The texts of `$name` or `${name[index]}`: several for arguments and whole arrays."""
        arguments = self.state.arguments
        if name in {"@", "*"}:
            return list(arguments)
        if name == "#":
            return [str(len(arguments))]
        if name == "0":
            return [self.where.rsplit("/", 1)[-1]]
        if name.isdigit():
            if int(name) <= len(arguments):
                return [arguments[int(name) - 1]]
            return [self.knowledge.unknowns.mark(
                Unknown(why="is an argument of the script, which is not given", name=name, unset=True))]  # fmt: skip
        if not (name[0].isalpha() or name[0] == "_"):
            return [self.knowledge.unknowns.mark(Unknown(why=f"is known only when it runs (line {line})"))]
        value = self.value(name)
        if index is None:
            index = "0"
        if isinstance(value, str):
            return [value] if index in {"0", "@", "*"} else [""]
        if index in {"@", "*"}:
            return value.texts()
        return [value.items.get(self.index(value, index, line), "")]

    def index(self, value: Array, index: str, line: int) -> str:
        index = self.inside(index).strip("\"'")
        if value.named:
            return index
        found = self.arithmetic(index, line)
        behind = max(map(int, value.items), default=-1) + 1
        return str(behind + int(found)) if found.startswith("-") and found[1:].isdigit() else found

    # -- variables in arithmetic

    def _item(self, name: str) -> str:
        base, _, index = name.partition("[")
        found = self.parameter(base, index[:-1] if index else None, 0)
        return found[0] if found else ""

    def put(self, name: str, value: str, line: int) -> None:
        base, _, index = name.partition("[")
        if not index:
            self.knowledge.assign(self.state, base, value, line)
            return
        old = self.state.variables.get(base, Array({}))
        items = dict(old.items) if isinstance(old, Array) else {"0": old}
        items[self.index(old if isinstance(old, Array) else Array({}), index[:-1], line)] = value
        self.knowledge.assign(self.state, base, Array(items, named=isinstance(old, Array) and old.named), line)


def _below(node: "Node") -> Iterator["Node"]:
    yield node
    for child in node.children:
        yield from _below(child)
