"""Megatron-LM: its launch arguments become a spec."""

from hops.integrations.megatron.flags import parse_flags
from hops.integrations.megatron.launch import Launch, Placed, launch_from_flags, read_launch
from hops.integrations.megatron.spec import spec_text

__all__ = ["Launch", "Placed", "launch_from_flags", "parse_flags", "read_launch", "spec_text"]
