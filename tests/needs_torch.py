"""What needs torch is skipped, with the line that installs it, where it is missing."""

import pytest

from hops.rehearse.launch import INSTALL, find_spec

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason=f"needs torch: {INSTALL}")
