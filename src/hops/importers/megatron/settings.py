"""The arguments of a launch: read from words or a document, sorted into applied, without effect and refused."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hops.errors import UsageError
from hops.importers.megatron.flags import ALIASES, Flag, Setting, by_name, find, nearest
from hops.importers.shell.values import Unknown, Unknowns, is_known
from hops.units import shown

_MOST_HINTS = 20  # unknown flags whose nearest spelling is looked up: it takes a while
OFF = {"false", "False", "", "None", "none", "null"}


@dataclass(slots=True)
class Words:
    """What reading words found, beside the settings.

    Attributes:
        unknown: flags that Megatron-LM does not have.
        faults: what cannot be read, as complete sentences.
        notes: what was read under an assumption.
    """

    settings: list[Setting] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_words(words: Sequence[str], bare: Sequence[bool], unknowns: Unknowns) -> Words:
    """Arguments as Megatron-LM's parser takes them: a flag and the words that it asks for."""
    out = Words()
    queue = list(_split(words, bare))
    at, last = 0, ""
    while at < len(queue):
        word, is_bare = queue[at]
        at += 1
        if not is_known(word) and not word.startswith("--"):
            several = is_bare or all(unknown.words for unknown in unknowns.among(word))
            if not several or any(is_known(each) for each in word):
                out.faults.append(f"got {unknowns.printed(word)!r} where a flag was expected")
            for unknown in unknowns.among(word):
                _maybe_flags(out, unknown, unknowns)
            continue
        if not word.startswith("--") or word == "--":
            if word in {"-h", "--"}:
                continue
            after = f" after {last}" if last else ""
            out.faults.append(f"got {word!r}{after} where a flag was expected; quote values that hold blanks")
            continue
        written, equals, value = word.partition("=")
        last = written
        row = find(written)
        takes = row.takes if row is not None else "many"
        end = at if equals else _end(queue, at, takes)
        values = [value] if equals else [text for text, _ in queue[at:end]]
        at = end
        if not is_known(written):
            out.faults.append(f"got {unknowns.printed(written)!r}, a flag whose name {_cause(unknowns, written)}")
        elif row is None:
            out.unknown.append(written)
        else:
            _add(out, written, row, values)
    return out


def _split(words: Sequence[str], bare: Sequence[bool]) -> Iterator[tuple[str, bool]]:
    """Words, where a quoted one holds a flag and its value ("--num-layers 24") both of them."""
    for word, is_bare in zip(words, bare, strict=True):
        if word.lstrip().startswith("--") and re.search(r"\s", word.strip()) and "=" not in word.split()[0]:
            try:
                yield from ((each, False) for each in shlex.split(word))
            except ValueError:
                yield from ((each, False) for each in word.split())
        else:
            yield word, is_bare


def _end(queue: Sequence[tuple[str, bool]], at: int, takes: str) -> int:
    """Up to where the words after a flag belong to it."""
    most = {"none": 0, "one": 1, "many": len(queue)}[takes]
    end = at
    while end < len(queue) and end - at < most and not queue[end][0].startswith("--"):
        end += 1
    return end


def _add(out: Words, written: str, row: Flag, values: list[str]) -> None:
    if row.takes == "none":
        if values:
            out.faults.append(f"{written} takes no value, got {values[0]!r}")
        out.settings.append(Setting(written, row, (row.sets,)))
    elif not values and row.takes == "one":
        out.faults.append(f"{written} is without its value")
    else:
        out.settings.append(Setting(written, row, tuple(values)))


def _maybe_flags(out: Words, unknown: Unknown, unknowns: Unknowns) -> None:
    """A word that may hold flags: nothing, something, or one of two things."""
    name = f"${unknown.name}" if unknown.name else "$(...)"
    if unknown.unset:
        out.notes.append(f"{name} {unknown.why}: taken as empty; --set {unknown.name}=... says otherwise")
        return
    harmless = bool(unknown.either)
    for each in unknown.either:
        words = each.split()
        inner = read_words(words, [True] * len(words), unknowns)
        harmless &= not inner.unknown and not inner.faults
        harmless &= all(setting.row.treatment == "nothing" for setting in inner.settings)
        out.settings += inner.settings if harmless else []
    if not harmless:
        out.faults.append(f"flags may stand in {name}, which {unknown.why}{_fix(unknown)}")


