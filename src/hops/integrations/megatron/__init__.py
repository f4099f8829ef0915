"""Megatron-LM: its launch arguments become a spec, its trace files a trace."""

from hops.integrations.megatron.flags import parse_flags
from hops.integrations.megatron.label import is_launch
from hops.integrations.megatron.launch import Launch, Placed, launch_from_flags, read_launch
from hops.integrations.megatron.spec import spec_text
from hops.integrations.megatron.trace import MeasuredRun, has_trace, read_run

__all__ = [
    "Launch",
    "MeasuredRun",
    "Placed",
    "has_trace",
    "is_launch",
    "launch_from_flags",
    "parse_flags",
    "read_launch",
    "read_run",
    "spec_text",
]
