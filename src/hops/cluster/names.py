"""Unknown names are answered with the nearest known one."""

from collections.abc import Iterable
from difflib import get_close_matches


def unknown(family: str, name: str, known: Iterable[str], *, near: Iterable[str] | None = None) -> str:
    """The message for a name that is not known. `near` are further names that may have been meant, such as aliases."""
    names = list(known)
    closest = get_close_matches(name, names if near is None else list(near), n=1)
    hint = f"did you mean {closest[0]!r}? " if closest else ""
    return f"unknown {family} {name!r}: {hint}known are {', '.join(names)}"
