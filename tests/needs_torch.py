"""What needs torch is skipped, with the line that installs it, where it is missing."""

import pytest

from hops.rehearse.launch import INSTALL, find_spec

shared_setup = pytest.mark.xdist_group("runtimes")  # its processes are started once, and by one worker at a time
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason=f"needs torch: {INSTALL}")
