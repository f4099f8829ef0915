"""Keys of a `config.json`: read as what they must be, with every complaint kept until all are known."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.resources import files

from hops.errors import UsageError
from hops.units import shown

NOTHING = frozenset(files(__package__).joinpath("hugging_face_keys.txt").read_text(encoding="utf-8").split())
"""Keys that change neither shapes nor counts here: how it is generated from, initialised, regularised, scaled."""


@dataclass(slots=True)
class Keys:
    """The keys of one file. Reads answer with something of the right type even for a wrong value; complaints wait."""

    name: str
    family: str
    data: Mapping[str, object]
    used: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def unused(self) -> tuple[str, ...]:
        """Keys that change nothing."""
        return tuple(key for key in self.data if key not in self.used)

    def count(self, *names: str, default: int | None = None) -> int:
        """A whole number of at least 1, by the first of the names that is there and not null."""
        return self._whole(names, default, least=1)

    def number(self, *names: str, default: int) -> int:
        """A whole number of at least 0."""
        return self._whole(names, default, least=0)

    def optional_count(self, *names: str, default: int | None) -> int | None:
        """A whole number of at least 1; null, or 0, means none; `default` if it is not there."""
        for name in names:
            if name in self.data:
                self._use(name)
                value = self.data[name]
                if value is None or value == 0:
                    return None
                return self.count(name)
        return default

    def flag(self, name: str, *, default: bool, only: bool | None = None) -> bool:
        """True or false; `only`: the one value that can be followed."""
        value = self.data.get(name)
        if value is None:
            return default
        self._use(name)
        if not isinstance(value, bool):
            self.fault(name, f"got {shown(value)}, expected true or false")
            return default
        if only is not None and value is not only:
            self.refuse(name, f"{name} {str(value).lower()}")
        return value

    def texts(self, name: str, known: set[str]) -> tuple[str, ...]:
        """A list of known words, one per layer; () if it is not there."""
        value = self.data.get(name)
        if value is None:
            return ()
        self._use(name)
        if not isinstance(value, list) or not all(each in known for each in value):
            self.fault(name, f"got {shown(value)}, expected a list of {' or '.join(sorted(known))}")
            return ()
        return tuple(value)

    def numbers(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers; () if it is not there."""
        value = self.data.get(name)
        if value is None:
            return ()
        self._use(name)
        if not isinstance(value, list) or not all(type(each) is int for each in value):
            self.fault(name, f"got {shown(value)}, expected a list of whole numbers")
            return ()
        return tuple(value)

    def mapping(self, name: str, only: Mapping[str, object]) -> dict[str, int]:
        """Whole numbers of a mapping inside; `only`: values of other keys that can be followed."""
        value = self.data.get(name)
        if value is None:
            return {}
        self._use(name)
        if not isinstance(value, Mapping):
            self.fault(name, f"got {shown(value)}, expected a mapping")
            return {}
        for key, each in only.items():
            if key in value and value[key] != each:
                self.refuse(name, f"{key} {value[key]}")
        return {key: each for key, each in value.items() if type(each) is int and each > 0}

    def refuse(self, name: str, what: str) -> None:
        """Complain of what HOPS does not model."""
        self.fault(name, f"{what} is not modelled")

    def finish(self) -> None:
        """Raises UsageError with all complaints, and all keys that are neither applied nor known to change nothing."""
        for key in self.unused:
            if key not in NOTHING:
                near = get_close_matches(key, [*self.used, *NOTHING], n=1, cutoff=0.85)
                hint = f"did you mean {near[0]}? " if near else ""
                self.fault(key, f"is no key of {self.family} that HOPS knows; {hint}leave it out if it changes nothing")
        if self.faults:
            raise UsageError("\n".join(dict.fromkeys(self.faults)))

    def _whole(self, names: tuple[str, ...], default: int | None, *, least: int) -> int:
        for name in names:
            value = self.data.get(name)
            if value is None:
                continue
            self._use(name)
            if type(value) is int and least <= value <= 10**9:
                return value
            self.fault(name, f"got {shown(value)}, expected a whole number from {least} on")
            return max(1, least)
        if default is None:
            self.faults.append(f"{self.name}: no {names[0]}, which every {self.family} has")
        return max(1, least) if default is None else default

    def _use(self, name: str) -> None:
        if name not in self.used:
            self.used.append(name)

    def shared(self, hidden: int, heads: int) -> int:
        """Width of a head, where all together are as wide as the hidden state."""
        if hidden % heads and self.data.get("head_dim") is None:
            self.fault(
                "num_attention_heads", f"got {heads} for a hidden size of {hidden}, expected one that divides it"
            )
        return max(1, hidden // heads)

    def fault(self, name: str, what: str) -> None:
        """Complain of a key."""
        self.faults.append(f"{self.name}: {name}: {what}")
