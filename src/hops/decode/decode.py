"""From a file to typed data, or to one error that lists everything that is wrong with it, each with its place.

A file's form is a type: a frozen dataclass of dataclasses, tuples, mappings, scalars and the field types of
`quantities`. Text is no number, all keys must be known, and what a `__post_init__` refuses is said like the rest.
"""

import json
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path as File
from typing import Any, Final, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator
from pydantic_core.core_schema import no_info_wrap_validator_function

from hops.decode.document import Complaint, Document, Position, dotted, parse
from hops.decode.messages import complaints
from hops.decode.quantities import problem
from hops.errors import HopsError, UsageError
from hops.units import shown

T = TypeVar("T")
LARGEST: Final = 20_000_000  # bytes of a file that people write
LARGEST_DATA: Final = 1_000_000_000  # bytes of a file that programs write
_MOST_SHOWN = 50
_PLACED = 500_000  # characters of JSON that are read again for places; about 5 s


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where data comes from: what messages about it begin with, and the error that they become.

    Attributes:
        name: the file, or what stands for it.
        error: what is raised.
        document: the places of its values, if they are known.
        text: the JSON that holds it; places are looked for once they are needed.
        line: of the file, if it is one of its lines alone.
        strict: whether keys that the type does not have are wrong; in others' files they are let be.
    """

    name: str
    error: type[HopsError] = UsageError
    document: Document | None = None
    text: str | None = None
    line: int | None = None
    strict: bool = True

    def places(self, data: object) -> Document:
        """The document with the places of its values; without any, all stand at the source itself."""
        if self.document is not None:
            return self.document
        if self.text is not None and len(self.text) < _PLACED:  # JSON is YAML, too, but reading it as such is slow
            found = parse(self.text, name=self.name, line=self.line or 1)
            if not found.complaints:
                return found
        return Document(data=data, values={(): self.top})

    @property
    def complaints(self) -> tuple[Complaint, ...]:
        """What is wrong with the document itself, whatever is made of it."""
        return () if self.document is None else self.document.complaints

    def report(self, data: object, found: Iterable[Complaint]) -> str:
        """The message about what is wrong with the data, one complaint a line."""
        return report(self.places(data), found)

    @property
    def top(self) -> Position:
        """The place of the source as a whole."""
        return Position(text=self.name if self.line is None else f"{self.name}:{self.line}")


def decode(kind: type[T], data: object, where: Where) -> T:
    """The data as the type asks for: `decode(FaultPlan, {"faults": []}, Where(name="plan.json"))`.

    Args:
        kind: the type.
        data: dicts, lists or tuples, and scalars, as JSON and YAML have them.
        where: what messages begin with.

    Raises `where.error` with everything that is wrong, one a line: `file:line:column: path.to.key: what`.
    """
    value: T | None = None
    found: list[Complaint] = []
    try:
        value = _validator(cast("Hashable", kind), strict=where.strict).validate_python(data)
    except ValidationError as error:
        found = complaints(error, kind)
    if where.document is not None:
        found = without_echoes(where.document, found)
    if found or value is None:
        raise where.error(where.report(data, found))
    return value


def decode_json(kind: type[T], text: str, where: Where) -> T:
    """The same from the text of a JSON document."""
    return decode(kind, from_json(text, where), replace(where, text=text))


def read(
    kind: type[T],
    path: File | str,
    *,
    error: type[HopsError] = UsageError,
    expected: str,
    largest: int = LARGEST,
    strict: bool = True,
) -> T:
    """Read a file: JSON if its name ends in `.json`, else YAML.

    Raises `error` if it cannot be read, saying what is `expected` of it, or with everything that is wrong.
    """
    data, where = opened(path, error=error, expected=expected, largest=largest)
    return decode(kind, data, replace(where, strict=strict))


def opened(
    path: File | str, *, error: type[HopsError] = UsageError, expected: str, largest: int = LARGEST
) -> tuple[Any, Where]:
    """The plain data of a JSON or YAML file, and where it is from; for those who look before they `decode`."""
    file = File(path)
    text = read_text(file, error=error, expected=expected, largest=largest)
    where = Where(name=str(file), error=error)
    if file.suffix == ".json":
        return from_json(text, where), replace(where, text=text)
    document = parse(text, name=str(file))
    return document.data, replace(where, document=document)


def read_lines(kind: type[T], path: File | str, *, error: type[HopsError] = UsageError, expected: str) -> tuple[T, ...]:
    """Read JSON lines, a value of the type on each that is not empty. Raises as `read` does, for the first bad line."""
    text = read_text(File(path), error=error, expected=expected, largest=LARGEST_DATA)
    where = Where(name=str(path), error=error)
    lines = enumerate(text.splitlines(), start=1)
    return tuple(decode_json(kind, line, replace(where, line=number)) for number, line in lines if line.strip())


def read_text(
    file: File,
    *,
    error: type[HopsError],
    expected: str,
    largest: int = LARGEST,
    fix: Callable[[File], str] | None = None,
) -> str:
    """The content of a text file in UTF-8.

    Raises `error` saying why it cannot be read, and the `fix` for a file that is not there, or what is `expected`.
    """
    try:
        with file.open("rb") as stream:  # endless files, too, are read up to their limit only
            raw = stream.read(largest + 1)
    except (OSError, ValueError) as refusal:  # ValueError: a NUL in the name
        why = reason(refusal) if isinstance(refusal, OSError) else str(refusal)
        name = shown(str(file)) if "\0" in str(file) else file
        raise error(f"{name}: cannot be read: {why}{f'; expected {expected}' if fix is None else fix(file)}") from None
    return _decoded(raw, str(file), error=error, expected=expected, largest=largest)


def read_input(*, error: type[HopsError], expected: str, largest: int = LARGEST) -> str:
    """What stands on standard input, as `read_text` reads a file. Raises `error`."""
    return _decoded(sys.stdin.buffer.read(largest + 1), "<stdin>", error=error, expected=expected, largest=largest)


def _decoded(raw: bytes, name: str, *, error: type[HopsError], expected: str, largest: int) -> str:
    if len(raw) > largest:
        raise error(f"{name}: got more than {largest} bytes, expected {expected} of at most that many")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as refusal:
        raise error(f"{name}: is not text in UTF-8 (byte {refusal.start}), expected {expected}") from None
    if "\0" in text:
        raise error(f"{name}: is binary (a zero byte at {text.index(chr(0))}), expected {expected}")
    return text


def reason(error: OSError) -> str:
    """Why the system does not give a file, in words."""
    return {
        FileNotFoundError: "there is no such file",
        IsADirectoryError: "it is a folder",
        PermissionError: "reading it is not permitted",
    }.get(type(error), str(error.strerror or error))


def from_json(text: str, where: Where) -> Any:
    """Plain data of a JSON document. Raises `where.error` with the place of what is no JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = Position.at(where.name, (where.line or 1) + error.lineno - 1, error.colno).text
        raise where.error(f"{place}: is not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets without end
        raise where.error(f"{where.top.text}: is not JSON that can be read: {error}") from None


def tagged(value: object, key: str, kinds: Mapping[str, type[T]], where: Where) -> tuple[type[T], dict[str, Any]]:
    """The type that the key of a mapping names, and the other keys. Raises `where.error` if there is none."""
    rest = dict(value) if isinstance(value, dict) else {}
    name = rest.pop(key, value)
    if not isinstance(name, str) or name not in kinds:
        got = f"{key} {shown(name)}" if rest else shown(name)
        raise where.error(f"{where.top.text}: got {got}, expected a mapping with {key}, one of {', '.join(kinds)}")
    return kinds[name], rest


@cache
def _validator(kind: Hashable, *, strict: bool) -> SchemaValidator:
    return SchemaValidator(_exact(TypeAdapter(cast("Any", kind)).core_schema, "forbid" if strict else "ignore"))


def _exact(schema: Any, unknown: str) -> Any:
    """The schema with scalars of their own types only, refusals of dataclasses as complaints, a word on other keys."""
    if isinstance(schema, list | tuple):
        return [_exact(each, unknown) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: each if key in ("default", "metadata") else _exact(each, unknown) for key, each in schema.items()}
    match inner.get("type"):
        case "int" | "str" | "bool":
            return {**inner, "strict": True}
        case "float":
            return {**inner, "strict": True, "allow_inf_nan": False}
        case "dataclass-args":
            return {**inner, "extra_behavior": unknown}
        case "dataclass":
            reference = inner.pop("ref", None)
            return no_info_wrap_validator_function(_refusals_said, inner, ref=reference)
    return inner


def _refusals_said(value: object, made: Any) -> object:
    try:
        return made(value)
    except HopsError as error:
        raise problem(str(error)) from None


def without_echoes(document: Document, found: Iterable[Complaint]) -> list[Complaint]:
    """All complaints, but not those that follow from a value that could not even be read."""
    if document.data is None and document.complaints:  # nothing could be read, and all else follows from that
        return list(document.complaints)
    unread = {each.path for each in document.complaints if each.path}
    follows = (any(each.path[:length] in unread for length in range(len(each.path) + 1)) for each in found)
    return [*document.complaints, *(each for each, echo in zip(found, follows, strict=True) if not echo)]


def report(document: Document, found: Iterable[Complaint]) -> str:
    """All complaints, one a line, in the order of the file; the first fifty if there are more."""
    placed = [(each.place or document.place(each.path, at_key=each.at_key), each) for each in found]
    placed.sort(key=lambda pair: pair[0].order)
    lines = [f"{place.text and f'{place.text}: '}{_said(document, each)}" for place, each in placed[:_MOST_SHOWN]]
    more = len(placed) - _MOST_SHOWN
    return "\n".join([*lines, f"... and {more} more"] if more > 0 else lines)


def _said(document: Document, complaint: Complaint) -> str:
    where = dotted(document.written(complaint.path))
    return f"{where}: {complaint.what}" if where else complaint.what
