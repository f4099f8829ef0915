"""PyTorch profiler (Kineto) Chrome traces, one file per rank, reduced to the pipeline's actions.

Actions are what annotations name as one (see annotations). `Optimizer.step#...`, which the profiler writes by itself,
is the optimizer step, from the first to the last of an iteration; `ProfilerStep#3` says the iteration. Times are those
on the GPU (category gpu_user_annotation) where the profile has them, else those of the host without its waits for
receives (see host_times). The two halves of a pair's range on the GPU are its actions; on the host operators tell.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hops.errors import TraceError
from hops.importers.assemble import Origin, assemble
from hops.importers.base import IMPORTERS, Imported, Importer
from hops.importers.events import EventFilter, Events
from hops.importers.kineto.annotations import EXPECTED, OF_RANK, OPTIMIZER, STEP, Named, exchanged, named
from hops.importers.kineto.host_times import HostTimes, Interval, parts
from hops.importers.kineto.positions import Contents, in_order, whole_pipeline
from hops.importers.kineto.profile import GPU, HOST, Profile, Timed, load
from hops.metrics.summary import RunFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ran:
    """Actions of one range, in one iteration: one, or two of a pair; each with its interval."""

    iteration: int
    actions: tuple[Named, ...]
    intervals: tuple[Interval, ...]
    place: int


@IMPORTERS.register("kineto")
class Kineto(Importer):
    """A profile `*.json` or `*.json.gz`, or a folder with one per rank."""

    def recognises(self, path: Path) -> bool:
        named = {file.name for file in _files(path)}
        return bool(named) and "config.json" not in named  # which no profile is called, and Primus's dumps have

    def read(self, path: Path, *, lenient: bool = False, align_clocks: bool = False) -> Imported:
        """Lenient: iterations that are incomplete (the profiler started or ended in them) are dropped and counted.

        A single file of a larger pipeline is read as a run of that rank alone.
        """
        files = _files(path)
        if not files:
            raise TraceError(f"{path}: no profile in it, expected a *.json or *.json.gz per rank")
        profiles = [load(file) for file in files]
        ran = [list(_ran(profile)) for profile in profiles]
        contents = [_contents(profile, actions) for profile, actions in zip(profiles, ran, strict=True)]
        order = in_order(path, contents) if len(files) > 1 else [0]
        alone = len(files) == 1 and not whole_pipeline(contents[0])
        events = Events(files, mark="{file}: traceEvents[{place}]")
        for rank, place in enumerate(order):
            _add(events, rank, place, ran[place], _numbers(contents[place], rank, alone=alone))
        sieve = EventFilter(lenient=lenient)
        ordered = [profiles[place] for place in order]
        origin = Origin(
            devices=tuple(each.device for each in ordered),
            hosts=tuple(each.host or f"host of rank {rank}" for rank, each in enumerate(ordered)),
        )
        found = assemble(events, origin, sieve, align_clocks=align_clocks)
        notes = (_only(contents[0]),) if alone else ()
        return Imported(trace=found.trace, facts=RunFacts(), dropped=sieve.dropped, notes=notes + found.notes)


def _files(path: Path) -> list[Path]:
    found = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file for file in found if file.is_file() and file.name.endswith((".json", ".json.gz"))]


def _contents(profile: Profile, ran: Sequence[_Ran]) -> Contents:
    stages = {action.stage for each in ran for action in each.actions if action != OPTIMIZER}
    kinds = {found for each in profile.timed if each.category == HOST if (found := exchanged(each.name))}
    return Contents(profile=profile, stages=tuple(sorted(stages)), exchanged=kinds)


def _numbers(contents: Contents, rank: int, *, alone: bool) -> dict[int, int]:
    """The stage in the trace of every stage that the profile names: of a rank alone, its own from 0 on."""
    if alone:
        return {stage: number for number, stage in enumerate(contents.stages)}
    return {stage: rank if stage == OF_RANK else stage for stage in contents.stages}


def _only(contents: Contents) -> str:
    """What a reader of one rank's profile must know."""
    profile, names = contents.profile, [stage for stage in contents.stages if stage != OF_RANK]
    size = f" of {profile.world_size}" if profile.world_size is not None else ""
    rank = f"rank {profile.rank}{size}" if profile.rank is not None else "one rank of several"
    shown = "" if names == list(range(len(names))) else (
        f" (its stages {', '.join(map(str, names))} are shown as 0 to {len(names) - 1})" if len(names) > 1 else
        f" (its stage {names[0]} is shown as 0)" if names else "")  # fmt: skip
    return (
        f"{rank} alone{shown}: what others did is not known, and idle time between actions is waiting for them; "
        "give the folder with the profiles of all ranks of one pipeline to see why"
    )


