"""One device's part of a model: sizes after all divisions, from which its kernels are counted."""

from dataclasses import dataclass
from math import ceil

from hops.errors import UsageError
from hops.model.implementation import Implementation, Microbatch
from hops.model.kinds import Experts
from hops.model.shards import Shards
from hops.model.transformer import Transformer


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """The sizes that one device of a group computes with. Token counts are of one microbatch.

    Where a size does not divide, the device with the larger part is meant: the group waits for it.
    """

    model: Transformer
    batch: Microbatch
    how: Implementation
    shards: Shards

    @property
    def rows_of_sequence(self) -> int:
        """Tokens of a sequence that this device holds."""
        return ceil(self.batch.sequence_length / self.shards.context)

    @property
    def tokens(self) -> int:
        """Tokens that go through linear layers here: all of a part of the sequence."""
        return self.rows_of_sequence * self.batch.samples

    @property
    def held_tokens(self) -> int:
        """Tokens that this device holds between them, where sequence parallelism divides further."""
        return ceil(self.tokens / self.shards.tensor) if self.shards.sequence else self.tokens

    @property
    def heads(self) -> int:
        return self.model.heads // self.shards.tensor

    @property
    def query_width(self) -> int:
        return self.model.query_width // self.shards.tensor

    @property
    def context_width(self) -> int:
        """Width of what attention gives back."""
        return self.model.context_width // self.shards.tensor

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values; devices share one where there are more devices than heads."""
        return max(1, self.model.kv_heads // self.shards.tensor)

    @property
    def key_width(self) -> int:
        return self.query_width if self.model.latent else self.kv_heads * self.model.head_dim

    @property
    def value_width(self) -> int:
        return self.context_width if self.model.latent else self.kv_heads * self.model.head_dim

    @property
    def qkv_width(self) -> int:
        return self.query_width + self.key_width + self.value_width

    @property
    def vocab(self) -> int:
        """Rows of the table."""
        return ceil(self.model.vocab / self.shards.tensor)

    def part_of_width(self, width: int) -> int:
        """Part of an MLP's width."""
        return ceil(width / self.shards.tensor)

    def experts_here(self, experts: Experts) -> int:
        return ceil(experts.count / self.shards.expert)


def check_shards(model: Transformer, batch: Microbatch, shards: Shards) -> None:
    """Raises UsageError for a division that no runtime makes, with what divides."""
    tensor = shards.tensor
    _divides("heads", model.heads, "tensor", tensor)
    if model.kv_heads % tensor and tensor % model.kv_heads and model.latent is None:
        raise UsageError(
            f"tensor must divide kv_heads or be a multiple of them, but got {tensor} for {model.kv_heads} kv_heads"
        )
    _divides("ffn_hidden", model.ffn_hidden, "tensor", tensor)
    _divides("sequence_length", batch.sequence_length, "context", shards.context)
    _divides("heads of a device", model.heads // tensor, "context (heads are exchanged)", shards.head_exchange)
    if shards.sequence:
        _divides("tokens of a device", batch.tokens // shards.context, "tensor", tensor)
    experts = model.experts
    if experts is None:
        if shards.expert * shards.expert_tensor > 1:
            raise UsageError(
                f"expert and expert_tensor must be 1 for a model without experts, "
                f"but got {shards.expert} and {shards.expert_tensor}"
            )
        return
    _divides("experts", experts.count, "expert", shards.expert)
    _divides("hidden of experts", experts.hidden, "expert_tensor", shards.expert_tensor)
    if tensor > 1 and not shards.sequence:
        raise UsageError(
            f"experts with tensor {tensor} need sequence: every device hands out tokens of its own; set sequence"
        )


def _divides(what: str, size: int, axis: str, parts: int) -> None:
    if size % parts:
        raise UsageError(f"{axis} must divide the {size} {what}, but got {parts}")
