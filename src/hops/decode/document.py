"""A YAML document as plain data, with the position of every key and value, and everything that is wrong with it."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hops.units import shown

Path = tuple[str | int, ...]
_TAG: Final = "tag:yaml.org,2002:"
_MOST_NODES = 100_000  # what aliases expand to counts, so that a small file cannot grow without end
_DEEPEST = 40
_TOO_MUCH: Final = (
    f"too deep or too large, expected at most {_DEEPEST} levels and {_MOST_NODES} values, aliases written out"
)
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where something is written: `spec.yaml:4:17`, or `--set a.b=c`."""

    text: str
    order: tuple[int, int] = (10**9, 0)  # line and column; overrides come after the file

    @classmethod
    def at(cls, name: str, line: int, column: int) -> "Position":
        """A place in a file, counted from 1."""
        return cls(text=f"{name}:{line}:{column}", order=(line, column))


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """One thing that is wrong: where in the document (a path), and what, got, expected, fix in words."""

    path: Path
    what: str
    at_key: bool = False
    place: Position | None = None  # if not the path's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a text says.

    Attributes:
        data: mappings as dicts, sequences as tuples, scalars as str, int, float, bool or None.
        values: place of the value at every path; keys: place of its key.
        complaints: what is wrong with the document itself.
    """

    data: Any
    values: dict[Path, Position] = field(default_factory=dict)
    keys: dict[Path, Position] = field(default_factory=dict)
    complaints: tuple[Complaint, ...] = ()

    @classmethod
    def of(cls, data: object) -> "Document":
        """Plain data of the program itself: dicts, lists or tuples, and scalars. Messages name paths alone."""
        found: list[Complaint] = []
        plain = _plain(data, (), found)
        return cls(data=plain, values={(): Position(text="", order=(0, 0))}, complaints=tuple(found))

    def place(self, path: Path, *, at_key: bool = False) -> Position:
        """Place of the path, or of the nearest thing around it that is written down."""
        places = self.keys if at_key and path in self.keys else self.values
        while path not in places:
            path = path[:-1]
        return places[path]

    def written(self, path: Path) -> Path:
        """The part of the path that is written down: `{name: x}` may stand there as `x` alone."""
        data = self.data
        for depth, part in enumerate(path):
            if not isinstance(data, dict if isinstance(part, str) else tuple | list):
                return path[:depth]
            inside = data if isinstance(data, dict) else dict(enumerate(data))
            if part not in inside:
                return path
            data = inside[part]
        return path


class _TooMuchError(Exception):
    """The document is too large or too deep to be meant."""


def _plain(data: object, path: Path, found: list[Complaint]) -> Any:
    """The data as a document has it; what cannot stand in one is complained about."""
    if len(path) > _DEEPEST:
        found.append(Complaint(path=path[:1], what=f"deeper than {_DEEPEST} levels, expected plain data"))
    elif isinstance(data, Mapping):
        named = {key: each for key, each in data.items() if isinstance(key, str)}
        strangers = (key for key in data if not isinstance(key, str))
        found += [Complaint(path=path, what=f"got {shown(key)} as a key, expected a name") for key in strangers]
        return {key: _plain(each, (*path, key), found) for key, each in named.items()}
    elif isinstance(data, list | tuple):
        return tuple(_plain(each, (*path, index), found) for index, each in enumerate(data))
    elif data is None or isinstance(data, str | int | float | bool):
        return data
    else:
        found.append(Complaint(path=path, what=f"got {shown(data)}, expected text, a number, a list or a mapping"))
    return None


def dotted(path: Path) -> str:
    """A path as people write it: `hardware.nodes[0].name`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def parse(text: str, *, name: str, line: int = 1, fix: str = "") -> Document:
    """Read one YAML 1.2 document. Never raises: what is wrong stands in `complaints`.

    Args:
        text: the document.
        name: what places start with, such as the file's name.
        line: the number of its first line.
        fix: what to do about an empty one.
    """
    top = Position.at(name, line, 1)
    if text.count(",") + text.count("\n") > 2 * _MOST_NODES:  # minutes would go into nodes that are refused anyway
        return _refused(top, _TOO_MUCH)
    try:
        yaml = YAML(typ="safe", pure=True)
        yaml.composer.warn_double_anchors = False  # YAML lets a later anchor take the name of an earlier one
        node = yaml.compose(text)
        if node is None:
            return _refused(top, f"the document is empty, expected a mapping{fix}")
        reader = YamlReader(name, line)
        data = reader.read(node, (), ())
    except MarkedYAMLError as error:
        return _refused(_syntax_place(name, error), _syntax(error))
    except YAMLError as error:
        return _refused(top, f"not a YAML document: {str(error).splitlines()[0]}")
    except (RecursionError, _TooMuchError):
        return _refused(top, _TOO_MUCH)
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, NotImplementedError, AssertionError) as error:
        return _refused(top, f"not a YAML document that can be read: {error}")  # the parser's own slips on odd input
    return Document(data=data, values=reader.values, keys=reader.keys, complaints=tuple(reader.complaints))


