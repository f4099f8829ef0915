"""A registry knows the members of one family by name: ours, and outsiders' through entry points."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib.metadata import entry_points
from inspect import Parameter, signature
from typing import Any, Generic, TypeVar

from hops.errors import HopsError, UsageError

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to classes of one family.

    Args:
        family: what a member is called in messages, such as `schedule`.
        group: entry-point group in which outsiders announce members, such as `hops.schedules`.
    """

    def __init__(self, *, family: str, group: str) -> None:
        self.family = family
        self.group = group
        self._members: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Class decorator: make the class known under `name`."""

        def add(member: type[T]) -> type[T]:
            assert name not in self._members, f"{self.family} {name!r} is registered twice"
            self._members[name] = member
            return member

        return add

    def names(self) -> list[str]:
        """All names: ours, then outsiders', each sorted, so that it does not matter which file was imported first."""
        ours = sorted(self._members)
        theirs = sorted({point.name for point in entry_points(group=self.group)} - set(ours))
        return ours + theirs

    def get(self, name: str) -> type[T]:
        """The class of that name. Raises UsageError, with the nearest name, if there is none."""
        if name in self._members:
            return self._members[name]
        for point in entry_points(group=self.group):
            if point.name == name:
                loaded: type[T] = point.load()
                return loaded
        known = self.names()
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UsageError(f"unknown {self.family} {name!r}: {hint}known are {', '.join(sorted(known))}")


def own_parameters(member: type[object], given: int) -> dict[str, Parameter]:
    """The parameters that a member takes by name, after the first `given` ones, which HOPS gives it."""
    if member.__init__ is object.__init__:
        return {}
    return dict(list(signature(member).parameters.items())[given:])


def made(registry: Registry[T], name: str, given: Sequence[object], parameters: Mapping[str, Any]) -> T:
    """A member of that name, made from what HOPS gives it and parameters of its own.

    Raises UsageError for a name or parameters that there are not, and for a constructor that fails.
    """
    member = registry.get(name)
    known = own_parameters(member, len(given))
    unknown = [key for key in parameters if key not in known]
    if unknown:
        takes = ", ".join(known) or "none"
        near = get_close_matches(unknown[0], known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"unknown parameter {unknown[0]} of the {registry.family} {name}, it takes {takes}{hint}")
    try:
        return member(*given, **parameters)
    except HopsError:
        raise
    except Exception as error:  # something is missing, of the wrong type, or the plug-in's own fault
        raise UsageError(f"the {registry.family} {name} cannot be made: {type(error).__name__}: {error}") from error
