"""In which order: actions, programs, policies, and what runs them."""

from hops.program.action import Action, Op
from hops.program.program import Program
from hops.program.shape import Shape

__all__ = ["Action", "Op", "Program", "Shape"]
