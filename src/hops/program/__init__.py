"""In which order: actions, programs, policies, and what runs them."""

from hops.program.action import Action, Op, Pair
from hops.program.lowering import Lowered, check, lower
from hops.program.program import Program
from hops.program.shape import Shape

__all__ = ["Action", "Lowered", "Op", "Pair", "Program", "Shape", "check", "lower"]
