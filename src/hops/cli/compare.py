"""`hops compare`: schedules, specs or values of a key side by side, once or under many seeds; samples of one spec."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hops.cli.console import AllCoresOption, JsonOption, QuietOption, SetOption

if TYPE_CHECKING:
    from hops.build.compare import Variation
    from hops.spec.spec import Spec
    from hops.sweep.samples import Samples

SamplesOption = Annotated[
    int | None,
    typer.Option("--samples", metavar="COUNT", help="Run so many seeds: spreads and probabilities."),
]
DeadlineOption = Annotated[
    str | None, typer.Option("--deadline", metavar="TIME", help="How often does an iteration take longer? Such as 2 s.")
]
PrecisionOption = Annotated[
    float | None,
    typer.Option("--precision", metavar="SHARE", help="Stop when the mean is known to this part, such as 0.01."),
]
USUAL = "gpipe,1f1b,zb_h1,zero_bubble"


def compare(
    specs: Annotated[
        list[Path], typer.Argument(metavar="SPEC...", help="One spec file, or several.", show_default=False)
    ],
    schedules: Annotated[
        str | None,
        typer.Option(
            "--schedules",
            "-s",
            metavar="A,B:X=1,C",
            help="Schedules, or all; with parameters such as interleaved_1f1b:chunks=4; default: "
            f"{USUAL}, or of several specs each its own.",
        ),
    ] = None,
    vary: Annotated[
        str | None,
        typer.Option("--vary", metavar="KEY=A,B", help="One more axis: values of a key, separated by commas."),
    ] = None,
    overrides: SetOption = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", "-p", metavar="FILE", help="Draw all timelines into a PNG, SVG or PDF.")
    ] = None,
    samples: SamplesOption = None,
    jobs: AllCoresOption = None,
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Simulate a spec under several schedules, or several specs, side by side.

    What cannot run here (memory, divisibility) is listed with the reason. Exit code 1 if none can. With `--samples`
    all have the same seeds, so that noise hits them alike and differences are surer than times.
    """
    from hops.build.compare import compare_all, variations
    from hops.cli.console import show, show_json
    from hops.errors import UsageError
    from hops.report.comparison import render_comparison
    from hops.spec.load import load
    from hops.viz.comparison import draw_comparison

    if picture is not None and not picture.parent.is_dir():
        raise UsageError(f"--picture {picture}: there is no folder {picture.parent}; make it, or name another")
    chosen = schedules if schedules is not None else (USUAL if len(specs) == 1 and vary is None else None)
    if len(set(specs)) < len(specs):
        raise UsageError("got a spec twice, expected different files")
    stems = [path.stem for path in specs]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in specs]
    loaded = {name: load(path, overrides or ()) for name, path in zip(names, specs, strict=True)}
    each = variations(loaded, [] if chosen is None else _names(chosen), None if vary is None else _axis(vary))
    if samples is not None:
        if picture is not None:
            raise UsageError("--picture is of one run each, and --samples has many; remove one")
        _compare_samples(each, samples, jobs, as_json=as_json, quiet=quiet)
        return
    found = compare_all(each)
    summaries = found.summaries()
    if picture is not None:
        draw_comparison([(name, run.trace, summaries[name], run.facts) for name, run in found.runs.items()], picture)
    if as_json:
        show_json({"runs": {name: each.to_dict() for name, each in summaries.items()}, "refused": found.refused})
    elif not quiet:
        refused = (f"{name} cannot run: {why.removeprefix(name + ': ')}" for name, why in found.refused.items())
        show(render_comparison(summaries), *refused)
        if picture is not None:
            show(f"wrote {picture}")


def _names(schedules: str) -> list[str]:
    from hops.errors import UsageError

    names = [name.strip() for name in schedules.split(",") if name.strip()]
    if len(set(names)) != len(names) or not names:
        raise UsageError(f"--schedules: got {schedules!r}, expected different names separated by commas")
    return names


def _axis(vary: str) -> tuple[str, list[Any]]:
    from hops.decode.document import parse
    from hops.errors import UsageError

    key, equals, text = vary.partition("=")
    values = [parse(each, name="--vary").data for each in text.split(",") if each.strip()]
    if not equals or not key.strip() or not values:
        raise UsageError(
            f"--vary: got {vary!r}, expected KEY=A,B such as hardware.interconnect.bandwidth=10 Gbit/s,25 Gbit/s"
        )
    return key.strip(), values


def run_samples(
    spec: "Spec",
    count: int,
    deadline: str | None,
    precision: float | None,
    jobs: int | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """`hops run --samples`."""
    from hops.cli.console import progress, show, show_json
    from hops.report.samples import render_samples
    from hops.sweep.samples import sample, samples_to_dict
    from hops.units import parse_time

    deadline_ms = None if deadline is None else 1e3 * parse_time(deadline)
    with progress("sampling", count, visible=not as_json and not quiet) as on_done:
        found = sample(spec, count, deadline_ms=deadline_ms, precision=precision, jobs=jobs, on_done=on_done)
    if as_json:
        show_json(samples_to_dict(found))
    elif not quiet:
        show(render_samples(found))


def _compare_samples(each: "dict[str, Variation]", count: int, jobs: int | None, *, as_json: bool, quiet: bool) -> None:
    from dataclasses import asdict

    from hops.cli.console import progress, show, show_json
    from hops.errors import DoesNotFitError, SpecError
    from hops.report.samples import render_sampled_comparison
    from hops.sweep.samples import paired_difference, sample, samples_to_dict

    found: dict[str, Samples] = {}
    refused: dict[str, str] = {}
    with progress("sampling", len(each), visible=not as_json and not quiet) as on_done:
        for number, (name, variation) in enumerate(each.items()):
            try:
                samples = sample(variation.made(), count, jobs=jobs)
                if samples.iteration_ms:
                    found[name] = samples
                else:
                    refused[name] = next(iter(samples.reasons))
            except SpecError as error:
                refused[name] = str(error).removeprefix("pipeline.schedule: ")
            on_done(number)
    if not found:
        raise DoesNotFitError("none can run\n" + "\n".join(f"{name}: {why}" for name, why in refused.items()))
    first = next(iter(found.values()))
    changes = {name: paired_difference(first.by_seed, one.by_seed) for name, one in list(found.items())[1:]}
    if as_json:
        runs = {name: samples_to_dict(one) for name, one in found.items()}
        differences = {name: None if one is None else asdict(one) for name, one in changes.items()}
        show_json({"runs": runs, "differences_ms": differences, "refused": refused})
    elif not quiet:
        refusals = (f"{name} cannot run: {why}" for name, why in refused.items())
        show(render_sampled_comparison(found, changes), *refusals)
