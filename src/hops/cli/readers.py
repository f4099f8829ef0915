"""How commands read run folders and find profiles."""

from pathlib import Path

from hops.calibrate import Readers
from hops.cost.profile_file import shipped_profile
from hops.integrations.megatron import read_run
from hops.integrations.megatron.inputs import read_inputs
from hops.trace import Trace


def _trace(folder: Path) -> Trace:
    return read_run(folder).trace


def megatron(warmup: int = 0) -> Readers:
    """Readers of Megatron-LM run folders."""
    return Readers(inputs=read_inputs, trace=_trace, warmup=warmup)


def profile_file(name: str) -> Path:
    """A profile by its file, or by the name of a shipped one. Raises UsageError if there is neither."""
    return Path(name) if Path(name).is_file() else shipped_profile(name)
