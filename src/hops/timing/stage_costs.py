"""What a scheduler may know about the pipeline it arranges: expected times and memory, nothing of the run."""

from dataclasses import dataclass

from hops.program.shape import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCosts:
    """Expected costs of one iteration. Tuples have one value per stage unless said otherwise; seconds and bytes.

    Attributes:
        shape: microbatches, and rank of every stage.
        forward_s, input_backward_s, weight_backward_s, fused_backward_s: F, I, W and B.
        hop_s: latency of a message between stages s and s + 1, either way; length stages - 1, 0 on the same rank.
        blocking: whether messages keep both ranks busy.
        activation_bytes: what F allocates; kept_for_weight_bytes: what stays from the end of I to the end of W.
        budget_bytes: per rank, the activation budget: what activations may take at any time; None is no limit.
    """

    shape: Shape
    forward_s: tuple[float, ...]
    input_backward_s: tuple[float, ...]
    weight_backward_s: tuple[float, ...]
    fused_backward_s: tuple[float, ...]
    hop_s: tuple[float, ...]
    blocking: bool = False
    activation_bytes: tuple[int, ...]
    kept_for_weight_bytes: tuple[int, ...]
    budget_bytes: tuple[int | None, ...]

    @classmethod
    def uniform(
        cls, shape: Shape, *, f: float = 1.0, i: float = 1.0, w: float = 1.0, hop_s: float = 0.0
    ) -> "StageCosts":
        """The same times on every stage, activations of 2 bytes of which W keeps 1, no activation budget."""
        stages = shape.num_stages
        ranks = shape.rank_of_stage
        hops = tuple(hop_s if ranks[s] != ranks[s + 1] else 0.0 for s in range(stages - 1))
        return cls(
            shape=shape,
            forward_s=(f,) * stages,
            input_backward_s=(i,) * stages,
            weight_backward_s=(w,) * stages,
            fused_backward_s=(i + w,) * stages,
            hop_s=hops,
            activation_bytes=(2,) * stages,
            kept_for_weight_bytes=(1,) * stages,
            budget_bytes=(None,) * shape.num_ranks,
        )