def _add(events: Events, rank: int, file: int, ran: Sequence[_Ran], numbers: dict[int, int]) -> None:
    """Actions as they are; of optimizer steps of one iteration, the time from the first to the last."""
    steps: dict[int, list[_Ran]] = defaultdict(list)
    for each in ran:
        if each.actions == (OPTIMIZER,):
            steps[each.iteration].append(each)
            continue
        for action, (start, end) in zip(each.actions, each.intervals, strict=True):
            stage, op, microbatch = action
            events.add(
                each.iteration, rank, numbers[stage], op, microbatch, file, each.place, start, end,
                pair=len(each.actions) > 1,
            )  # fmt: skip
    for iteration, members in steps.items():
        start = min(each.intervals[0].start_ns for each in members)
        end = max(each.intervals[0].end_ns for each in members)
        events.add(iteration, rank, max(rank, 0), OPTIMIZER.op, -1, file, members[0].place, start, end)


def _ran(profile: Profile) -> Iterator[_Ran]:
    """Every range with its iteration: times on the GPU where it has some, iterations as the host launched them."""
    steps = sorted(
        (each.start_ns, each.end_ns, int(match[1]))
        for each in profile.timed
        if each.category == HOST and (match := STEP.fullmatch(each.name))
    )
    launched, ran = (_by_actions(profile.timed, category) for category in (HOST, GPU))
    if not set(launched) - {(OPTIMIZER,)}:
        raise TraceError(
            f"{profile.file}: no pipeline action in it, expected record_function annotations such as {EXPECTED}; "
            "PyTorch's Schedule1F1B writes none: use a schedule with several stages per rank, or name actions yourself"
        )
    ran = _of_main_thread(ran)
    starts = _starts(launched)
    host = HostTimes(profile.timed)
    for actions, spans in launched.items():
        timed = ran[actions] if ran else spans
        if len(timed) != len(spans):
            raise TraceError(
                f"{profile.file}: {' and '.join(f'{a.op.name} of microbatch {a.microbatch}' for a in actions)} is "
                f"annotated {len(spans)} times on the host and {len(timed)} times on the GPU, expected as often: "
                "record whole iterations with a profiler schedule"
            )
        for nth, (span, times) in enumerate(zip(spans, timed, strict=True)):
            iteration = _step(span, steps) if steps else _turn(actions, nth, span, starts)
            if iteration is not None:
                whole = Interval(times.start_ns, times.end_ns)
                intervals = parts(whole, len(actions)) if ran else host.of(span, actions)
                yield _Ran(iteration=iteration, actions=actions, intervals=tuple(intervals), place=times.place)


def _by_actions(timed: Sequence[Timed], category: str) -> dict[tuple[Named, ...], list[Timed]]:
    groups: dict[tuple[Named, ...], list[Timed]] = defaultdict(list)
    for span in sorted((each for each in timed if each.category == category), key=lambda each: each.start_ns):
        if actions := named(span.name):
            groups[actions].append(span)
    return groups


def _of_main_thread(ran: dict[tuple[Named, ...], list[Timed]]) -> dict[tuple[Named, ...], list[Timed]]:
    """The ranges on the stream that has most: an annotation shows on every stream that it put work on."""
    if not ran:
        return {}
    main, _ = Counter(span.thread for spans in ran.values() for span in spans).most_common(1)[0]
    kept: dict[tuple[Named, ...], list[Timed]] = defaultdict(list)
    kept |= {actions: [span for span in spans if span.thread == main] for actions, spans in ran.items()}
    return kept


def _starts(launched: dict[tuple[Named, ...], list[Timed]]) -> list[int]:
    """When each repetition of the actions begins, for profiles without profiler steps."""
    repeated = [spans for actions, spans in launched.items() if actions != (OPTIMIZER,)]
    most = max(map(len, repeated))
    return [min(spans[nth].start_ns for spans in repeated if nth < len(spans)) for nth in range(most)]


def _turn(actions: tuple[Named, ...], nth: int, span: Timed, starts: Sequence[int]) -> int | None:
    """Without profiler steps, repetitions are iterations, and optimizer steps belong to the one that began last."""
    if actions != (OPTIMIZER,):
        return nth
    begun = sum(start <= span.start_ns for start in starts)
    return begun - 1 if begun else None


def _step(span: Timed, steps: Sequence[tuple[int, int, int]]) -> int | None:
    """The profiler step that a range was launched in; None outside all."""
    return next((number for start, end, number in steps if start <= span.start_ns < end), None)