def _refused(place: Position, what: str) -> Document:
    return Document(data=None, values={(): place}, complaints=(Complaint(path=(), what=what),))


def _syntax_place(name: str, error: MarkedYAMLError) -> Position:
    mark = error.problem_mark or error.context_mark
    return Position.at(name, mark.line + 1, mark.column + 1) if mark is not None else Position.at(name, 1, 1)


def _syntax(error: MarkedYAMLError) -> str:
    if error.problem == "but found another document":
        return "got a second document (after ---), expected one document; keep one per file"
    context = f" ({error.context})" if error.context else ""
    tab = "\\t" in str(error.problem)
    return f"not YAML: {error.problem}{context}{'; indent with spaces, not tabs' if tab else ''}"


class YamlReader:
    """Walks the nodes of one document once; collects places and complaints on the way."""

    def __init__(self, name: str, line: int) -> None:
        self.name = name
        self.line = line
        self.values: dict[Path, Position] = {}
        self.keys: dict[Path, Position] = {}
        self.complaints: list[Complaint] = []

    def read(self, node: Node, path: Path, around: tuple[Node, ...]) -> Any:
        """Plain data of the node at `path`; `around` are the nodes that contain it."""
        self.values[path] = self.place(node)
        if len(self.values) > _MOST_NODES or len(path) > _DEEPEST:
            raise _TooMuchError
        if node in around:
            self.complain(path, f"the anchor {node.anchor!r} contains itself; write the value out")
            return None
        if isinstance(node, MappingNode):
            return self.mapping(node, path, (*around, node))
        if isinstance(node, SequenceNode):
            self.check_tag(node, path, "seq")
            return tuple(self.read(each, (*path, index), (*around, node)) for index, each in enumerate(node.value))
        assert isinstance(node, ScalarNode)
        return self.scalar(node, path)

    def mapping(self, node: MappingNode, path: Path, around: tuple[Node, ...]) -> dict[str, Any]:
        self.check_tag(node, path, "map")
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self.key(key_node, path)
            if key is None:
                continue
            inner = (*path, key)
            if key in data:
                first = self.keys[inner].text.removeprefix(f"{self.name}:")
                what = f"the key {key} is given twice, first at {first}; remove one"
                self.complaints.append(Complaint(path=inner, what=what, place=self.place(key_node)))
                continue
            self.keys[inner] = self.place(key_node)
            data[key] = self.read(value_node, inner, around)
        return data

    def key(self, node: Node, path: Path) -> str | None:
        """The text of a key, or None after a complaint."""
        if node.tag == f"{_TAG}merge":
            what = "got a merge key <<, which YAML 1.2 does not have; write the keys out"
        elif isinstance(node, ScalarNode) and node.tag == f"{_TAG}str":
            return str(node.value)
        elif isinstance(node, ScalarNode):
            what = f"got {node.value} as a key, expected a name"
        else:
            what = "got a list or a mapping as a key, expected a name"
        label = str(node.value) if isinstance(node, ScalarNode) else "?"
        self.complaints.append(Complaint(path=(*path, label), what=what, place=self.place(node)))
        return None

    def scalar(self, node: ScalarNode, path: Path) -> Hashable:
        tag = str(node.tag).removeprefix(_TAG)
        if tag in ("str", "timestamp"):
            return str(node.value)
        if tag == "null":
            return None
        if tag == "bool":
            return _BOOLEANS.get(node.value.lower(), str(node.value))
        if tag in ("int", "float"):
            return self.number(node.value, path)
        self.complain(path, f"got the tag {node.tag}, expected none: plain values need no tags; remove it")
        return None

    def number(self, text: str, path: Path) -> int | float | str:
        value = _number(text.replace("_", ""))
        if isinstance(value, str) or math.isfinite(value):
            return value
        self.complain(path, f"got {shown(text)[1:-1]}, expected a finite number")
        return text

    def check_tag(self, node: Node, path: Path, usual: str) -> None:
        if node.tag != _TAG + usual:
            self.complain(path, f"got the tag {node.tag}, expected none: plain values need no tags; remove it")

    def complain(self, path: Path, what: str) -> None:
        self.complaints.append(Complaint(path=path, what=what))

    def place(self, node: Node) -> Position:
        mark = node.start_mark
        return Position.at(self.name, mark.line + self.line, mark.column + 1)


def _number(text: str) -> int | float | str:
    """A number as YAML 1.2 writes it; an integer of more digits than anybody means counts as infinite."""
    if len(text) > 40 and text.lstrip("+-").isdigit():
        return math.inf
    for read in (_integer, _real):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _integer(text: str) -> int:
    for prefix, base in (("0o", 8), ("0x", 16)):
        if text.startswith(prefix):
            return int(text[2:], base)
    return int(text)


def _real(text: str) -> float:
    return math.inf if text.lower().lstrip("+-") in (".inf", ".nan") else float(text)
