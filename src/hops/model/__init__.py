"""The model: what one microbatch costs a stage, before any hardware."""

from hops.model.memory import StageMemory

__all__ = ["StageMemory"]
