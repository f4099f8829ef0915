"""A kernel runs as plain Python, and compiled where numba is installed, with the same results."""

import os
import subprocess
import sys

import numpy as np
import pytest

from hops import compiled as jit
from hops.compiled import kernel


@kernel
def double(value: int) -> int:
    return 2 * value


@kernel
def total(values: object) -> int:
    """Sum of doubled values."""
    result = 0
    for value in values:
        result += double(value)
    return result


def test_a_kernel_takes_lists_as_plain_python():
    assert total([1, 2, 3]) == 12


def test_a_compiled_kernel_calls_kernels_and_gives_the_same():
    pytest.importorskip("numba")
    assert total.fast(np.array([1, 2, 3])) == 12
    assert total.is_compiled
    assert total.ready is total.fast


def test_a_kernel_is_not_compiled_before_it_is_asked_to_be():
    fresh = kernel(double.function)
    assert fresh(2) == 4
    assert not fresh.is_compiled
    assert fresh.ready is fresh.function


def test_without_numba_fast_is_the_plain_function(monkeypatch):
    monkeypatch.setattr(jit, "find_spec", lambda name: None)
    fresh = kernel(double.function)
    assert fresh.fast is fresh.function


def test_the_name_in_the_cache_is_the_same_in_every_process():
    """A kernel with a comprehension has a code object inside, which prints its address."""
    code = (
        "from hops.compiled import _source; from hops.schedules.zero_bubble_paper import greedy; "
        "from zlib import crc32; print(crc32(_source(greedy.function)))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