def _cause(unknowns: Unknowns, text: str) -> str:
    found = unknowns.among(text)[0]
    return f"{found.why}{_fix(found)}"


def _fix(unknown: Unknown) -> str:
    return f"; add --set {unknown.name}=VALUE" if unknown.name else ""


def read_flag_mapping(document: Mapping[str, object]) -> Words:
    """Arguments of a document that maps flags to values: true is a bare flag, false and null none at all."""
    out = Words()
    for key, value in document.items():
        row = find(str(key))
        if row is None:
            out.unknown.append(str(key))
        elif value is None or (value is False and row.takes == "none"):
            continue
        elif row.takes == "none" and (value is True or value == "true"):
            out.settings.append(Setting(_dashed(key), row, (row.sets,)))
        elif row.takes == "none":
            out.faults.append(f"{key}: got {shown(value)}, expected true or false")
        else:
            _add_value(out, _dashed(key), row, value)
    return out


def read_name_mapping(document: Mapping[str, object]) -> Words:
    """Arguments of a configuration file (--yaml-cfg): names and values, or sections of them; null is the default."""
    out = Words()
    sections = [value for value in document.values() if isinstance(value, dict)]
    entries = [entry for section in (document, *sections) for entry in section.items()]
    for key, value in entries:
        if value is None or (isinstance(value, dict) and document.get(key) is value):
            continue
        row = by_name().get(str(key)) or find(str(key))
        if row is None:
            out.unknown.append(str(key))
        else:
            _add_value(out, str(key), by_name().get(row.name, row), value)
    return out


def _add_value(out: Words, written: str, row: Flag, value: object) -> None:
    """A value of a document: a word, or a list of words."""
    texts = value if isinstance(value, (list, tuple)) else [value]
    wrong = next((each for each in texts if isinstance(each, (dict, list, tuple, set))), None)
    if wrong is not None:
        out.faults.append(f"{written}: got {shown(wrong)}, expected a value or a list of values")
    else:
        words = tuple(str(each).lower() if isinstance(each, bool) else str(each) for each in texts)
        out.settings.append(Setting(written, row, words))


def _dashed(key: object) -> str:
    return str(key) if str(key).startswith("--") else f"--{key}"


