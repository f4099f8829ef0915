"""`hops explain` and `hops fit`: where the time of an iteration goes, what would help, and whether it fits."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hops.cli.console import JsonOption, QuietOption, SetOption, SpecArgument
from hops.cli.plan import stages

if TYPE_CHECKING:
    from hops.diagnose.advice import Advice


def explain(
    run: Annotated[
        Path, typer.Argument(metavar="SPEC|TRACE", help="A spec, or a measured run (see `hops trace show`).")
    ],
    overrides: SetOption = None,
    *,
    advice: Annotated[bool, typer.Option(help="Also simulate single changes, and rank them.")] = True,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say where the time of an iteration goes: a waterfall, the critical path, and for a spec what would help.

    Advice is never given without having been simulated. For a measured run there is none: make a spec of it first.
    """
    from hops.build.run import simulate
    from hops.cli.console import show, show_json
    from hops.cli.recorded import opened
    from hops.diagnose.advice import advise
    from hops.diagnose.waterfall import explain as explain_run
    from hops.diagnose.waterfall import shares_of
    from hops.errors import UsageError
    from hops.importers.megatron.run_folder import is_launch
    from hops.metrics.iterations import Iterations
    from hops.report.explained import explained_title, render_advice, render_explained
    from hops.spec.load import load

    simulated = None
    if str(run) == "-" or (run.suffix in {".yaml", ".yml"} and not is_launch(run)):
        simulated = simulate(load(run, overrides or ()))
        name, iterations = f"{run.name} (simulated)", Iterations.of(simulated.trace, simulated.facts)
        found = explain_run(iterations, shares_of(simulated.setup.costs))
    else:
        if overrides:
            raise UsageError(f"--set: {run} is a measured run and no spec; leave it out")
        recorded = opened(run)
        name, iterations = recorded.title, Iterations.of(recorded.trace, recorded.facts)
        found = explain_run(iterations, {})
    advised = None
    if advice and simulated is not None:
        with stages(visible=not quiet and not as_json) as tell:
            advised = advise(simulated, on_trial=tell and partial(tell, "trying changes"))
    if as_json:
        show_json(
            {
                "iteration_ms": found.iteration_ms,
                "bars": [each._asdict() for each in found.bars],
                "path": [each._asdict() for each in found.path],
                "advice": None
                if advised is None
                else {
                    "helps": [_advice(each) for each in advised.helps],
                    "no_help": [_advice(each) for each in advised.no_help],
                    "refused": [{"change": change.what, "reason": why} for change, why in advised.refused],
                },
            }
        )
    elif not quiet:
        show(render_explained(explained_title(name, iterations.num_iterations, found.iteration_ms), found))
        if advised is not None:
            show("", render_advice(str(run), advised))


def _advice(each: "Advice") -> dict[str, object]:
    return {
        "change": each.change.what,
        "settings": dict(each.change.settings),
        "gain_pct": 100 * each.gain,
        "iteration_ms": each.iteration_ms,
        "peak_bytes": each.peak_bytes,
        "more_bytes": each.more_bytes,
    }


def fit(
    spec: SpecArgument,
    overrides: SetOption = None,
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say whether a spec fits into memory: every rank at its fullest moment, and the smallest change that makes it fit.

    Exit code 1 if it does not fit.
    """
    from hops.cli.console import show, show_json
    from hops.diagnose.fit import fit as find_fit
    from hops.report.explained import render_fit
    from hops.spec.load import load

    loaded = load(spec, overrides or ())
    with stages(visible=not quiet and not as_json) as tell:
        found = find_fit(loaded, on_trial=tell and partial(tell, "trying changes"))
    if as_json:
        show_json(
            {
                "fits": found.fits,
                "ranks": [{**each._asdict(), "needed_bytes": each.needed_bytes} for each in found.ranks],
                "remedies": [
                    {
                        "change": each.change.what,
                        "settings": dict(each.change.settings),
                        "per_s": each.samples_per_s,
                        "peak_bytes": each.peak_bytes,
                    }
                    for each in found.remedies
                ],
                "no_remedy": [{"change": change.what, "reason": why} for change, why in found.no_remedy],
            }
        )
    elif not quiet:
        show(render_fit(found))
    if not found.fits:
        raise typer.Exit(1)
