"""Types of arrays, named once, and what NumPy does slower than need be."""

from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hops.errors import UsageError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


_Number = TypeVar("_Number", bound=np.integer)


def distinct(values: NDArray[_Number]) -> NDArray[_Number]:
    """The values that occur, rising: `np.unique`, in a tenth of the time where equal ones mostly follow each other."""
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    return np.unique(values[np.concatenate(([0], changes)) if len(values) else changes])


def table_library(name: str) -> Any:
    """Pandas or pyarrow, for those who have them. Raises UsageError if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(f"this needs {name}, which is not installed: run `pip install {name}`") from error
