"""Megatron-LM: its launch arguments become a spec, its trace files a trace."""

from hops.importers.megatron.hosts import Placed
from hops.importers.megatron.launch import Launch, launch_from_flags, read_launch
from hops.importers.megatron.run_folder import is_launch
from hops.importers.megatron.source import Asked
from hops.importers.megatron.spec import spec_text
from hops.importers.megatron.trace import MeasuredRun, Megatron, has_trace, read_run

__all__ = [
    "Asked",
    "Launch",
    "MeasuredRun",
    "Megatron",
    "Placed",
    "has_trace",
    "is_launch",
    "launch_from_flags",
    "read_launch",
    "read_run",
    "spec_text",
]
