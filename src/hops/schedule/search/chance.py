"""A random sequence that is the same compiled and interpreted, on every machine."""

from hops.schedule.jit import kernel


@kernel
def advance(state: int) -> int:
    """The next state of the minimal standard generator (Park and Miller 1988); states are 1 to 2^31 - 2."""
    return state * 48271 % 2147483647


@kernel
def below(state: int, bound: int) -> int:
    """A number from 0 to bound - 1, of a state's higher bits."""
    return (state >> 4) % bound
