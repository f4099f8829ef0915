"""A stage of PyTorch's pipelining whose actions take the time they are told, on the device clock of their rank.

The runtime does all it does in training: receives, autograd in halves, sends. Only the layers are a few numbers wide,
and each action sleeps until its time is over. What it sends bears the moment at which the device was through with it,
so that a message is under way for its hop's time from then on, whatever this machine's transport takes.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage

from hops.rehearse.clock import DeviceClock
from hops.rehearse.job import RENDEZVOUS, Job

WIDTH = 4


class EmulatedDevice:
    """What the stages of a rank share: the clock, the times of the iteration, and what was executed when."""

    def __init__(self, job: Job, rank: int, told: Callable[[int, str], None]) -> None:
        """`told` is called with the number of an action and what is done about it."""
        self.job, self.rank = job, rank
        self.clock = DeviceClock()
        self.durations: Mapping[str, int] = job.durations_ns[0]
        self.origin_ns = 0
        self.ran: list[tuple[str, int, int]] = []
        self._told = told

    def begin(self, iteration: int, origin_ns: int) -> None:
        """Start an iteration at that moment of all ranks."""
        self.durations = self.job.durations_ns[iteration % len(self.job.durations_ns)]
        self.origin_ns = origin_ns
        self.clock.begin(origin_ns)
        self.ran.clear()

    def run(self, action: str, ready_ns: int) -> None:
        """Let an action take its time."""
        self._told(len(self.ran), "runs")
        host_ns = 0 if len(self.ran) in self.job.opens_pair[self.rank] else self.job.host_ns
        start, end = self.clock.run(ready_ns, self.durations[action], host_ns)
        self.ran.append((action, start, end))
        self._told(len(self.ran), "waits")


class EmulatedStage(PipelineStage):  # type: ignore[misc]
    """A stage that sleeps. It overrides what PyTorch's runtime calls for every action and posting."""

    def __init__(self, device: EmulatedDevice, stage: int) -> None:
        job = device.job
        layer = torch.nn.Linear(WIDTH, WIDTH, bias=False, dtype=torch.float64)
        super().__init__(layer, stage, len(job.rank_of_stage), torch.device("cpu"))
        self._clock_of_rank = device
        self._buffers: dict[tuple[str, int], torch.Tensor] = {}
        self._posted_ns: dict[tuple[str, int], int] = {}

    def get_fwd_recv_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        return self._posted("F", fwd_chunk_id, super().get_fwd_recv_ops(fwd_chunk_id))

    def get_bwd_recv_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        return self._posted("B", bwd_chunk_id, super().get_bwd_recv_ops(bwd_chunk_id))

    def get_fwd_send_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        return self._stamped(super().get_fwd_send_ops(fwd_chunk_id))

    def get_bwd_send_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        return self._stamped(super().get_bwd_send_ops(bwd_chunk_id))

    def forward_one_chunk(self, fwd_chunk_id: int, *args: Any, **kwargs: Any) -> Any:
        output = super().forward_one_chunk(fwd_chunk_id, *args, **kwargs)
        self._run("F", fwd_chunk_id, self._ready_ns("F", fwd_chunk_id))
        return output

    def backward_one_chunk(
        self, bwd_chunk_id: int, loss: Any = None, full_backward: bool = True, last_backward: bool = False
    ) -> None:
        super().backward_one_chunk(bwd_chunk_id, loss=loss, full_backward=full_backward, last_backward=last_backward)
        self._run("B" if full_backward else "I", bwd_chunk_id, self._ready_ns("B", bwd_chunk_id))

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> None:
        super().backward_weight_one_chunk(bwd_chunk_id, last_backward=last_backward)
        self._run("W", bwd_chunk_id, 0)

    def _run(self, op: str, microbatch: int, ready_ns: int) -> None:
        self._clock_of_rank.run(f"{self.stage_index}{op}{microbatch}", ready_ns)

    def _posted(self, kind: str, microbatch: int, ops: list[dist.P2POp]) -> list[dist.P2POp]:
        for op in ops:
            self._buffers[kind, microbatch] = op.tensor
            self._posted_ns[kind, microbatch] = self._clock_of_rank.clock.next_ns
        return ops

    def _stamped(self, ops: list[dist.P2POp]) -> list[dist.P2POp]:
        """The same sends with a first number that says when the device was through, counted from the start."""
        device = self._clock_of_rank
        for op in ops:
            op.tensor = op.tensor.detach().clone()
            op.tensor.view(-1)[0] = device.clock.free_ns - device.origin_ns
        return ops

    def _ready_ns(self, kind: str, microbatch: int) -> int:
        """When what the action takes is there; 0: it takes nothing from another rank."""
        if (kind, microbatch) not in self._buffers:
            return 0
        device = self._clock_of_rank
        stamp: float = self._buffers.pop((kind, microbatch)).view(-1)[0].item()
        begins = device.origin_ns + int(stamp)
        posted = self._posted_ns.pop((kind, microbatch))
        if device.job.links == RENDEZVOUS:
            begins = max(begins, posted)
        boundary: int = self.stage_index - 1 if kind == "F" else self.stage_index
        return begins + device.job.hop_ns[boundary]
