"""HOPS predicts, plans and explains pipeline-parallel LLM training on mixed GPUs.

Every verb is a function of this module. A spec says what runs where; it comes from a file or from plain data:

>>> import hops
>>> spec = hops.from_dict({
...     "pipeline": {
...         "stage_times": {"forward": "10 ms", "backward": "20 ms", "message": "8 MiB"},
...         "microbatches": 8,
...     },
...     "hardware": {"nodes": [{"devices": ["h100", "h100", "h100", "h100"]}]},
... })
>>> spec
Spec(1f1b, 8 microbatches, 4 h100)
>>> run = hops.simulate(spec)
>>> summary = hops.summarize(run)
>>> round(summary.iteration_time.mean_ms)
330

The examples below go on with this `spec`, `run` and `summary`. All errors are `hops.HopsError`: what is wrong, what was
got, what is expected, where, and the fix.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from hops.build.compare import Compared
    from hops.build.run import SimulatedRun
    from hops.build.setup import Setup
    from hops.calibrate.validate import Validation
    from hops.cost.profile import HardwareProfile
    from hops.diagnose.what_if import WhatIf
    from hops.errors import HopsError
    from hops.fleet.result import GoodputSummary
    from hops.importers.base import Imported
    from hops.metrics.summary import RunFacts, Summary
    from hops.planner.result import Plan, PlanReport
    from hops.program.program import Program
    from hops.search.search import Result
    from hops.spec.spec import Spec
    from hops.sweep.outcome import Outcome
    from hops.sweep.run import Progress
    from hops.sweep.samples import Samples
    from hops.sweep.table import SweepTable
    from hops.timing.stage_costs import StageCosts
    from hops.trace.trace import Trace

    File = str | os.PathLike[str]

__version__ = "0.1.0"
_TYPES = {  # where the types that verbs take and give live; loaded when they are first asked for
    "Compared": "hops.build.compare",
    "GoodputSummary": "hops.fleet.result",
    "HardwareProfile": "hops.cost.profile",
    "HopsError": "hops.errors",
    "Imported": "hops.importers.base",
    "Outcome": "hops.sweep.outcome",
    "Plan": "hops.planner.result",
    "PlanReport": "hops.planner.result",
    "Progress": "hops.sweep.run",
    "Program": "hops.program.program",
    "Result": "hops.search.search",
    "RunFacts": "hops.metrics.summary",
    "Samples": "hops.sweep.samples",
    "Setup": "hops.build.setup",
    "SimulatedRun": "hops.build.run",
    "Spec": "hops.spec.spec",
    "StageCosts": "hops.timing.stage_costs",
    "Summary": "hops.metrics.summary",
    "SweepTable": "hops.sweep.table",
    "Trace": "hops.trace.trace",
    "Validation": "hops.calibrate.validate",
    "WhatIf": "hops.diagnose.what_if",
}
__all__ = [
    "Compared",
    "GoodputSummary",
    "HardwareProfile",
    "HopsError",
    "Imported",
    "Outcome",
    "Plan",
    "PlanReport",
    "Program",
    "Progress",
    "Result",
    "RunFacts",
    "Samples",
    "Setup",
    "SimulatedRun",
    "Spec",
    "StageCosts",
    "Summary",
    "SweepTable",
    "Trace",
    "Validation",
    "WhatIf",
    "__version__",
    "calibrate",
    "compare",
    "draw_comparison",
    "draw_dashboard",
    "draw_diff",
    "draw_sweep",
    "draw_timeline",
    "dump",
    "evaluate",
    "from_dict",
    "goodput",
    "load",
    "loads",
    "plan",
    "read_trace",
    "sample",
    "search",
    "simulate",
    "summarize",
    "sweep",
    "validate",
    "whatif",
]


def __getattr__(name: str) -> Any:
    """Load a type when it is first used, so that `import hops` and the command line's help stay quick."""
    if name in _TYPES:
        return getattr(import_module(_TYPES[name]), name)
    raise AttributeError(f"module 'hops' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


class _FrontDoor(ModuleType):
    """Keeps a verb a verb when the room of the same name is imported (`hops.search.search` would replace `search`)."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in __all__):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _FrontDoor


# Specs


def load(path: "File", overrides: Sequence[str] = ()) -> "Spec":
    """Read a spec file; `overrides` such as `pipeline.microbatches=16` are applied in order.

    >>> hops.load("spec.yaml", ["pipeline.microbatches=16"])
    Spec(1f1b, 16 microbatches, 4 h100)

    Raises SpecError with every problem of the file, one a line: `file:line:column: path.to.key: what`.
    """
    from hops.spec.load import load as read

    return read(path, overrides)


def loads(text: str, *, name: str = "spec", overrides: Sequence[str] = (), folder: "File" = ".") -> "Spec":
    r"""Read a spec from YAML text. `name` stands for the file in messages, `folder` is where its files are.

    >>> hops.loads("pipeline: {model: gpt2, microbatches: 4}\nhardware: {nodes: [{devices: [l4, l4]}]}")
    Spec(1f1b, 4 microbatches, 2 l4)

    Raises SpecError as `load` does.
    """
    from hops.spec.load import loads as read

    return read(text, name=name, overrides=overrides, folder=folder)


def from_dict(data: Mapping[str, Any], *, folder: "File" = ".") -> "Spec":
    """A spec from plain data (dicts, lists, text, numbers), checked like a file; messages name the path.

    >>> hops.from_dict({"pipeline": {"model": "gpt2"}, "hardware": {"nodes": [{"devices": ["l4"]}]}})
    Traceback (most recent call last):
    hops.errors.SpecError: pipeline.microbatches: missing (microbatches per iteration and pipeline); add it

    One value or several are changed by `spec.with_`, checked as well:

    >>> spec.with_({"pipeline.schedule": "zb_h1", "hardware.interconnect": {"bandwidth": "100 Gbit/s"}})
    Spec(zb_h1, 8 microbatches, 4 h100)
    """
    from hops.spec.load import from_dict as read

    return read(data, folder=folder)


def dump(spec: "Spec") -> str:
    """The spec as YAML with every default visible; `loads` of it gives an equal spec.

    >>> hops.loads(hops.dump(spec)) == spec
    True
    """
    from hops.spec.text import dump as write

    return write(spec)


# Runs


def simulate(spec: "Spec", *, on_iteration: Callable[[int], None] | None = None) -> "SimulatedRun":
    """Run a spec. `on_iteration` is called with the number of every finished iteration.

    >>> hops.simulate(spec)
    SimulatedRun(1f1b, 4 ranks, 3 iterations, 336 rows)

    Raises DoesNotFitError before it runs if memory is too small, StalledError if ranks wait for each other for ever,
    JobFailedError if a link is down for longer than the transport waits.
    """
    from hops.build.run import simulate as start

    return start(spec, on_iteration=on_iteration)


@overload
def summarize(run: "SimulatedRun | Imported") -> "Summary": ...
@overload
def summarize(run: "SimulatedRun | Imported", *, only: Sequence[str]) -> dict[str, Any]: ...
def summarize(run: "SimulatedRun | Imported", *, only: Sequence[str] | None = None) -> "Summary | dict[str, Any]":
    """Every figure of a run, simulated or measured; see docs/reference/metrics.md.

    >>> round(100 * summary.bubble.iteration.fraction), round(summary.throughput.samples_per_s, 1)
    (27, 24.2)

    With `only`, these figures alone, in a fraction of the time; a name is a path of the summary's JSON:

    >>> hops.summarize(run, only=["iteration_time.mean_ms", "peak_memory.bytes"])
    {'iteration_time.mean_ms': 330.352672, 'peak_memory.bytes': None}

    Raises UsageError for a figure that there is not.
    """
    from hops.metrics.figures import figures
    from hops.metrics.summarize import summarize as all_figures

    return all_figures(run.trace, run.facts) if only is None else figures(run.trace, run.facts, only)


def compare(spec: "Spec", schedules: Sequence[str]) -> "Compared":
    """Simulate a spec under several schedules; those that cannot run here are listed with the reason.

    A schedule may bear parameters, such as `interleaved_1f1b:chunks=4`.

    >>> found = hops.compare(spec, ["gpipe", "1f1b", "zb_h1"])
    >>> {name: round(each.iteration_time.mean_ms) for name, each in found.summaries().items()}
    {'gpipe': 330, '1f1b': 330, 'zb_h1': 270}

    Raises UsageError for an unknown schedule, DoesNotFitError if none can run.
    """
    from hops.build.compare import compare as run_all

    return run_all(spec, schedules)


def evaluate(
    specs: "Iterable[Spec]",
    *,
    only: Sequence[str] | None = None,
    jobs: int = 1,
    executor: "Executor | None" = None,
) -> "list[Outcome]":
    """Run many specs to a few figures each, without keeping their traces; in the order given.

    Args:
        specs: those made by `spec.with_` of one spec share what they have in common, and take a fraction of the time.
        only: figures as `summarize` names them; default: time, throughput, MFU, bubble and memory.
        jobs: processes, or with an executor how many points it works on at once.
        executor: any of `concurrent.futures`, such as Dask's, in place of processes.

    >>> grid = [spec.with_({"pipeline.microbatches": count}) for count in (4, 8, 16)]
    >>> [round(each.figures[0]) for each in hops.evaluate(grid, only=["iteration_time.mean_ms"])]
    [210, 330, 571]

    Never raises for a spec that cannot run: its `status` and `reason` say why.
    """
    from hops.sweep.outcome import USUAL_FIGURES
    from hops.sweep.work import evaluate as run_all

    return run_all(specs, USUAL_FIGURES if only is None else tuple(only), jobs=jobs, executor=executor)


def sample(
    spec: "Spec",
    count: int,
    *,
    deadline: str | None = None,
    precision: float | None = None,
    jobs: int = 1,
) -> "Samples":
    """Run a spec with many seeds: how long iterations take, how surely, and how often a deadline is missed.

    Args:
        spec: whatever it draws (noise, stalls, faults) is drawn anew for every seed, from its own on.
        count: of seeds, at least 2; one is run if nothing is drawn.
        deadline: what an iteration may take, such as `2 s`.
        precision: stop when the mean is known to this part of itself with 95 % confidence, such as 0.01.
        jobs: processes; the samples are the same for any number.

    >>> noisy = spec.with_({"pipeline.jitter": {"distribution": "lognormal", "mean": 1.0, "std": 0.1}})
    >>> found = hops.sample(noisy, 50, deadline="350 ms")
    >>> round(found.iteration_time.p50.value), round(found.iteration_time.p95.value), found.missed.value
    (338, 343, 0.0)

    Raises UsageError for numbers that make no sense.
    """
    from hops.sweep.samples import sample as run_many
    from hops.units import parse_time

    deadline_ms = None if deadline is None else 1e3 * parse_time(deadline)
    return run_many(spec, count, deadline_ms=deadline_ms, precision=precision, jobs=jobs)


def sweep(
    plan: "File | Mapping[str, Any]",
    *,
    store: "File | None" = None,
    jobs: int | None = None,
    executor: "Executor | None" = None,
    on_progress: "Callable[[Progress], None] | None" = None,
) -> "SweepTable":
    """Run a spec at many points, and give their table: `to_csv`, `to_parquet`, `to_pandas`, `records`.

    Args:
        plan: a sweep file, or the same as plain data, in which `spec` may also be a `Spec`.
        store: an SQLite file that keeps every outcome as it comes. The same sweep with the same store goes on where
            it ended, and after a change runs only what is new. None: nothing is kept.
        jobs: processes; default: one per core. The table is the same for any number.
        executor: any of `concurrent.futures`, in place of processes.
        on_progress: called with what is done, twice a second.

    >>> table = hops.sweep({
    ...     "spec": spec,
    ...     "axes": {"pipeline.schedule": ["1f1b", "zb_h1"], "pipeline.microbatches": [4, 8, 12, 16]},
    ... }, jobs=1)
    >>> table
    SweepTable(8 of 8 points, 0 without figures)
    >>> min(table.records(), key=lambda record: record["iteration_time.mean_ms"])["pipeline.schedule"]
    'zb_h1'

    Raises UsageError or SpecError for a plan that is wrong, UsageError for a store that cannot be written.
    """
    from hops.processes import cores
    from hops.sweep.plan import load_sweep, sweep_from_dict
    from hops.sweep.run import run_sweep
    from hops.sweep.store import Store

    known = sweep_from_dict(plan) if isinstance(plan, Mapping) else load_sweep(plan)
    with Store(":memory:" if store is None else Path(store)) as kept:
        return run_sweep(known, kept, jobs=jobs or cores(), executor=executor, on_progress=on_progress)


def read_trace(path: "File", *, format_name: str = "", lenient: bool = False) -> "Imported":
    """Read a measured run: Megatron-LM's traces, PyTorch profiles, CSV or HOPS's own files; formats are guessed.

    `lenient` drops faulty lines and counts them instead of stopping at the first.

    >>> hops.read_trace("run.csv").trace == run.trace
    True

    Raises TraceError with file and line, UsageError if no importer recognises the file.
    """
    from hops.importers.base import read_trace as read

    return read(Path(path), format_name=format_name, lenient=lenient)


# Answers


def plan(
    spec: "File | Mapping[str, Any]",
    *,
    overrides: Sequence[str] = (),
    objective: str = "throughput",
    budget: str = "3 s",
    top: int = 5,
    batch: int | None = None,
) -> "PlanReport":
    """Choose what a spec leaves open (`auto`, lists, nothing), and rank the best plans against a bound.

    Args:
        spec: a file, or plain data; an open spec is no `Spec` yet.
        overrides: changes to a file, as `load` takes them.
        objective: throughput, iteration_time, cost_per_token or pareto.
        budget: a time, which becomes a number of evaluations: the same budget gives the same plans.
        top: how many plans.
        batch: samples per iteration and pipeline, where microbatches are left open.

    >>> report = hops.plan({
    ...     "pipeline": {"model": "gpt2-medium", "microbatches": 8, "schedule": ["gpipe", "1f1b"]},
    ...     "hardware": {"nodes": [{"devices": ["h100", "l4"]}]},
    ... }, budget="0.2 s", top=1)
    >>> report.plans[0].spec
    Spec(1f1b, 8 microbatches, 1 h100, 1 l4)

    Raises DoesNotFitError with the proof if nothing fits, UsageError if nothing is open.
    """
    from hops.planner.planner import plan as choose
    from hops.planner.problem import Objective
    from hops.spec.open import load_open, open_dict
    from hops.units import parse_time

    opened = open_dict(spec, batch=batch) if isinstance(spec, Mapping) else load_open(spec, overrides, batch=batch)
    return choose(opened, objective=Objective.named(objective), budget_s=parse_time(budget), top=top)


def search(costs: "Spec | StageCosts", *, budget: str = "0.5 s", seed: int = 0) -> "Result":
    """The best order of the actions that a budget finds for a spec's expected stage costs, with its certificate.

    >>> found = hops.search(spec, budget="0.1 s")
    >>> round(found.certificate.makespan_ns / 1e6), found.certificate.gap < 0.01
    (270, True)

    Raises DoesNotFitError if one microbatch does not fit.
    """
    from hops.build.setup import build as make
    from hops.schedules.builtins import search_from_builtins
    from hops.search.search import iterations_for
    from hops.timing.stage_costs import StageCosts
    from hops.units import parse_time

    profile = costs if isinstance(costs, StageCosts) else make(costs).expected
    return search_from_builtins(profile, iterations=iterations_for(parse_time(budget), profile), seed=seed)


def goodput(spec: "Spec", *, days: float = 30.0, seeds: int = 20, samples: int = 64, jobs: int = 1) -> "GoodputSummary":
    """Train for days on hardware that breaks, as the spec's failure section says: where does the time go?

    Args:
        spec: with `failure.enabled`; `failure.recovery` says what stops cost.
        days: how long every simulated training runs.
        seeds: how many trainings, with faults of their own.
        samples: iterations simulated per condition, if anything in the spec is drawn.
        jobs: processes; the result is the same for any number.

    >>> stops = {"kind": "stop", "on": "devices", "between": "20 d", "repair": "1 h"}
    >>> broken = spec.with_({"failure": {"enabled": True, "models": [stops], "recovery": {"state": "10 GiB"}}})
    >>> 0.5 < hops.goodput(broken, days=30, seeds=2).goodput < 1
    True

    Raises UsageError for numbers that make no sense, DoesNotFitError as `simulate` does.
    """
    from hops.build.setup import build as make
    from hops.fleet.result import summarize_study
    from hops.fleet.study import prepare
    from hops.planner.replanned import replanned

    study = prepare(make(spec), spec.failure.recovery, days=days, seeds=seeds, samples=samples, replan=replanned)
    return summarize_study(study, study.trajectories(jobs=jobs))


def whatif(
    spec: "Spec",
    *,
    slow: Mapping[str, float] | None = None,
    slow_links: Mapping[str, float] | None = None,
    down: Mapping[str, str] | None = None,
    schedules: Sequence[str] | None = None,
) -> "tuple[dict[str, WhatIf], dict[str, str]]":
    """What a change costs under each schedule, and why schedules cannot run that cannot.

    Args:
        spec: its failure section is left aside.
        slow: by device or host, how many times longer everything takes.
        slow_links: by link or NIC, the part of the bandwidth that is left.
        down: by link or NIC, for how long nothing passes from the start of the run, such as `2 s`.
        schedules: default: the spec's own.

    >>> found, refused = hops.whatif(spec, slow={"node0/2": 1.5})
    >>> round(found["1f1b"].iteration_ms), round(found["1f1b"].changed_iteration_ms)
    (330, 435)
    """
    from hops.diagnose.what_if import Changes, what_if
    from hops.units import parse_time

    seconds = {name: parse_time(time) for name, time in (down or {}).items()}
    changes = Changes(slow=slow or {}, slow_links=slow_links or {}, down_s=seconds)
    return what_if(spec, changes, schedules or [spec.pipeline.schedule.name])


def calibrate(runs: "Sequence[File]", *, warmup: int = 0) -> "HardwareProfile":
    """Fit the cost model's parameters to measured runs: folders of run folders. Needs scipy (extra `calibrate`).

    >>> profile = hops.calibrate(["runs/"])  # doctest: +SKIP

    `hops.cost.profile.write_profile` writes it for `hardware.profile`. Raises UsageError or TraceError for a bad run.
    """
    from hops.calibrate.calibrate import calibrate as fit
    from hops.calibrate.observations import observe
    from hops.calibrate.validate import run_folders
    from hops.importers.megatron.run_folder import read_inputs

    folders = [folder for path in runs for folder in run_folders(Path(path))]
    return fit([observe(read_inputs(each), _measured(each), warmup=warmup) for each in folders])


def validate(
    runs: "File", *, profile: str = "megatron-aws", folds: int = 0, seed: int = 0, warmup: int = 0, jobs: int = 1
) -> "Validation":
    """Predict measured runs from their launch arguments and link benchmarks alone, then score against their traces.

    Args:
        runs: a folder of run folders.
        profile: a profile's file, or a shipped one's name.
        folds: cross-validate instead: predict each run by a profile of other runs.
        seed: how scenarios are shuffled then.
        warmup: leading iterations of traces to leave out.
        jobs: processes.

    >>> hops.validate("runs/", folds=5).suite("calibrated").throughput_mape_pct  # doctest: +SKIP
    """
    from hops.calibrate.validate import Readers, cross_validate, run_folders
    from hops.calibrate.validate import validate as predict_all
    from hops.cost.profile import shipped_profile
    from hops.importers.megatron.run_folder import read_inputs

    folders = run_folders(Path(runs))
    readers = Readers(inputs=read_inputs, trace=_measured, warmup=warmup)
    if folds:
        return cross_validate(folders, readers, number=folds, seed=seed, jobs=jobs)
    file = Path(profile) if Path(profile).is_file() else shipped_profile(profile)
    return predict_all(folders, readers, file, jobs=jobs)


def _measured(folder: Path) -> "Trace":
    from hops.importers.megatron.trace import read_run

    return read_run(folder).trace


# Pictures: PNG, SVG or PDF, by the name's ending


def draw_timeline(
    run: "SimulatedRun | Imported",
    path: "File",
    *,
    iterations: Sequence[int] | None = None,
    window: tuple[str, str] | None = None,
    ranks: str | None = None,
    width: str | None = None,
    font_size: float = 8.0,
    title: str | None = None,
    style: "File | None" = None,
) -> None:
    """Draw what every rank did when, and memory where it is known.

    Args:
        run: simulated or measured.
        path: ends in .png, .svg or .pdf.
        iterations: which; by default the first after warm-up, as many as stay readable.
        window: from when to when of the run instead, such as `("0 s", "2 s")`.
        ranks: which, such as `0-7`; by default all.
        width: of the page or column that it is printed on, such as `3.3in` or `84mm`.
        font_size: of its text, in points.
        title: above it; by default what ran, and nothing on a narrow figure.
        style: a file with any of width, font_size, title and colours; what is given here counts more.

    >>> hops.draw_timeline(run, "timeline.svg")
    >>> hops.draw_timeline(run, "column.pdf", width="3.3in", font_size=8, ranks="0-1", window=("0 s", "0.2 s"))

    Raises UsageError for another ending, ranks or times that are not in the run, a width without room.
    """
    from hops.units import parse_time
    from hops.viz.look import look_of, parse_ranks
    from hops.viz.timeline import draw_timeline as draw

    draw(
        run.trace,
        run.facts,
        Path(path),
        iterations=iterations,
        window_s=None if window is None else (parse_time(window[0]), parse_time(window[1])),
        ranks=None if ranks is None else parse_ranks(ranks),
        look=look_of(
            width=width,
            font_size=None if style is not None and font_size == 8.0 else font_size,
            title=title,
            style=None if style is None else Path(style),
        ),
    )


def draw_comparison(runs: "Mapping[str, SimulatedRun | Imported]", path: "File") -> None:
    """Draw runs under each other on one time axis; each but the first says how much faster or slower it is.

    >>> split = hops.simulate(spec.with_({"pipeline.schedule": "zb_h1"}))
    >>> hops.draw_comparison({"as it is": run, "split": split}, "comparison.svg")
    """
    from hops.viz.comparison import draw_comparison as draw

    draw([(name, run.trace, summarize(run), run.facts) for name, run in runs.items()], Path(path))


def draw_diff(
    first: "SimulatedRun | Imported", second: "SimulatedRun | Imported", path: "File", *, names: tuple[str, str]
) -> None:
    """Draw where the iteration times of two runs differ, by rank and along their critical paths.

    >>> slower = hops.simulate(spec.with_({"pipeline.stage_times.forward": "12 ms"}))
    >>> hops.draw_diff(run, slower, "diff.svg", names=("as it is", "slower"))
    """
    from hops.viz.difference import draw_diff as draw

    draw((names[0], first.trace, first.facts), (names[1], second.trace, second.facts), Path(path))


def draw_dashboard(run: "SimulatedRun | Imported", path: "File") -> None:
    """Draw eight panels of figures on one sheet.

    >>> hops.draw_dashboard(run, "dashboard.svg")
    """
    from hops.viz.dashboard import draw_dashboard as draw

    draw(run.trace, summarize(run), run.facts, Path(path))


def draw_sweep(table: "SweepTable", kind: str, path: "File", *, of: Sequence[str] = ()) -> None:
    """Draw a sweep: `lines`, `heat`, `pareto` or `parallel`; `of` names columns in order (x, y, colour).

    >>> table = hops.sweep({"spec": spec, "axes": {"pipeline.microbatches": [4, 8, 16]}})
    >>> hops.draw_sweep(table, "lines", "sweep.svg", of=["pipeline.microbatches", "iteration_time.mean_ms"])
    """
    from hops.viz.sweep import draw_sweep_picture

    draw_sweep_picture(table, kind, Path(path), of)


def _in_notebook() -> None:
    """Where IPython runs, show specs, traces, summaries and plans as tables and pictures."""
    if "IPython" not in sys.modules:
        return
    shell = sys.modules["IPython"].get_ipython()
    if shell is None:
        return
    formatter = shell.display_formatter.formatters["text/html"]
    kinds = {"Spec": "hops.spec.spec", "Trace": "hops.trace.trace", "Summary": "hops.metrics.summary"}
    kinds |= {"SimulatedRun": "hops.build.run", "PlanReport": "hops.planner.result"}
    for name, module in kinds.items():
        formatter.for_type_by_name(module, name, lambda value: import_module("hops.viz.notebook").as_html(value))


_in_notebook()
