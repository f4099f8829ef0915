"""What rows from outside must hold before they become a trace."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hops.actions import Op
from hops.trace.trace import COLUMNS, Stream, TraceMeta


def check_columns(columns: Mapping[str, NDArray[np.integer]], meta: TraceMeta) -> None:
    """Raise ValueError saying the column and what is expected, if a row cannot be in a trace with this metadata."""
    bounds = {"rank": (0, meta.num_ranks), "peer": (-1, meta.num_ranks), "stage": (-1, meta.num_stages)}
    for name, (low, high) in bounds.items():
        if np.any((columns[name] < low) | (columns[name] >= high)):
            raise ValueError(f"{name}: expected {low} to {high - 1}, as the metadata has it")
    for name, low in {"iteration": 0, "microbatch": -1, "start_ns": 0, "bytes": 0}.items():
        if np.any(columns[name] < low) or np.any(columns[name] > np.iinfo(COLUMNS[name]).max):
            raise ValueError(f"{name}: expected a number from {low} on that fits {np.dtype(COLUMNS[name])}")
    if np.any(columns["end_ns"] < columns["start_ns"]):
        raise ValueError("end_ns: expected at least start_ns")
    staged = (columns["op"] <= Op.W) & (columns["stream"] <= Stream.MESSAGE)
    if np.any(staged & ((columns["stage"] < 0) | (columns["microbatch"] < 0))):
        raise ValueError("stage and microbatch: expected from 0 on for F, B, I and W")
    if np.any(~np.isin(columns["op"], list(Op)) | ~np.isin(columns["stream"], list(Stream))):
        raise ValueError("op and stream: expected numbers of hops.actions.Op and hops.trace.Stream")
