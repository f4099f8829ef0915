"""The parallel section: in how many parts a job is divided along every axis, and which rank is where in the mesh."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from hops.decode.document import Complaint
from hops.decode.quantities import Count, Flag, Name, Section, problem
from hops.errors import UsageError
from hops.hardware.mesh import ORDER, Mesh, check_order
from hops.model.shards import ContextKind, Shards

Shard = Literal["none", "optimizer", "gradients", "parameters"]
SHARDS: tuple[Shard, ...] = ("none", "optimizer", "gradients", "parameters")
Overlap = Literal["gradients", "parameters", "tensor", "expert"]


def _order(text: str) -> str:
    try:
        check_order(text)
    except UsageError as error:
        raise problem(str(error)) from None
    return text


class ParallelSection(Section):
    """Sizes of the axes; their product is the number of devices of the job.

    `hardware.nodes` lists all of them, in the mesh's order, or only those of one copy: of data 1.
    """

    tensor: Count = Field(default=1, description="parts of heads, of the MLP's width and of the vocabulary")
    sequence: Flag = Field(
        default=False, description="what tensor parallelism does not divide is divided by tokens instead"
    )
    context: Count = Field(default=1, description="parts of the sequence in all layers")
    context_kind: ContextKind = Field(
        default="ring", description="how attention sees the other parts; all_to_all: by heads meanwhile (Ulysses)"
    )
    context_inner: Count = Field(
        default=1, description="hierarchical: neighbours that exchange heads; a ring joins such groups"
    )
    expert: Count = Field(default=1, description="groups of devices that hold different experts")
    expert_tensor: Count | None = Field(default=None, description="parts of one expert's width; default: tensor")
    data: Count | None = Field(default=None, description="copies; default: optimizer.data_parallel")
    pipeline: Count | None = Field(
        default=None, description="ranks of a pipeline; default: the devices over the other axes"
    )
    shard: Shard | None = Field(
        default=None,
        description="what copies hold only a part of (ZeRO 0 to 3, FSDP); default: by optimizer.distributed",
    )
    shard_group: Count | None = Field(
        default=None, description="copies that hold all parts between them (HSDP: fewer than all); default: data"
    )
    order: Annotated[Name, AfterValidator(_order)] = Field(
        default=ORDER, description="how ranks are numbered: the fastest axis first, as in Megatron-LM"
    )
    overlap: tuple[Overlap, ...] | None = Field(
        default=None,
        description="collectives beside which computing goes on; default: gradients and parameters where shard says so",
    )

    @property
    def states_axes(self) -> bool:
        """Whether it says more than how copies that are elsewhere share what they hold."""
        return self.data is not None or self.pipeline is not None or self.copy_devices > 1 or self.expert > 1

    @property
    def copy_devices(self) -> int:
        """Devices of a pipeline position in one copy: tensor x context."""
        return self.tensor * self.context

    @property
    def expert_parts(self) -> int:
        """Parts of one expert's width: as many as of everything else, unless stated."""
        return self.tensor if self.expert_tensor is None else self.expert_tensor

    @property
    def overlapped(self) -> frozenset[Overlap]:
        """What goes on beside computing: what FSDP prefetches and reduces as it goes, unless stated."""
        if self.overlap is None:
            return frozenset({"gradients", "parameters"} if self.shard in ("gradients", "parameters") else ())
        return frozenset(self.overlap)

    def zero(self, *, distributed: bool) -> int:
        """The stage of ZeRO, 0 to 3."""
        if self.shard is None:
            return int(distributed)
        return SHARDS.index(self.shard)

    def pipeline_ranks(self, devices: int) -> int:
        """Ranks of a pipeline, if so many devices are listed; at least 1.

        With `data` in the section the devices of all copies are listed, with the optimizer's alone those of one.
        """
        listed = self.copy_devices * (1 if self.data is None else self.data)
        return max(1, devices // listed) if self.pipeline is None else self.pipeline

    def mesh(self, *, devices: int, data: int) -> Mesh:
        """The mesh of so many listed devices and so many copies. Raises UsageError."""
        return Mesh(
            tensor=self.tensor,
            context=self.context,
            expert=self.expert,
            expert_tensor=self.expert_parts,
            data=data,
            pipeline=self.pipeline_ranks(devices),
            order=self.order,
        )

    def shards(self, *, experts: bool = True) -> Shards:
        """In how many parts a stage's work is divided, of a model with or without experts."""
        return Shards(
            tensor=self.tensor,
            sequence=self.sequence,
            context=self.context,
            context_kind=self.context_kind,
            context_inner=self.context_inner,
            expert=self.expert,
            expert_tensor=self.expert_parts if experts or self.expert_tensor else 1,
        )


def check_parallel(
    parallel: ParallelSection, *, devices: int | None, data: int | None, distributed: bool | None
) -> Iterator[Complaint]:
    """What the axes make of each other and of the devices listed (None: unknown).

    `data` and `distributed` are what the optimizer section states; None: nothing.
    """
    copies = data or 1 if parallel.data is None else parallel.data
    if data is not None and data != copies:
        what = f"got {copies}, and optimizer.data_parallel says {data}, expected one number; remove one of them"
        yield Complaint(path=("parallel", "data"), what=what)
    if distributed is not None and parallel.shard is not None and distributed != (parallel.shard != "none"):
        said = f"optimizer.distributed says {str(distributed).lower()}"
        what = f"got {parallel.shard}, and {said}, expected the same; remove one of them"
        yield Complaint(path=("parallel", "shard"), what=what)
    if parallel.shard_group is not None and copies % parallel.shard_group:
        what = f"got {parallel.shard_group}, expected a divisor of the {copies} copies; change one of them"
        yield Complaint(path=("parallel", "shard_group"), what=what)
    if parallel.shard_group is not None and parallel.shard in (None, "none") and not distributed:
        what = f"got {parallel.shard_group} where nothing is shared, expected parallel.shard; add shard: optimizer"
        yield Complaint(path=("parallel", "shard_group"), what=what)
    if parallel.sequence and parallel.tensor == 1:
        what = "got true with tensor 1, expected tensor parallelism, whose devices share the tokens; raise tensor"
        yield Complaint(path=("parallel", "sequence"), what=what)
    try:
        parallel.shards()
    except UsageError as error:
        yield Complaint(path=("parallel", "context_inner"), what=str(error))
    if devices is not None:
        yield from _product(parallel, devices, copies)
    try:
        parallel.mesh(devices=devices or 1, data=copies)
    except UsageError as error:
        yield Complaint(path=("parallel", "order" if "order" in str(error) else "expert"), what=str(error))


def _product(parallel: ParallelSection, devices: int, copies: int) -> Iterator[Complaint]:
    """The devices listed are those of the job, or of one copy."""
    ranks = parallel.pipeline_ranks(devices)
    one = parallel.copy_devices * ranks
    if devices in (one, one * copies):
        return
    axes = f"tensor {parallel.tensor} x context {parallel.context}"
    if parallel.pipeline is not None:
        every = "" if copies == 1 else f", or x data {copies} = {one * copies} with all copies listed"
        what = f"got {devices} devices, expected {axes} x pipeline {ranks} = {one}{every}; change an axis or the nodes"
        yield Complaint(path=("parallel", "pipeline"), what=what)
        return
    listed = parallel.copy_devices
    if parallel.data is not None:
        axes, listed = f"{axes} x data {copies}", listed * copies
    what = f"got {devices} devices, expected a multiple of {axes} = {listed}; change an axis or the nodes"
    yield Complaint(path=("hardware", "nodes"), what=what)
