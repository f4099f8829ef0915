"""Compiles a number-crunching function when numba is installed; the same source runs as plain Python when it is not."""

import os
import sys
from collections.abc import Callable
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Generic, ParamSpec, TypeVar, cast
from zlib import crc32

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")
WORTH_CALLING_AGAIN, WORTH_CALLING, WORTH_IMPORTING = (
    50,
    2_000,
    2_000_000,
)  # turns of a loop, at about half a microsecond each in Python


class Kernel(Generic[P, R]):
    """A function over integers and arrays. Calling it runs Python, which takes lists as well (and is faster on them).

    `fast` is the compiled form, which takes NumPy arrays. It is compiled (or read from numba's cache) at the first
    access, since importing numba costs half a second that a short run never earns back. Kernels may call kernels.
    """

    def __init__(self, function: Callable[P, R], *, allocates: bool = True, once: bool = False) -> None:
        self.function, self._allocates, self._once = function, allocates, once
        self._turns, self._is_cached = 0, False
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
        self._turns += work  # many short loops are worth as much as a long one
        if pays(work) or (work >= WORTH_CALLING_AGAIN and (self.is_compiled or pays(self._turns // 10))):
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
        return self._compiled(cache=True)

    @property
    def is_cached(self) -> bool:
        """Whether numba has compiled it before, in this process or another; else the first call takes its time."""
        if (
            self._is_cached or not available() or os.environ.get("NUMBA_DISABLE_JIT") == "1"
        ):  # numba's own switch: kernels stay Python
            return True
        dispatcher: Any = self.fast
        name = f"*.{dispatcher.py_func.__qualname__}-*.nbi"
        self._is_cached = bool(dispatcher.signatures) or any(Path(dispatcher.stats.cache_path).glob(name))
        return self._is_cached

    @cached_property
    def part(self) -> Callable[P, R]:
        """The compiled function as other compiled ones call it: without what a call from Python needs."""
        if not self._allocates:  # many arrays are passed on: a call would cost more than the body
            inline: dict[str, Any] = {"inline": "always"} if self._once else {"forceinline": True}
        else:
            inline = {}
        return self._compiled(no_cpython_wrapper=True, no_cfunc_wrapper=True, **inline)

    def _compiled(self, **options: Any) -> Callable[P, R]:
        numba = _numba()
        if not self._allocates:
            options["_nrt"] = False
        return cast("Callable[P, R]", numba.njit(**options)(_with_compiled_callees(self.function)))


@cache
def _numba() -> Any:
    """The package, imported without scipy.

    numba imports scipy to see whether there is a BLAS, which takes as long as the rest and which no kernel needs. Here
    it is told that there is one if scipy is installed; it imports scipy when somebody's function does need it.
    """
    numba = import_module("numba")
    if not {"scipy.linalg", "numba.np.arraymath"} & sys.modules.keys():
        sys.modules["scipy.linalg"] = cast("ModuleType", None)  # what Python takes for a module that cannot be imported
        try:
            arraymath: Any = import_module("numba.np.arraymath")
            arraymath._HAVE_BLAS = find_spec("scipy") is not None  # noqa: SLF001
        finally:
            del sys.modules["scipy.linalg"]
    return numba


def load() -> None:
    """Import numba now, since it will be used; what is done before then is quicker, too."""
    _numba()


def _with_compiled_callees(function: Callable[P, R]) -> FunctionType:
    """A copy of the function in which the kernels that it calls by name are compiled ones.

    Its name, and so that of its file in numba's cache, says what all these kernels are made of: numba itself would not
    notice a change in one that stands in another file.
    """
    assert isinstance(function, FunctionType), f"{function!r} is no plain function"
    names = function.__globals__ | {name: called.part for name, called in _called(function).items()}
    copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    copy.__qualname__ = f"{function.__qualname__}_{crc32(_source(function)):08x}"
    copy.__module__ = function.__module__
    return copy


def _called(function: FunctionType) -> dict[str, "Kernel[Any, Any]"]:
    """The kernels that a function calls, by name."""
    known = function.__globals__
    return {name: known[name] for name in function.__code__.co_names if isinstance(known.get(name), Kernel)}


def _source(function: FunctionType) -> bytes:
    """What a function and all kernels below it do, as bytes. (No function below itself: kernels do not recurse.)"""
    code = function.__code__
    globals_used = [function.__globals__.get(name) for name in code.co_names]
    constants = [value for value in globals_used if isinstance(value, int | float)]
    own = _body(code) + repr(constants).encode()
    below = [
        repr((called._allocates, called._once)).encode() + _source(cast("FunctionType", called.function))  # noqa: SLF001
        for called in _called(function).values()
    ]
    return b"".join([own, *below])


def _body(code: CodeType) -> bytes:
    """What a code object does, the same in every process: those inside it (of comprehensions) print their addresses."""
    constants = [_body(each) if isinstance(each, CodeType) else repr(each).encode() for each in code.co_consts]
    return b"".join([code.co_code, *constants, repr(code.co_names).encode()])


def available() -> bool:
    """Whether numba is installed (it has no wheels for Intel Macs)."""
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


def bare_kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Decorator: make the function a Kernel that makes no arrays, which takes a third of the time to compile."""
    return Kernel(function, allocates=False)


def kernel_part(function: Callable[P, R]) -> Kernel[P, R]:
    """Decorator: the same for one that is called in one place, and is compiled into its caller: half the time again."""
    return Kernel(function, allocates=False, once=True)