class Settings:
    """The arguments of one launch by name; getters say what was expected where a value is missing or wrong."""

    def __init__(self, every: Iterable[Setting], *, where: str, unknowns: Unknowns | None = None) -> None:
        self._by_name: dict[str, Setting] = {}
        for setting in every:  # the last one holds, as in Megatron-LM
            self._by_name[ALIASES.get(setting.row.name, setting.row.name)] = setting
        self._where = where
        self._unknowns = unknowns or Unknowns()

    def all(self) -> list[Setting]:
        """Each argument once, in the order given."""
        return list(self._by_name.values())

    def given(self, name: str) -> bool:
        return name in self._by_name

    def written(self, name: str) -> str:
        """How the launch spells it, or how it could."""
        if name in self._by_name:
            return self._by_name[name].written
        row = by_name()[name]
        return f"--{row.flag}" if row.flag else name

    def printed(self, setting: Setting) -> str:
        """An argument with `$NAME` where it is not known."""
        return self._unknowns.printed(str(setting))

    def unclear(self, setting: Setting) -> str:
        """Why a value is not known, "" if it is."""
        return "" if is_known(setting.value) else f"its value {_cause(self._unknowns, setting.value)}"

    def fault(self, name: str, expected: str) -> UsageError:
        """An error about one argument."""
        return UsageError(f"{self._where}: {self.written(name)}: got {self.text(name)!r}, expected {expected}")

    def text(self, name: str, default: str = "") -> str:
        """Its words. Raises UsageError where they are known only when the script runs."""
        if name not in self._by_name:
            return default
        value = self._by_name[name].value
        if not is_known(value):
            raise UsageError(f"{self._where}: {self.printed(self._by_name[name])}: {self.unclear(self._by_name[name])}")
        return value.strip("\"'") or value

    def count(self, name: str, default: int | None = None) -> int:
        """A whole number >= 1. Without a default it is required."""
        if name not in self._by_name:
            if default is None:
                raise UsageError(f"{self._where}: {self.written(name)} is missing; add it, such as "
                                 f"{self.written(name)} 8")  # fmt: skip
            return default
        text = self.text(name).replace("_", "") if re.fullmatch(r"\d+(_\d+)*", self.text(name)) else self.text(name)
        if not re.fullmatch(r"[0-9]{1,15}", text) or int(text) < 1:
            raise self.fault(name, "a whole number >= 1")
        return int(text)

    def optional(self, name: str) -> int | None:
        """A whole number >= 1, if it is given."""
        return self.count(name) if name in self._by_name and self.text(name) not in OFF else None

    def number(self, name: str, default: float) -> float:
        """A number >= 0."""
        if name not in self._by_name:
            return default
        try:
            number = float(self.text(name))
        except ValueError:
            number = -1.0
        if not 0 <= number < float("inf"):
            raise self.fault(name, "a number >= 0")
        return number

    def on(self, name: str, *, default: bool = False) -> bool:
        """Whether a switch is set."""
        if name not in self._by_name:
            return default
        text = self.text(name)
        if text.lower() not in {"true", "false", "none", ""}:
            raise self.fault(name, "true or false")
        return text.lower() == "true"

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        """One of some words."""
        value = self.text(name, default)
        if value not in choices:
            raise self.fault(name, f"one of {', '.join(each for each in choices if each)}")
        return value

    def active(self, needs: str, copies: int) -> bool:
        """Whether what a flag needs to have an effect is on."""
        if not needs:
            return True
        if needs == "data_parallel":
            return copies > 1
        if needs not in self._by_name:
            return False
        value = self._by_name[needs].value
        return value not in OFF and value != self._by_name[needs].row.default and value != "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """What was done about every argument of a launch, each as it was written."""

    applied: tuple[str, ...] = ()
    nothing: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def sort_out(settings: Settings, *, copies: int, where: str, unknown: Sequence[str]) -> Sorted:
    """Sort all arguments. Raises UsageError that names every refused and every unknown flag."""
    applied: list[str] = []
    nothing: list[str] = []
    refused: list[str] = []
    for setting in settings.all():
        text = settings.printed(setting)
        row = setting.row
        if row.treatment == "applied":
            applied.append(text)
        elif row.treatment == "nothing" or _is_default(setting) or not settings.active(row.needs, copies):
            nothing.append(text)
        else:
            refused.append(f"{text}: {settings.unclear(setting) or row.why}")
    if refused or unknown:
        raise UsageError("\n".join([
            f"{where}: these flags change the run, but not its spec; take one out with --without NAME to go on",
            *(f"  {each}" for each in refused),
            *(f"  {each}{_hint(each) if at < _MOST_HINTS else ''}: no flag of Megatron-LM is spelt so"
              for at, each in enumerate(unknown)),
        ]))  # fmt: skip
    return Sorted(applied=tuple(applied), nothing=tuple(nothing))


def _hint(written: str) -> str:
    """The nearest spelling, as a flag or as a name of a configuration file."""
    near = nearest(written)
    if not near:
        return ""
    return f" (did you mean {near if written.startswith('--') else near[2:].replace('-', '_')}?)"


def _is_default(setting: Setting) -> bool:
    if setting.value.lower() in {"none", "null"}:
        return True
    value, default = setting.value, setting.row.default
    if setting.row.takes == "none":
        return value == default
    try:
        return float(value) == float(default)
    except ValueError:
        return value == default
