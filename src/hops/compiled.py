"""Compiles a number-crunching function when numba is installed; the same source runs as plain Python when it is not."""

import sys
from collections.abc import Callable
from functools import cached_property
from importlib.util import find_spec
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")
WORTH_CALLING, WORTH_IMPORTING = 2_000, 2_000_000  # turns of a loop, at about half a microsecond each in Python


class Kernel(Generic[P, R]):
    """A function over integers and arrays. Calling it runs Python, which takes lists as well (and is faster on them).

    `fast` is the compiled form, which takes NumPy arrays. It is compiled (or read from numba's cache) at the first
    access, since importing numba costs half a second that a short run never earns back. Kernels may call kernels.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    @property
    def is_compiled(self) -> bool:
        """Whether `fast` has been used before in this process."""
        return "fast" in self.__dict__

    @property
    def ready(self) -> Callable[P, R]:
        """The compiled function if it is there already, else the plain one: what a single call is quickest with."""
        return self.fast if self.is_compiled else self.function

    def on(self, work: int, *args: Any) -> R:
        """Run on arrays, in the form that is quicker: compiled where that pays, else as Python on lists.

        Args:
            work: how often the innermost loop runs, about.
            args: numbers, arrays, and NamedTuples of them. What is written into arrays is there in either form.
        """
        if pays(work):
            return cast("Callable[..., R]", self.fast)(*args)
        lists = [_as_lists(each) for each in args]
        result = cast("Callable[..., R]", self.function)(*lists)
        for array, values in zip(args, lists, strict=True):
            _write_back(array, values)
        return result

    @cached_property
    def fast(self) -> Callable[P, R]:
        """The compiled function; the plain one without numba."""
        if not available():
            return self.function
        from numba import njit  # type: ignore[import-untyped,unused-ignore]

        return cast("Callable[P, R]", njit(cache=True)(_with_compiled_callees(self.function)))


def _with_compiled_callees(function: Callable[P, R]) -> FunctionType:
    """A copy of the function in which the kernels that it calls by name are compiled ones."""
    assert isinstance(function, FunctionType), f"{function!r} is no plain function"
    called = set(function.__code__.co_names)
    names = {
        name: value.fast if name in called and isinstance(value, Kernel) else value
        for name, value in function.__globals__.items()
    }
    copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    return copy


def available() -> bool:
    """Whether numba is installed (the extra `fast`)."""
    return find_spec("numba") is not None


def pays(work: int) -> bool:
    """Whether a compiled loop of so many turns is quicker than a plain one, importing numba included."""
    return work >= (WORTH_CALLING if "numba" in sys.modules else WORTH_IMPORTING) and available()


def _as_lists(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return type(value)(*map(_as_lists, value))
    return value


def _write_back(value: Any, values: Any) -> None:
    """Copy lists into the arrays that they were made of, unless these are read-only."""
    if isinstance(value, np.ndarray):
        if value.flags.writeable:
            value[...] = values
    elif isinstance(value, tuple):
        for array, each in zip(value, values, strict=True):
            _write_back(array, each)


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Decorator: make the function a Kernel."""
    return Kernel(function)
