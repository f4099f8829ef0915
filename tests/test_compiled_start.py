"""Compiling starts without scipy, and numba finds scipy's BLAS all the same when somebody needs it."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

CODE = """
import sys
from hops.timing.longest_path import longest_path  # some kernel
longest_path.fast
print("numba.np.arraymath" in sys.modules, "scipy.linalg" in sys.modules)
import numba
import numpy as np
print(numba.njit(lambda matrix: matrix @ matrix)(np.ones((2, 2)))[0, 0])
"""


@pytest.mark.skipif(not (find_spec("numba") and find_spec("scipy")), reason="numba and scipy are not installed")
def test_kernels_do_not_import_scipy_and_products_of_matrices_still_compile():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "False", "2.0"], done.stderr
