"""A spec with open choices: read once, judged once per choice, closed to specs that `hops run` takes unchanged."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

from pydantic import ValidationError

from hops.decode.document import Document, Path
from hops.errors import HopsError, UsageError
from hops.spec.choices import CHOOSABLE, OpenChoice, choices, chosen, says_auto, without, written
from hops.spec.context import Surroundings
from hops.spec.hardware import HardwareSection
from hops.spec.load import checked, read_document
from hops.spec.parallel import ParallelSection
from hops.spec.pipeline import PipelineSection
from hops.spec.schedule import ScheduleChoice
from hops.spec.spec import Spec

RECOMPUTE = ("none", "selective", "full")
_SCHEDULE, _RECOMPUTE, _MICROBATCHES, _SIZE = CHOOSABLE
_PARTITION, _PLACEMENT = ("pipeline", "partition"), ("hardware", "placement")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSpec:
    """What a spec states, and what it leaves open.

    Attributes:
        base: a valid spec with everything stated; what is open has some value there. It names as few devices as it
            can, so that it is valid on any hardware.
        partition, placement: whether the planner finds them. If not, `base` has what is written.
        schedules: to choose from; None means any.
        recomputes: to choose from.
        batches: pairs of microbatches and microbatch_size to choose from.
    """

    base: Spec
    partition: bool
    placement: bool
    schedules: tuple[ScheduleChoice, ...] | None
    recomputes: tuple[str, ...]
    batches: tuple[tuple[int, int], ...]

    def close(
        self,
        *,
        schedule: ScheduleChoice,
        recompute: str,
        batch: tuple[int, int],
        placement: Sequence[str],
        partition: Sequence[int] | str,
    ) -> Spec:
        """The spec with everything decided. What depends on other keys is as in `base`, where all is filled in."""
        pipeline = self.base.pipeline.model_copy(
            update={
                "schedule": schedule,
                "recompute": recompute,
                "microbatches": batch[0],
                "microbatch_size": batch[1],
                "partition": partition if isinstance(partition, str) else tuple(partition),
            }
        )
        hardware = self.base.hardware.model_copy(update={"placement": tuple(placement)})
        return self.base.model_copy(update={"pipeline": pipeline, "hardware": hardware})


def load_open(path: str | os.PathLike[str], overrides: Sequence[str] = (), *, batch: int | None = None) -> OpenSpec:
    """Read a spec that may leave things open.

    Open are: `partition`, `placement` and `schedule` where the spec does not state them or says `auto`; `recompute`
    where it says `auto`; `recompute`, `microbatches`, `microbatch_size` and `schedule` (and its parameters) where it
    gives a list. With `batch`, samples per iteration and pipeline, `microbatches` and `microbatch_size` may be `auto`.

    Raises SpecError with every problem, as `hops.load` does.
    """
    return open_spec(read_document(path, overrides), File(path).parent, batch=batch)


def open_dict(data: Mapping[str, Any], folder: str | os.PathLike[str] = ".", *, batch: int | None = None) -> OpenSpec:
    """The same from plain data; messages name paths."""
    return open_spec(Document.of(data), folder, batch=batch)


def open_spec(document: Document, folder: str | os.PathLike[str] = ".", *, batch: int | None = None) -> OpenSpec:
    """The same from a document."""
    tried = {key: choices(document, key) for key in CHOOSABLE}
    for key, values in _automatic(batch).items():
        if written(document, key) == "auto":
            tried[key] = tuple(OpenChoice(value=value, path=key) for value in values)
    complaints = [
        says_auto(key, "give a list of choices, or the samples of an iteration with --batch")
        for key in (_MICROBATCHES, _SIZE)
        if written(document, key) == "auto" and batch is None
    ]
    specs = {key: _judged(document, key, tried, folder, complaints) for key in CHOOSABLE}
    base = specs[_SCHEDULE][0]
    open_schedule = written(document, _SCHEDULE) in ("absent", "auto")
    return OpenSpec(
        base=base,
        partition=base.pipeline.model is not None and written(document, _PARTITION) in ("absent", "auto"),
        placement=base.pipeline.model is not None and written(document, _PLACEMENT) in ("absent", "auto"),
        schedules=None if open_schedule else tuple(spec.pipeline.schedule for spec in specs[_SCHEDULE]),
        recomputes=tuple(spec.pipeline.recompute for spec in specs[_RECOMPUTE]),
        batches=_batches(
            [spec.pipeline.microbatches for spec in specs[_MICROBATCHES]],
            [spec.pipeline.microbatch_size for spec in specs[_SIZE]],
            batch,
        ),
    )


def _automatic(batch: int | None) -> dict[Path, Sequence[Any]]:
    """What `auto` stands for."""
    sizes = [] if batch is None else [size for size in range(1, batch + 1) if batch % size == 0]
    powers = [size for size in sizes if size & (size - 1) == 0]
    return {
        _RECOMPUTE: RECOMPUTE,
        _MICROBATCHES: [(batch or 1) // size for size in powers] or [1],
        _SIZE: powers or [1],
    }


def _batches(counts: list[int], sizes: list[int], batch: int | None) -> tuple[tuple[int, int], ...]:
    """All pairs, or those that make the batch. Raises UsageError if none does."""
    pairs = [(count, size) for count in dict.fromkeys(counts) for size in dict.fromkeys(sizes)]
    making = tuple(pair for pair in pairs if batch is None or pair[0] * pair[1] == batch)
    if not making:
        products = ", ".join(f"{count} x {size}" for count, size in pairs)
        raise UsageError(f"--batch: no microbatches x microbatch_size makes {batch}, got {products}; let one be auto")
    return making


def _judged(
    document: Document,
    key: Path,
    tried: dict[Path, tuple[OpenChoice, ...]],
    folder: str | os.PathLike[str],
    complaints: list[Any],
) -> list[Spec]:
    """One valid spec for each choice of a key, with the first choice of every other."""
    specs = []
    for choice in tried[key]:
        closed = document
        for other, values in tried.items():
            closed = _with(closed, other, choice if other == key else values[0])
        specs.append(checked(_smallest(closed, folder), folder, complaints))
    return specs


def _with(document: Document, key: Path, choice: OpenChoice) -> Document:
    """A key that is open to anything is left out, so that it has its default."""
    if written(document, key) == "absent" or choice.value in (None, "auto"):
        return without(document, key) if written(document, key) == "auto" else document
    return chosen(document, key, choice)


def _smallest(document: Document, folder: str | os.PathLike[str]) -> Document:
    """Where devices are open: the document on as few of them as the partition allows, so that it is always valid."""
    closed = without(document, _PARTITION) if written(document, _PARTITION) == "auto" else document
    if written(closed, _PLACEMENT) == "single":
        return closed
    closed = without(closed, _PLACEMENT) if written(closed, _PLACEMENT) == "auto" else closed
    try:
        pipeline = PipelineSection.model_validate(closed.data["pipeline"])
        ids = HardwareSection.model_validate(
            closed.data["hardware"], context=Surroundings(folder=str(folder))
        ).device_ids()
        if ParallelSection.model_validate(closed.data.get("parallel") or {}).states_axes:
            return closed  # whose product is the number of devices; the planner says that it arranges no such job
        count = _fewest_ranks(pipeline, len(ids))
    except (ValidationError, HopsError, KeyError, TypeError):
        return closed  # the check that follows says what is wrong
    if pipeline.model is None:
        return closed
    return chosen(closed, _PLACEMENT, OpenChoice(value=ids[:count], path=_PLACEMENT))


def _fewest_ranks(pipeline: PipelineSection, available: int) -> int:
    """The fewest devices whose stages are as many as the partition says; 1 where it does not say."""
    if not isinstance(pipeline.partition, tuple):
        return 1
    scheduler = pipeline.schedule.make()
    fitting = (
        ranks
        for ranks in range(1, available + 1)
        if scheduler.shape(ranks, pipeline.microbatches).stages_per_copy == len(pipeline.partition)
    )
    return next(fitting, available)
