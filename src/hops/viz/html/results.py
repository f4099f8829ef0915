"""Pages of results: plans with their timelines, what weeks of training spend their time on, predictions of runs."""

from collections.abc import Mapping

from hops.calibrate.validate import Validation
from hops.fleet.result import GoodputSummary
from hops.fleet.time_use import LOSSES, TimeUse
from hops.planner.result import Plan, PlanReport
from hops.units import format_time
from hops.viz.goodput import PARTS
from hops.viz.headline import percent
from hops.viz.html.answers import answers
from hops.viz.html.page import Report
from hops.viz.html.parts import Answer, Cell, Column, Show, Stack, StackPart, Table
from hops.viz.html.run import ShownRun
from hops.viz.html.run_parts import parts_of_all
from hops.viz.style import BUSY

_MOST_TIMELINES = 3


def plan_page(report: PlanReport) -> Report:
    """The plans in a table, and the timelines of the best under each other."""
    shown = report.plans[:_MOST_TIMELINES]
    runs = tuple(
        ShownRun.of(f"plan {number}", plan.run.trace, plan.run.facts) for number, plan in enumerate(shown, start=1)
    )
    more = parts_of_all(runs) if len(runs) > 1 else []
    return Report(
        title=f"Plans by {report.objective}",
        runs=runs,
        answers=tuple(answers(runs)[: 3 + len(runs) - 1]),
        parts=(plan_table(report), *more),
    )


def plan_table(report: PlanReport) -> Table:
    """A row for each plan, ranked ones first."""
    ranked = [(str(number), plan) for number, plan in enumerate(report.plans, start=1)]
    others = [("", plan) for plan in report.others]
    shows = [Show(run=place) if place < _MOST_TIMELINES else None for place in range(len(ranked))]
    return Table(
        title="Plans",
        columns=(
            Column(name="plan"),
            Column(name="schedule"),
            Column(name="placement"),
            Column(name="partition"),
            Column(name="microbatches"),
            Column(name="iteration", unit="ms", digits=2),
            Column(name="above the bound", unit="%", digits=2),
            Column(name="per million", unit="USD", digits=3),
            Column(name="fullest device", unit="%", digits=1, bar=True),
            Column(name="limit"),
        ),
        rows=tuple(_plan(label, plan) for label, plan in (*ranked, *others)),
        note=f"No plan can have an iteration below {format_time(report.bound_ms / 1e3)} at the best plan's batch. "
        "Rows without a number were simulated as well.",
        shows=(*shows, *(None for _ in others)),
    )


def _plan(label: str, plan: Plan) -> tuple[Cell, ...]:
    plain = plan.to_dict()
    partition = plain["partition"]
    return (
        label,
        plan.spec.pipeline.schedule.name,
        " ".join(plain["placement"]),
        " ".join(str(layers) for layers in partition) if isinstance(partition, list) else str(partition),
        plan.spec.pipeline.microbatches,
        plan.summary.iteration_time.mean_ms,
        100 * plan.gap,
        plan.cost_per_million,
        None if plan.fullness is None else 100 * plan.fullness,
        plan.limit,
    )


def goodput_page(summaries: Mapping[str, GoodputSummary]) -> Report:
    """Policies side by side: what the time goes into, and the figures of each."""
    best = max(summaries, key=lambda name: summaries[name].goodput)
    worst = min(summaries, key=lambda name: summaries[name].goodput)
    first = summaries[best]
    largest = max(first.lost_s_by_cause.items(), key=lambda item: item[1])
    asked = [
        Answer(
            question="How much of the time is productive?",
            answer=f"{percent(first.goodput)} with {best}, over {first.days:g} days, mean of {first.seeds} lives"
            + (f"; {percent(summaries[worst].goodput)} with {worst}." if best != worst else "."),
        ),
        Answer(
            question="Where does the rest go?",
            answer=f"With {best}, most of it to: {PARTS[TimeUse(largest[0])].label}, "
            f"{percent(largest[1] / first.wall_s)} of all time.",
        ),
    ]
    return Report(
        title="Goodput", answers=tuple(asked), parts=(_time_use(summaries), _policies(summaries), _lives(summaries))
    )


