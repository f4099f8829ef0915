"""What the layers of one model may differ in: their MLP or experts, how far attention sees, and where they stand."""

from dataclasses import dataclass
from math import ceil

from hops.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Queries, keys and values made from narrow latents (MLA: DeepSeek-AI 2024, arXiv 2405.04434, section 2.1).

    Attributes:
        query_rank: width of the queries' latent; 0: queries are made from the hidden state itself.
        kv_rank: width of the latent of keys and values.
        nope_dim, rope_dim: width of a head's query and key without positions, and with rotary ones (keys share these).
        value_dim: width of a head's value.
    """

    query_rank: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int

    def __post_init__(self) -> None:
        if self.query_rank < 0:
            raise UsageError(f"query_rank must be at least 0, but got {self.query_rank}")
        for name in ("kv_rank", "nope_dim", "rope_dim", "value_dim"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, but got {getattr(self, name)}")

    @property
    def head_dim(self) -> int:
        """Width of a head's query and key."""
        return self.nope_dim + self.rope_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A mixture of experts in place of the MLP: every token goes through `top_k` of `count` narrow MLPs.

    Attributes:
        count: routed experts of a layer.
        top_k: experts of a token.
        hidden: width inside one of them.
        shared_hidden: width inside the MLP that all tokens go through besides; 0: there is none.
        shared_gate: whether that MLP's result is scaled by a gate of its own (one number per token).
        router_bias: whether the router adds a number per expert (balance without a loss, arXiv 2412.19437).
        dense_layers: numbers of the layers that have an MLP instead.
    """

    count: int
    top_k: int
    hidden: int
    shared_hidden: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    dense_layers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("count", "top_k", "hidden"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} of experts must be at least 1, but got {getattr(self, name)}")
        if self.top_k > self.count:
            raise UsageError(f"top_k must be at most the {self.count} experts, but got {self.top_k}")
        if self.shared_hidden < 0:
            raise UsageError(f"shared_hidden of experts must be at least 0, but got {self.shared_hidden}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What one layer has of its own; all else is the model's.

    Attributes:
        experts: instead of the MLP.
        window: tokens that attention sees; 0: all before.
        mtp: whether it is a head that predicts one token more (multi-token prediction): a projection of the last
            state and the next embedding, a layer, and the model's head and loss once more.
    """

    experts: Experts | None = None
    window: int = 0
    mtp: bool = False

    def seen(self, sequence_length: int) -> int:
        """Tokens that a token sees on average: those before it and itself, at most a window of them; rounded up."""
        if self.window == 0 or self.window >= sequence_length:
            return (sequence_length + 1) // 2
        pairs = self.window * (self.window + 1) // 2 + (sequence_length - self.window) * self.window
        return ceil(pairs / sequence_length)
