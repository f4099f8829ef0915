"""Terminal reports: one screen, 80 columns, whatever the run."""

from functools import cache
from io import StringIO

import pytest
from rich.console import Console

from hops.cost.base import StepCosts
from hops.cost.table import TableCosts
from hops.engine.settings import RunSettings
from hops.engine.simulate import run_program
from hops.hardware.network import Link, Network, Route
from hops.metrics.summarize import summarize
from hops.metrics.summary import RunFacts
from hops.model.memory import StageMemory
from hops.program.action import Action, Op
from hops.program.program import Program
from hops.program.shape import Shape
from hops.report.comparison import render_comparison
from hops.report.overview import render_summary
from hops.report.tables import bar, change, count, number, size
from hops.report.warnings import warnings

GIB = 2**30


@cache
def summary_of(
    ranks, *, slow=(), microbatches=4, memory=GIB, bandwidth=1e9, step=True, schedule="gpipe", device="H100"
):
    """GPipe on a line of ranks, each with its NIC; `slow` ranks take twice as long."""
    orders = tuple(tuple(Action(s, op, m) for op in (Op.F, Op.B) for m in range(microbatches)) for s in range(ranks))
    times = tuple(0.02 if s in slow else 0.01 for s in range(ranks))
    costs = TableCosts.of(
        forward_s=times,
        input_backward_s=times,
        weight_backward_s=times,
        bytes_per_message=1_000_000,
        step_costs=StepCosts(grad_reduce_s=(0.03,) * ranks, optimizer_s=(0.005,) * ranks, host_s=0.001)
        if step
        else StepCosts(),
    )
    links = tuple(Link(name=f"node{r} nic", bandwidth=bandwidth) for r in range(ranks))
    pairs = [(r, p) for r in range(ranks) for p in (r - 1, r + 1) if 0 <= p < ranks]
    network = Network(links=links, routes={(r, p): Route(links=(r,), latency_s=0.0001) for r, p in pairs})
    names = {"devices": (device,) * ranks, "hosts": tuple(f"node{r}" for r in range(ranks)), "schedule": schedule}
    trace = run_program(
        Program.of(Shape.loop(ranks, num_microbatches=microbatches), orders),
        costs,
        network,
        RunSettings(iterations=3, **names),
    )
    stage = StageMemory(weights_bytes=2 * memory, optimizer_bytes=6 * memory, activation_bytes=memory // 2)
    facts = RunFacts(
        warmup_iterations=1,
        samples_per_microbatch=4,
        tokens_per_microbatch=8192,
        flop_per_microbatch=ranks * 3e12,
        peak_flop_per_s=(1e15,) * ranks,
        stage_memory=(stage,) * ranks,
        memory_bytes=(80 * GIB,) * ranks,
    )
    return summarize(trace, facts)


def printed(renderable, width=80):
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(renderable)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_run_reads_like_this():
    assert printed(render_summary(summary_of(4, slow=(2,)))) == GOLDEN.splitlines()


@pytest.mark.parametrize("ranks", [1, 4, 16, 17, 64, 100])
@pytest.mark.parametrize("width", [80, 120])
def test_a_run_fits_one_screen_without_cut_numbers_at_any_number_of_ranks(ranks, width):
    lines = printed(render_summary(summary_of(ranks, slow=(0,))), width)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 45
    assert not any("…" in line for line in lines)


def test_many_ranks_are_folded_into_blocks_that_cover_all_of_them():
    lines = printed(render_summary(summary_of(64, slow=(9,))))
    blocks = [line.split()[0] for line in lines if line[:1].isdigit()]
    assert blocks[:16] == [f"{low}-{low + 3}" for low in range(0, 64, 4)]


def test_where_ranks_share_rows_those_that_a_mean_would_hide_are_named():
    summary = summary_of(64, slow=(9,))
    lines = printed(render_summary(summary))
    (busiest,) = [line for line in lines if line.startswith("9 busiest")]
    assert f"{100 * summary.ranks[9].utilization:.1f}" in busiest
    assert any(" idlest " in line for line in lines)
    assert len(lines) <= 60
    assert not any(" idlest " in line for line in printed(render_summary(summary_of(16))))


def test_a_long_device_name_is_neither_cut_nor_wrapped():
    name = "NVIDIA H100 SXM5 80GB HBM3 (rack 7)"
    lines = printed(render_summary(summary_of(2, device=name)))
    assert sum(name in line for line in lines) == 2


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_no_width_cuts_a_name_or_a_number(monkeypatch, width):
    """What is too wide moves below, beside the first column again: every word of the widest form is in every form."""
    monkeypatch.setenv("COLUMNS", str(width))
    summaries = {name: summary_of(8, schedule=name) for name in ("one_schedule_of_a_long_name", "gpipe")}
    wide, found = (printed_at(columns, render_comparison(summaries)) for columns in (300, width))
    assert "…" not in found
    assert set(wide.split()) - set(found.split()) <= {"─" * len(word) for word in wide.split() if word[0] == "─"}
    for line in found.splitlines():
        assert len(line.rstrip()) <= max(width, 60), line


def test_a_pipe_has_no_width(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    summaries = {"x" * 90: summary_of(2), "gpipe": summary_of(2)}
    assert len(printed_at(80, render_comparison(summaries)).splitlines()) == 6


def printed_at(width, renderable):
    console = Console(width=width, file=StringIO(), force_terminal=False)
    console.print(renderable, crop=False)
    return console.file.getvalue()


def test_what_is_not_known_is_not_shown():
    text = "\n".join(printed(render_summary(summary_of(2, step=False))))
    assert "busiest link" in text
    bare = summarize_bare()
    text = "\n".join(printed(render_summary(bare)))
    for word in ("MFU", "samples/s", "busiest link", "None", "nan"):
        assert word not in text


def summarize_bare():
    orders = ((Action(0, Op.F, 0), Action(0, Op.B, 0)),)
    trace = run_program(
        Program.of(Shape.loop(1, num_microbatches=1), orders), TableCosts.uniform(1), Network.uniform(1)
    )
    return summarize(trace, RunFacts())


def test_a_calm_run_has_no_warnings():
    assert warnings(summary_of(4)) == ()


def test_memory_above_capacity_and_nearly_full_are_told_apart():
    assert warnings(summary_of(2, memory=9 * GIB)) == (
        "rank 0 (H100) needs 90.0 GiB and has 80.0 GiB, as 1 other rank",
    )
    assert warnings(summary_of(1, memory=int(7.9 * GIB))) == ("rank 0 (H100) is nearly full: 79.0 GiB of 80.0 GiB",)


def test_uneven_work_names_the_rank_that_has_most():
    (sentence,) = warnings(summary_of(4, slow=(2,), microbatches=8))
    assert sentence.startswith("work is uneven: ranks idle ")
    assert "because rank 2 (H100) has the most to do" in sentence


def test_what_keeps_ranks_idle_after_the_pipeline_is_named_with_its_link():
    (sentence,) = warnings(summary_of(2, microbatches=2))
    assert sentence == (
        "ranks idle 24.2 % of the iteration after the pipeline, most of it for reductions: 30.00 ms an iteration, over "
        "link node0 nic"
    )
    assert warnings(summary_of(2, microbatches=2, step=False)) == ()


def test_messages_that_crowd_a_link_are_named():
    (sentence,) = warnings(summary_of(2, bandwidth=30e6))
    assert sentence.startswith("messages share link node0 nic for ")


def test_a_comparison_marks_the_best_and_is_relative_to_the_first():
    runs = {"even": summary_of(3), "slow": summary_of(3, slow=(1,)), "again": summary_of(3)}
    rows = {line.split()[0]: line.split() for line in printed(render_comparison(runs)) if line[:4].isalpha()}
    assert rows["even"][1].endswith("*")
    assert rows["again"][1] == rows["even"][1]
    assert not rows["slow"][1].endswith("*")
    assert rows["even"][-1] == "-"
    assert float(rows["slow"][-2]) == pytest.approx(
        100 * (runs["even"].iteration_time.mean_ms / runs["slow"].iteration_time.mean_ms - 1), abs=0.05
    )
    assert rows["again"][-2:] == ["+0.0", "%"]


@pytest.mark.parametrize("width", [80, 120])
def test_a_comparison_of_many_schedules_fits_without_cut_numbers(width):
    names = [
        "gpipe",
        "1f1b",
        "interleaved_1f1b",
        "zero_bubble",
        "zb_h1",
        "zb_h2",
        "zb_v",
        "v_half",
        "dualpipe_v",
        "hops_hetero_with_a_name",
    ]
    lines = printed(render_comparison({name: summary_of(3, schedule=name) for name in names}), width)
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0.00"), (0.01234, "0.01234"), (3.14159, "3.14"), (123.456, "123.5"), (98765.4, "98,765")]
)
def test_numbers_show_the_digits_that_matter(value, text):
    assert number(value) == text


def test_words_around_numbers():
    assert (size(80 * GIB), size(3 * 2**20)) == ("80.0 GiB", "3.0 MiB")
    assert (change(1.1, 1.0), change(0.95, 1.0)) == ("+10.0 %", "-5.0 %")
    assert (count(1, "rank"), count(2, "rank"), count(2, "box", "boxes")) == ("1 rank", "2 ranks", "2 boxes")


def test_a_bar_fills_by_eighths_and_never_leaves_its_width():
    assert [bar(fraction, 2) for fraction in (-1, 0, 1 / 16, 0.5, 1, 9)] == ["  ", "  ", "▏ ", "█ ", "██", "██"]


GOLDEN = """\
gpipe (simulated): 4 ranks, 4 stages, 4 microbatches

iteration     372.6 ms (p50 372.6, p99 372.6; 2 iterations, 1 left out)
throughput    10.74 microbatches/s, 42.94 samples/s, 87,944 tokens/s
latency       261.6 ms (p50 261.6, p99 306.6) per microbatch
MFU           3.2 %
exposed       38.25 ms per rank (messages 8.25, reductions 9.72, others 20.27)
busiest link  node2 nic: 2.1 % of its bandwidth, in use 23.5 %

bubble of     %  warm-up/cool-down  imbalance  messages  fault  after
─────────────────────────────────────────────────────────────────────
pipeline   55.4               26.2       26.7       2.5      -      -
iteration  58.4               23.7       24.2       2.2      -    8.3

phases  warm-up  steady  cool-down  reductions  optimizer  host  other
──────────────────────────────────────────────────────────────────────
ms        43.30   150.0      143.3       30.00       5.00  1.00      -

                                exposed   span      in
rank  device  use %                  ms     ms  flight      peak GiB
────────────────────────────────────────────────────────────────────
0     H100    ███▍        33.5    37.70  336.6       4  10.0 of 80.0
1     H100    ███▍        33.5    38.80  304.4       4  10.0 of 80.0
2     H100    ██████▋     65.8    35.50  272.2       4  10.0 of 80.0
3     H100    ███▍        33.5    41.00  150.0       4  10.0 of 80.0

! work is uneven: ranks idle 26.7 % of the pipeline's time because rank 2 (H100)
has the most to do; give it less, or a faster device
"""