def _time_use(summaries: Mapping[str, GoodputSummary]) -> Stack:
    parts = (
        StackPart(key="busy", name="productive", colour=BUSY.fill),
        *(StackPart(key=use.value, name=PARTS[use].label, colour=PARTS[use].fill) for use in LOSSES),
    )
    return Stack(
        title="What the time goes into",
        unit="hours",
        parts=parts,
        names=tuple(summaries),
        values=tuple(
            (each.productive_s / 3600, *(each.lost_s_by_cause[use.value] / 3600 for use in LOSSES))
            for each in summaries.values()
        ),
        note="Mean over the lives. Productive: iterations that were kept, as fast as without any fault.",
    )


def _policies(summaries: Mapping[str, GoodputSummary]) -> Table:
    return Table(
        title="Policies",
        columns=(
            Column(name="policy"),
            Column(name="goodput", unit="%", digits=2, bar=True),
            Column(name="lowest life", unit="%", digits=2),
            Column(name="highest life", unit="%", digits=2),
            Column(name="interruptions", digits=1),
            Column(name="iterations lost", digits=1),
            Column(name="cost", unit="USD", digits=0),
        ),
        rows=tuple(
            (
                name,
                100 * each.goodput,
                100 * each.goodput_spread.lowest,
                100 * each.goodput_spread.highest,
                each.faults.interruptions,
                each.faults.lost_iterations,
                each.cost.total,
            )
            for name, each in summaries.items()
        ),
    )


def _lives(summaries: Mapping[str, GoodputSummary]) -> Table:
    """The same seed is the same life: what breaks when is drawn before any policy answers."""
    first = next(iter(summaries.values()))
    lives = zip(*(each.lives for each in summaries.values()), strict=True)
    return Table(
        title="Goodput of every life",
        columns=(Column(name="seed"), *(Column(name=name, unit="%", digits=2) for name in summaries)),
        rows=tuple((life[0].seed, *(100 * each.goodput for each in life)) for life in lives),
        note=f"{first.seeds} lives; a row is the same life, with the same faults, under every policy.",
    )


def validation_page(found: Validation) -> Report:
    """Every run predicted and measured, in a table that sorts; what each variant knows is said in its note."""
    return Report(title="Validation", parts=(_suites(found), *(_scores(found, name) for name in found.variants)))


def _suites(found: Validation) -> Table:
    names = ("throughput mean", "throughput worst", "F mean", "B mean", "latency mean")
    return Table(
        title="Errors",
        columns=(Column(name="variant"), *(Column(name=name, unit="%", digits=1) for name in names)),
        rows=tuple(
            (
                name,
                each.throughput_mape_pct,
                each.throughput_max_pct,
                each.forward_mape_pct,
                each.backward_mape_pct,
                each.latency_mape_pct,
            )
            for name in found.variants
            for each in (found.suite(name),)
        ),
        note=f"{len(found.runs)} runs, {found.how}.",
    )


def _scores(found: Validation, variant: str) -> Table:
    rows = []
    for run in found.runs:
        score = run.scores[variant]
        predicted, measured = 1e3 * score.predicted.mean_iteration_s, 1e3 * score.measured.mean_iteration_s
        rows.append((run.name, run.scenario, measured, predicted, 100 * (predicted / measured - 1)))
    return Table(
        title=f"Runs, {variant}",
        columns=(
            Column(name="run"),
            Column(name="scenario"),
            Column(name="measured", unit="ms", digits=1),
            Column(name="predicted", unit="ms", digits=1),
            Column(name="error", unit="%", digits=1),
        ),
        rows=tuple(rows),
    )
