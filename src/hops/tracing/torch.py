"""Records a pipeline that PyTorch's own runtime trains: three lines in a training script.

    from hops.tracing.torch import trace
    tracer = trace("runs/first")      # after init_process_group
    ...
        schedule.step(...); optimizer.step()
        tracer.step()                 # at the end of every iteration

What is recorded is what the schedules of `torch.distributed.pipelining` call on their stages, so all of them work,
those without annotations, too: F, B, I and W of every microbatch, when sends and receives are posted and when they have
been waited for, gradient reductions, collectives of torch.distributed, optimizer steps. Times are those of the host's
wall clock; for stages on a GPU, actions are timed by CUDA events on the stage's stream. Tried with torch 2.13.
"""

import atexit
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
import torch.distributed as dist
from torch.distributed.pipelining import schedules
from torch.distributed.pipelining.stage import _PipelineStageBase
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from hops.tracing.recorder import RankRecorder, rank_of_environment, unix_ns

_COLLECTIVES = (
    "all_reduce", "reduce_scatter_tensor", "all_gather_into_tensor", "all_to_all_single", "broadcast", "barrier",
)  # fmt: skip
_NONE = -1


class TorchTracer:
    """Records this process until it is closed; `trace` makes it."""

    def __init__(self, folder: Path, *, schedule: str) -> None:
        rank, ranks = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else rank_of_environment()
        device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
        self._recorder = RankRecorder(folder, rank, ranks, device=device, schedule=schedule)
        self._on_gpu: list[tuple[str, int, int, Any, Any]] = []
        self._gpu_origin: tuple[Any, int] | None = None
        self._waited: dict[int, list[tuple[str, int, int, int]]] = {}
        self._posting: dict[int, tuple[str, int, int]] = {}
        self._undo: list[Callable[[], None]] = []
        self._optimizer_ns = [0, 0]
        self._patch()

    def step(self) -> None:
        """The iteration is over: write what it holds, and count on."""
        self._finish()
        self._recorder.write()
        self._recorder.iteration += 1
        self._waited.clear()
        self._posting.clear()

    def close(self) -> None:
        """Write what is left, and take the recording out of PyTorch again."""
        if not self._undo:
            return
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        self._finish()
        if len(self._recorder):
            self._recorder.write()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def _patch(self) -> None:
        stage = _PipelineStageBase
        self._wrap(stage, "forward_one_chunk", lambda call: self._action(call, "F"))
        self._wrap(stage, "backward_one_chunk", self._backward)
        self._wrap(stage, "backward_weight_one_chunk", lambda call: self._action(call, "W"))
        self._wrap(stage, "perform_reduce_grad", lambda call: self._timed(call, "GRAD_REDUCE"))
        for name, what in (
            ("get_fwd_send_ops", "SEND_F"), ("get_fwd_recv_ops", "RECV_F"),
            ("get_bwd_send_ops", "SEND_B"), ("get_bwd_recv_ops", "RECV_B"),
        ):  # fmt: skip
            self._wrap(stage, name, self._posts(what))
        self._wrap(schedules, "_batch_p2p", self._batch)
        self._wrap(schedules, "_wait_batch_p2p", self._wait)
        for name in _COLLECTIVES:
            self._wrap(dist, name, lambda call: self._timed(call, "COLLECTIVE"))
        hooks = (
            register_optimizer_step_pre_hook(self._before_optimizer),
            register_optimizer_step_post_hook(self._after_optimizer),
        )
        self._undo += [hook.remove for hook in hooks]

    def _wrap(self, owner: Any, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        original = getattr(owner, name)
        setattr(owner, name, around(original))
        self._undo.append(lambda: setattr(owner, name, original))

    def _action(self, call: Callable[..., Any], what: str) -> Callable[..., Any]:
        def recorded(stage: Any, microbatch: int, *args: Any, **kwargs: Any) -> Any:
            return self._run(what, stage, microbatch, lambda: call(stage, microbatch, *args, **kwargs))

        return recorded

    def _backward(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """B and I are one method of a stage, told apart by an argument."""

        def recorded(stage: Any, microbatch: int, loss: Any = None, full_backward: bool = True, **rest: Any) -> Any:
            what = "B" if full_backward else "I"
            return self._run(
                what, stage, microbatch, lambda: call(stage, microbatch, loss=loss, full_backward=full_backward, **rest)
            )

        return recorded

    def _run(self, what: str, stage: Any, microbatch: int, call: Callable[[], Any]) -> Any:
        if stage.device.type == "cuda":
            return self._run_on_gpu(what, stage, microbatch, call)
        start = unix_ns()
        result = call()
        self._recorder.add(what, stage.stage_index, microbatch, start, unix_ns())
        return result

    def _run_on_gpu(self, what: str, stage: Any, microbatch: int, call: Callable[[], Any]) -> Any:
        """Events on the stream; they become times of the host's clock once the iteration is over."""
        if self._gpu_origin is None:
            torch.cuda.synchronize()
            origin = torch.cuda.Event(enable_timing=True)
            origin.record()
            self._gpu_origin = (origin, unix_ns())
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        result = call()
        end.record()
        self._on_gpu.append((what, stage.stage_index, microbatch, begin, end))
        return result

    def _resolve_gpu(self) -> None:
        if self._gpu_origin is None:
            return
        torch.cuda.synchronize()
        origin, origin_ns = self._gpu_origin
        for what, stage, microbatch, begin, end in self._on_gpu:
            start_ns, end_ns = (origin_ns + round(1e6 * origin.elapsed_time(event)) for event in (begin, end))
            self._recorder.add(what, stage, microbatch, start_ns, end_ns)
        self._on_gpu.clear()

    def _timed(self, call: Callable[..., Any], what: str) -> Callable[..., Any]:
        def recorded(*args: Any, **kwargs: Any) -> Any:
            start = unix_ns()
            result = call(*args, **kwargs)
            self._recorder.add(what, _NONE, _NONE, start, unix_ns())
            return result

        return recorded

    def _posts(self, what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """The sends or receives that a stage asks for; they are posted by whoever asked."""

        def around(call: Callable[..., Any]) -> Callable[..., Any]:
            def recorded(stage: Any, microbatch: int) -> Any:
                ops = call(stage, microbatch)
                for op in ops:
                    self._posting[id(op)] = (what, stage.stage_index, microbatch)
                return ops

            return recorded

        return around

    def _batch(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(ops: list[Any], *args: Any, **kwargs: Any) -> Any:
            posted_ns = unix_ns()
            works = call(ops, *args, **kwargs)
            named = [self._posting.pop(id(op)) for op in ops if id(op) in self._posting]
            for number, each in enumerate(named):  # of a batch that is one piece of work, each is waited for with it
                if works:
                    work = works[min(number, len(works) - 1)]
                    self._waited.setdefault(id(work), []).append((*each, posted_ns))
            return works

        return recorded

    def _wait(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(works: list[Any]) -> Any:
            result = call(works)
            now = unix_ns()
            for work in works:
                for what, stage, microbatch, posted_ns in self._waited.pop(id(work), []):
                    self._recorder.add(what, stage, microbatch, posted_ns, now)
            return result

        return recorded

    def _before_optimizer(self, *_: Any) -> None:
        self._optimizer_ns[0] = self._optimizer_ns[0] or unix_ns()

    def _after_optimizer(self, *_: Any) -> None:
        self._optimizer_ns[1] = unix_ns()

    def _finish(self) -> None:
        """Times of the GPU as the host's; the steps of several optimizers as one, from the first to the last."""
        self._resolve_gpu()
        start, end = self._optimizer_ns
        if end:
            self._recorder.add("OPTIMIZER", _NONE, _NONE, start, end)
        self._optimizer_ns = [0, 0]


def trace(folder: str | Path, *, schedule: str = "") -> TorchTracer:
    """Record this process into `rank<r>.hops.jsonl` of a folder, which all ranks may share.

    Args:
        folder: is made; a file of the same rank in it is written anew.
        schedule: a name for the run's label.
    """
    tracer = TorchTracer(Path(folder), schedule=schedule)
    atexit.register(tracer.close)
    return tracer
