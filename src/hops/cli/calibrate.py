"""`hops calibrate`: measured runs become a hardware profile that a spec can name."""

from pathlib import Path
from typing import Annotated

import typer

from hops.cli.options import QuietOption


def calibrate(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUNS...", help="Run folders, or folders of them; plain 1F1B with traces.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The profile to write (YAML).")],
    warmup: Annotated[int, typer.Option(min=0, help="Leading iterations of traces to leave out.")] = 0,
    *,
    quiet: QuietOption = False,
) -> None:
    """Fit the cost model's parameters to measured runs: robust least squares, bounded by the vendors' peaks.

    The same runs give the same profile. Needs scipy: pip install 'hops-sim[calibrate]'.
    """
    from hops.calibrate import calibrate as fit
    from hops.calibrate import observe, run_folders
    from hops.cli.console import show
    from hops.cli.readers import megatron
    from hops.cost.profile_file import write_profile
    from hops.report.profile import render_profile

    folders = [folder for path in runs for folder in run_folders(path)]
    readers = megatron(warmup)
    profile = fit([observe(readers.inputs(each), readers.trace(each), warmup=warmup) for each in folders])
    write_profile(profile, output)
    if not quiet:
        show(render_profile(profile), f"wrote {output}; a spec uses it by hardware.profile, hops validate by --profile")
