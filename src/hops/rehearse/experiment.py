"""Which schedule wins where, simulated and run: small pipelines with one slow stage, or given stage times.

The experiment that the original HOPS never ran. Every schedule of a case is rehearsed in the same processes, one after
the other; what is asked is whether the simulator ranks them as the runtime does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from hops.diagnose.versus import HeteroTimes
from hops.rehearse.rehearsal import RehearsalEffort, rehearse_all
from hops.spec.load import from_dict
from hops.spec.spec import Spec

SCHEDULES = ("gpipe", "1f1b", "zb_h1", "zero_bubble", "hops_hetero")
EVERY_SCHEDULE = ("gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zb_h2", "zero_bubble", "zb_v", "v_half", "dualpipe_v")
FORWARD_MS, SLOWER = 10.0, 1.5
APART = 0.03  # pairs that the simulator sees closer than this are not ranked


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A pipeline and the schedules to run on it."""

    name: str
    specs: Mapping[str, Spec]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow:
    """One schedule on one case. `late`: actions, 0 where the measured iteration is clean."""

    case: str
    schedule: str
    simulated_ms: float
    measured_ms: float
    late: int
    order_equal: bool

    @property
    def error(self) -> float:
        return self.measured_ms / self.simulated_ms - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPairs:
    """Pairs of clean rows of one case that the simulator sees more than APART from each other."""

    agree: int
    differ: tuple[str, ...]


def slow_stage_cases(ranks: int) -> Iterator[Case]:
    """One slow stage first, in the middle or last; splitting the backward costs nothing, or a fifth of it."""
    for place, at in (("first", 0), ("middle", ranks // 2), ("last", ranks - 1)):
        for split in (1.0, 1.2):
            forward = [FORWARD_MS * (SLOWER if stage == at else 1.0) for stage in range(ranks)]
            halves = [split * each for each in forward]
            times = StageTimesMs(forward=forward, fused=[2 * each for each in forward], inputs=halves, weights=halves)
            name = f"{ranks} stages, slow {place}, split x{split:g}"
            yield Case(name=name, specs={each: spec_of(times, each, microbatches=2 * ranks) for each in SCHEDULES})


def layout_cases(layouts: Mapping[str, HeteroTimes], *, microbatches: int = 8) -> Iterator[Case]:
    """Stage times as published with the original's 16 pipelines, whose split costs what was measured."""
    for name, layout in layouts.items():
        times = StageTimesMs(
            forward=layout.forward_ms,
            fused=layout.fused_backward_ms,
            inputs=layout.input_backward_ms,
            weights=layout.weight_backward_ms,
            hop_ms=layout.hop_ms[0],
        )
        yield Case(name=name, specs={each: spec_of(times, each, microbatches=microbatches) for each in SCHEDULES})


def schedule_cases(ranks: int, *, p2p: str = "overlapped", hops_ms: Sequence[float] = (0.0, 3.0)) -> Iterator[Case]:
    """Every schedule on equal stages, with messages of no time and of 3 ms."""
    times = [FORWARD_MS]
    for hop in hops_ms:
        equal = StageTimesMs(forward=times, fused=[2 * FORWARD_MS], inputs=times, weights=times, hop_ms=hop)
        specs = {each: spec_of(equal, each, microbatches=2 * ranks, ranks=ranks, p2p=p2p) for each in EVERY_SCHEDULE}
        yield Case(name=f"{ranks} equal stages, messages of {hop:g} ms, {p2p}", specs=specs)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimesMs:
    """Times of F, B, I and W in ms: a value per stage, or one for all."""

    forward: Sequence[float]
    fused: Sequence[float]
    inputs: Sequence[float]
    weights: Sequence[float]
    hop_ms: float = 0.0


def spec_of(
    times: StageTimesMs, schedule: str, *, microbatches: int, ranks: int | None = None, p2p: str = "overlapped"
) -> Spec:
    """A spec of stated times, one iteration, a node per rank."""

    def stated(values: Sequence[float]) -> str | list[str]:
        texts = [f"{value:g} ms" for value in values]
        return texts if len(texts) > 1 else texts[0]

    number = len(times.forward) if ranks is None else ranks
    return from_dict(
        {
            "simulation": {"iterations": 1},
            "pipeline": {
                "stage_times": {
                    "forward": stated(times.forward),
                    "backward": stated(times.fused),
                    "input_backward": stated(times.inputs),
                    "weight_backward": stated(times.weights),
                },
                "microbatches": microbatches,
                "schedule": schedule,
                "p2p": p2p,
            },
            "hardware": {
                "nodes": [{"name": f"n{rank}", "devices": ["a100"]} for rank in range(number)],
                "interconnect": {"bandwidth": "10 Tbit/s", "latency": f"{times.hop_ms:g} ms"},
            },
            "optimizer": {"enabled": False},
        }
    )


def run_cases(cases: Sequence[Case], effort: RehearsalEffort) -> list[CaseRow]:
    """Rehearse everything; all cases have as many ranks."""
    named = [(case.name, schedule, spec) for case in cases for schedule, spec in case.specs.items()]
    found = rehearse_all([spec for _, _, spec in named], effort=effort)
    return [
        CaseRow(
            case=case,
            schedule=schedule,
            simulated_ms=each.simulated_ms,
            measured_ms=min(each.measured_ms),
            late=each.late_actions,
            order_equal=each.order_equal,
        )
        for (case, schedule, _), each in zip(named, found, strict=True)
    ]


def ranked(rows: Sequence[CaseRow]) -> RankedPairs:
    """Whether the runtime ranks pairs of schedules as the simulator does."""
    agree, differ = 0, list[str]()
    for first, second in combinations([row for row in rows if not row.late], 2):
        apart = abs(first.simulated_ms / second.simulated_ms - 1)
        if first.case != second.case or apart <= APART:
            continue
        if (first.simulated_ms < second.simulated_ms) is (first.measured_ms < second.measured_ms):
            agree += 1
        else:
            differ.append(f"{first.schedule} and {second.schedule} on {first.case}")
    return RankedPairs(agree=agree, differ=tuple(differ))
