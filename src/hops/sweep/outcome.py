"""One point: a spec run to a few figures, or to the reason why there are none."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hops.build.run import simulate
from hops.decode.quantities import Section
from hops.errors import HopsError
from hops.metrics.figures import Figure, figures
from hops.recent import Recent
from hops.spec.spec import Spec

Status = Literal["ok", "refused", "crashed", "died"]
FORMAT = 1  # of what is stored; raised when equal specs come to other figures
USUAL_FIGURES = (
    "iteration_time.mean_ms",
    "throughput.samples_per_s",
    "throughput.tokens_per_s",
    "mfu",
    "bubble.pipeline.fraction",
    "peak_memory.bytes",
    "peak_memory.share",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a point.

    Attributes:
        status: ok; refused: it does not fit, stalls or is no spec, and will be again; crashed: something raised what
            it should not; died: the process that ran it was killed, which another time it may not be.
        reason: in words, empty if it is ok.
        figures: values in the order in which they were asked for; () unless it is ok.
        seconds: it took.
    """

    status: Status
    reason: str = ""
    figures: tuple[Figure, ...] = ()
    seconds: float = 0.0


def outcome(spec: Spec, only: Sequence[str]) -> Outcome:
    """Run a spec. Never raises: what goes wrong is the outcome."""
    start = time.perf_counter()
    try:
        run = simulate(spec)
        found = tuple(figures(run.trace, run.facts, only).values())
    except HopsError as error:
        return Outcome(status="refused", reason=reason(error), seconds=time.perf_counter() - start)
    except Exception as error:  # noqa: BLE001 (a schedule of somebody's own may raise anything; other points go on)
        return Outcome(status="crashed", reason=reason(error), seconds=time.perf_counter() - start)
    return Outcome(status="ok", figures=found, seconds=time.perf_counter() - start)


def reason(error: Exception) -> str:
    """What a row says of an error: its kind and its words."""
    return f"{type(error).__name__}: {error}"


def key_of(spec: Spec, only: Sequence[str], version: str) -> str:
    """The name of an outcome: a hash of all that decides it: the spec with its files, the figures, the version.

    What the spec writes where (`output`) decides nothing.
    """
    digest = hashlib.sha256(f"{FORMAT}\n{version}\n{' '.join(only)}\n".encode())
    for name in Spec.model_fields:
        if name != "output":
            digest.update(_digest_of(getattr(spec, name)))
    for file in _files(spec):
        digest.update(hashlib.sha256(Path(file).read_bytes()).digest() if Path(file).is_file() else b"-")
    return digest.hexdigest()[:32]


_DIGESTS: Recent[bytes] = Recent(1024)


def _digest_of(section: Section) -> bytes:
    text = section.model_dump_json
    return _DIGESTS.of((section,), lambda: hashlib.sha256(text().encode()).digest())


def _files(spec: Spec) -> tuple[str, ...]:
    """The files that a spec names, whose content decides as well."""
    named = (
        spec.hardware.profile,
        spec.failure.plan,
        spec.failure.trace,
        spec.pipeline.schedule.parameters.get("file"),
    )
    return (*spec.hardware.catalog, *(str(each) for each in named if each is not None))
