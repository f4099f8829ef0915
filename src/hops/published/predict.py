"""Every row of a file predicted: a spec, its program in the engine for one iteration, and the most memory of a rank."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from hops.build.prepared import PreparedRun
from hops.build.setup import Setup, build
from hops.errors import HopsError
from hops.faults.plan import NO_FAULTS
from hops.model.memory import rank_static_bytes
from hops.program.program import Program
from hops.published.job import PublishedJob
from hops.published.profiles import NONE, ProfileOf, chosen, knows
from hops.published.refusal import RowRefusedError
from hops.published.row import PublishedRow, UnreadRow, read_rows
from hops.published.score import PublishedValidation, RowResult, pairs
from hops.published.units import measured_seconds
from hops.spec.load import from_dict
from hops.timing.memory_peaks import memory_peaks

GIB, NS_PER_S = 2**30, 1e9
LAST_RANK = "logging rank"  # Megatron-LM's: the last one, which holds the last stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Seconds of an iteration, and the most bytes that each rank's device holds."""

    seconds: float
    rank_bytes: tuple[int, ...]


Predictor = Callable[[PublishedJob], Prediction]


def predict_job(job: PublishedJob, profile: str | None) -> Prediction:
    """Run the job's spec once. Raises HopsError where no spec can say it."""
    setup = build(from_dict(job.document(profile)))
    prepared = PreparedRun.of(setup)
    assert prepared.program is not None, "published schedules are fixed before the run"
    return Prediction(
        seconds=prepared.alone_ns(0, NO_FAULTS) / NS_PER_S, rank_bytes=_rank_bytes(setup, prepared.program)
    )


def job_bytes(job: PublishedJob, profile: str | None) -> int:
    """The most bytes of the rank whose memory the row states, without running it. Raises HopsError."""
    setup = build(from_dict(job.document(profile)))
    program = PreparedRun.of(setup).program
    assert program is not None, "published schedules are fixed before the run"
    return counted(job.row, _rank_bytes(setup, program))


def counted(row: PublishedRow, rank_bytes: Sequence[int]) -> int:
    """Of the rank that the source looks at: the last one, or the one that holds most."""
    return rank_bytes[-1] if LAST_RANK in (row.memory_kind or "") else max(rank_bytes)


def _rank_bytes(setup: Setup, program: Program) -> tuple[int, ...]:
    peaks = memory_peaks(program, setup.expected).activation_bytes
    memories = setup.facts.stage_memory
    return tuple(
        peak + rank_static_bytes([memories[stage] for stage in setup.shape.stages_of(rank)])
        for rank, peak in enumerate(peaks)
    )


def validate_published(path: Path, profile: str | None) -> PublishedValidation:
    """Predict all rows of a file and hold them against what was measured.

    `profile`: of all rows; None: of each row's framework; "none": the catalog alone. Raises UsageError if the file
    cannot be read.
    """
    start = perf_counter()
    rows, profile_of = read_rows(path), chosen(profile)
    predictor = remembering(profile_of)
    results = tuple(result_of(row, predictor, profile_of) for row in rows)
    read = [(row, each) for row, each in zip(rows, results, strict=True) if isinstance(row, PublishedRow)]
    return PublishedValidation(
        results=results,
        pairs=tuple(pairs([row for row, _ in read], [each for _, each in read])),
        how=_how(profile),
        seconds=perf_counter() - start,
    )


def _how(profile: str | None) -> str:
    if profile is None:
        return "with the profile of each row's framework"
    return "by the catalog alone" if profile == NONE else f"with the profile {profile}"


def remembering(profile_of: ProfileOf) -> Predictor:
    """A predictor that runs jobs that are alike, but for what was measured, once."""
    known: dict[str, Prediction | HopsError] = {}

    def predictor(job: PublishedJob) -> Prediction:
        profile = profile_of(job)
        document = json.dumps(job.document(profile), sort_keys=True)
        if document not in known:
            try:
                known[document] = predict_job(job, profile)
            except HopsError as error:
                known[document] = error
        found = known[document]
        if isinstance(found, HopsError):
            raise found
        return found

    return predictor


def result_of(row: PublishedRow | UnreadRow, predictor: Predictor, profile_of: ProfileOf) -> RowResult:
    """The row predicted, or refused with the reason."""
    if isinstance(row, UnreadRow):
        return RowResult(id=row.id, source=row.source, status="refused", reason=row.reason)
    try:
        job = PublishedJob.of(row)
        predicted = predictor(job)
    except RowRefusedError as error:
        return _refused(row, str(error))
    except HopsError as error:
        return _refused(row, f"no spec can say it: {error}")
    return RowResult(
        id=row.id,
        source=row.source,
        status="predicted",
        predicted_s=predicted.seconds,
        measured_s=measured_seconds(row, job),
        predicted_gib=counted(row, predicted.rank_bytes) / GIB,
        measured_gib=row.memory_gib,
        notes=job.sizes.notes,
        profiled=knows(profile_of(job), job.sizes.device),
    )


def _refused(row: PublishedRow, reason: str) -> RowResult:
    return RowResult(
        id=row.id,
        source=row.source,
        status="refused",
        reason=" ".join(reason.split()),
        measured_s=row.step_s,
        measured_gib=row.memory_gib,
    )
