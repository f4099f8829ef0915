"""The MLP of a layer on one device: two linear layers around an activation function."""

from hops.model import exchange
from hops.model.kernels import Kernels
from hops.model.linear import Linear
from hops.model.local import Local


def linears(here: Local, width: int, name: str) -> tuple[Linear, ...]:
    """Up (twice as wide with a gate) and down."""
    hidden, part = here.model.hidden, here.part_of_width(width)
    return (
        Linear(name=name, rows=here.tokens, inside=hidden, out=here.model.widened(part)),
        Linear(name=name, rows=here.tokens, inside=part, out=hidden),
    )


def exchanges(here: Local, name: str) -> Kernels:
    """Collectives of F."""
    return (*exchange.enter(here, here.model.hidden, name), *exchange.leave(here, name))


def exchanges_backward(here: Local, name: str) -> Kernels:
    """Collectives of I."""
    return (*exchange.leave_backward(here, name), *exchange.enter_backward(here, here.model.hidden, name))
