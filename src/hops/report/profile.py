"""A fitted profile in a terminal: values with intervals, and what the data leave open."""

from rich.console import Group, RenderableType

from hops.cost import HardwareProfile
from hops.report.tables import plain_table
from hops.report.wording import number


def render_profile(profile: HardwareProfile) -> RenderableType:
    """What `hops calibrate` prints."""
    scope = profile.scope
    table = plain_table("parameter", "value", "from", "to")
    notes = []
    for part, report in profile.report.items():
        for name, (value, low, high) in report["value_and_90_percent_interval"].items():
            table.add_row(name, *(_scaled(name, each) for each in (value, low, high)))
        mean, largest = report["mean_abs_residual"], report["largest_residual"]
        notes.append(
            f"{part}: {report['observations']} observations, residuals {mean:.3f} on average, {largest:.3f} at most"
        )
        notes += [
            f"  cannot be told apart: {one} and {other} ({r:+.2f})" for one, other, r in report["correlated_beyond_0.9"]
        ]
        for title, key in (("the data say little of", "as_uncertain_as_before"), ("at a bound", "at_their_bounds")):
            if report[key]:
                notes.append(f"  {title}: {', '.join(report[key])}")
    stalls = [
        f"{' - '.join(each.between)} {each.stalls}/{each.reductions}" for each in profile.reduce.paths if each.stalls
    ]
    notes.append(f"stalled reductions: {', '.join(stalls) or 'none'}")
    return Group(f"{scope.runs} runs of {scope.scenarios} scenarios; intervals of 90 %", "", table, "", *notes)


def _scaled(name: str, value: float) -> str:
    """With a unit that a reader wants: us for times, GB/s for rates, MB for sizes."""
    quantity = name.split(".", maxsplit=1)[0]
    if quantity.endswith("_bytes_per_s"):
        return f"{number(value / 1e9)} GB/s"
    if quantity.endswith("_bytes"):
        return f"{number(value / 1e6)} MB"
    if quantity.endswith("_s"):
        return f"{number(value * 1e6)} us"
    return number(value)
