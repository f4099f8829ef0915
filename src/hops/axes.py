"""The axes of a mesh: which devices a collective joins."""

from enum import StrEnum


class Axis(StrEnum):
    """A dimension in which a job is divided.

    Experts are divided over the same devices in a second way: `expert`, `expert_tensor` and `expert_data` are the axes
    of the expert layers where the others have `tensor`, `context` and `data`.
    """

    TENSOR = "tensor"
    CONTEXT = "context"
    DATA = "data"
    PIPELINE = "pipeline"
    EXPERT = "expert"
    EXPERT_TENSOR = "expert_tensor"
    EXPERT_DATA = "expert_data"
