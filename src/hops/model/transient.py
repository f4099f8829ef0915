"""What a framework holds for a moment, or all the time, beside weights, states and activations.

Peaks of a run are higher than what its tensors add up to: the loss has a second copy of its logits, a gradient of a
whole matrix or table is made before it is added, sharded weights of some layers are gathered, and libraries have
workspaces of their own. None of that belongs to the model: it is stated, or a profile has it.
"""

from dataclasses import dataclass

from hops.errors import UsageError
from hops.model.activations import Runs, remade_bytes
from hops.model.layer import layer_linears
from hops.model.local import Local
from hops.model.partition import StageSlice
from hops.model.shards import StateShards


@dataclass(frozen=True, slots=True, kw_only=True)
class Transients:
    """A framework's habits.

    Attributes:
        runtime_bytes: workspaces of libraries, held all the time.
        logit_bytes: per logit, while the loss is computed, beyond its fp32 probabilities.
        fused_logit_bytes: the same of a fused loss.
        whole_gradient: whether a gradient of one matrix or table in the element type is made before it is added.
        gathered_layers: layers whose sharded weights are gathered at once (the one that runs, and those fetched ahead).
    """

    runtime_bytes: int = 0
    logit_bytes: float = 0.0
    fused_logit_bytes: float = 0.0
    whole_gradient: bool = False
    gathered_layers: float = 0.0

    def __post_init__(self) -> None:
        for name in ("runtime_bytes", "logit_bytes", "fused_logit_bytes", "gathered_layers"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise UsageError(f"{name} must be a number of at least 0, but got {getattr(self, name)}")


NO_TRANSIENTS = Transients()


def transient_bytes(here: Local, part: StageSlice, runs: Runs, states: StateShards, habits: Transients) -> int:
    """The largest moment of a stage: a layer made again, the loss, or a whole gradient; with gathered weights, and what
    the runtime holds all the time.
    """
    moments: list[float] = [remade_bytes(here, runs)]
    if part.head:
        fused = here.how.cross_entropy == "fused"
        moments.append(here.tokens * here.vocab * (habits.fused_logit_bytes if fused else habits.logit_bytes))
    if habits.whole_gradient:
        moments.append(_largest_matrix(here, part, runs) * here.how.element_bytes)
    return int(max(moments) + _gathered(here, runs, states, habits)) + habits.runtime_bytes


def _largest_matrix(here: Local, part: StageSlice, runs: Runs) -> int:
    table = here.vocab * here.model.hidden if part.embedding or part.head else 0
    return max(table, *(each.inside * each.out for layer, _ in runs for each in layer_linears(here, layer)), 0)


def _gathered(here: Local, runs: Runs, states: StateShards, habits: Transients) -> float:
    """Whole weights of some layers, where replicas hold parts of them only."""
    if states.weights == 1 or not runs:
        return 0.0
    largest = max(sum(each.parameters for each in layer_linears(here, layer)) for layer, _ in runs)
    return habits.gathered_layers * largest * here.how.element_bytes
