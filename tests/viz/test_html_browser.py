"""Reports in a real browser: no errors, and what is pointed at and clicked says what the trace says."""

import numpy as np
import pytest
from browser import Page, needs_browser, start

import hops
from hops.program.action import Action, Op
from hops.trace.trace import Stream
from hops.units import format_bytes
from hops.viz.html.page import report_of_runs, write_report
from hops.viz.html.run import ShownRun

SPEC = {
    "pipeline": {"model": "gpt2-medium", "microbatches": 8, "schedule": "1f1b"},
    "hardware": {"nodes": [{"devices": ["l4", "l4"]}, {"devices": ["a100", "a100"]}]},
    "simulation": {"iterations": 3, "warmup_iterations": 1},
}


@pytest.fixture(scope="module")
def browser():
    needs_browser()
    found = start()
    yield found
    found.quit()


@pytest.fixture(scope="module")
def runs():
    spec = hops.from_dict(SPEC)
    found = {name: hops.simulate(spec.with_({"pipeline.schedule": name})) for name in ("1f1b", "zb_v")}
    return [ShownRun.of(name, run.trace, run.facts) for name, run in found.items()]


@pytest.fixture(scope="module")
def path(runs, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(report_of_runs("spec.yaml", runs), path)
    return path


@pytest.fixture
def page(browser, path):
    page = Page(browser, path)
    yield page
    assert page.errors() == []


def row_of(shown, text):
    """Index of an action's row in the measured trace's first iteration."""
    action = Action.parse(text)
    trace = shown.measured.trace
    (found,) = np.flatnonzero(
        (trace.stream == Stream.COMPUTE)
        & (trace.stage == action.stage)
        & (trace.op == action.op)
        & (trace.microbatch == action.microbatch)
        & (trace.iteration == shown.measured.iterations[0])
    )
    return int(found)


def times(shown, row):
    """Start and end as the page counts them."""
    trace, origin = shown.measured.trace, int(shown.measured.start_ns[0])
    return int(trace.start_ns[row]) - origin, int(trace.end_ns[row]) - origin


def words(page, ns):
    return page.run("return timeText(arguments[0])", ns)


@pytest.mark.parametrize("name", ["0F0", "2F3", "1B5", "3B7"])
def test_hovering_an_action_says_what_and_when(page, runs, name):
    row = row_of(runs[0], name)
    begin, end = times(runs[0], row)
    tip = page.hover(0, int(runs[0].measured.trace.rank[row]), (begin + end) / 2)
    assert tip.startswith(f"{name}: ")
    assert f"{words(page, begin)} to {words(page, end)}, takes {words(page, end - begin)}" in tip


def test_hovering_idle_time_says_for_what_and_whom_the_rank_waits(page, runs):
    shown = runs[0]
    gaps, origin = shown.gaps, int(shown.measured.start_ns[0])
    gap = int(np.flatnonzero((gaps.rank == 3) & (gaps.row >= 0))[0])
    tip = page.hover(0, 3, (gaps.start_ns[gap] + gaps.end_ns[gap]) / 2 - origin)
    assert f"rank 3 idle for {words(page, int(gaps.end_ns[gap] - gaps.start_ns[gap]))}, before 3F0" in tip
    assert "3F0 takes the output of 2F0 from rank 2" in tip
    assert f"For {words(page, int(gaps.held_ns[gap]))} of it, rank {gaps.holder[gap]} computes" in tip


def test_hovering_memory_says_what_the_rank_holds(page, runs):
    begin, end = times(runs[0], row_of(runs[0], "0F0"))
    held = runs[0].facts.stage_memory[0]
    memory = runs[0].summary.ranks[0].memory
    expected = memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes + held.activation_bytes
    expected += held.workspace_bytes
    tip = page.hover(0, 0, (begin + end) / 2, "memory")
    assert f"Rank 0 holds {page.run('return bytesText(arguments[0])', expected)}" in tip
    assert format_bytes(expected).split()[1] in tip


def test_clicking_an_action_keeps_it_and_its_microbatch_can_be_followed(page, runs):
    row = row_of(runs[0], "1F5")
    begin, end = times(runs[0], row)
    page.hover(0, 1, (begin + end) / 2, click=True)
    assert page.details().startswith("1F5: F forward, of microbatch 5 on stage 1, rank 1")
    page.press("f")
    table = page.run(
        "const rows = document.querySelectorAll('#details tbody tr');"
        "return [...rows].map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    assert [cells[0] for cells in table] == [f"{s}F5" for s in range(4)] + [f"{s}B5" for s in reversed(range(4))]
    made = times(runs[0], row_of(runs[0], "0F5"))[1]
    assert table[1][4] == words(page, begin - made)  # what it waited
    page.press("g")


def test_the_question_why_a_microbatch_waited_is_asked_in_one_click(page):
    page.run("document.querySelector('.card .ask button').click()")
    assert page.details().startswith("Microbatch 5 of iteration 1: waited")


def test_a_cause_shows_its_gaps_and_they_sum_to_the_bubble(page, runs):
    shown = runs[0]
    for cause in ("messages", "warm_up_cool_down", "imbalance"):
        page.run("follow({run: 0, cause: arguments[0], rank: null})", cause)
        total = page.run(f"const g = report.runs[0].gaps; return g.{cause}.reduce((a, b) => a + b, 0)")
        per_iteration = sum(getattr(rank.idle_ms, cause) for rank in shown.summary.ranks)
        assert total == pytest.approx(1e6 * per_iteration * shown.summary.iterations, rel=1e-6, abs=200)
        assert words(page, total) in page.details()
    rows = page.run("return document.querySelectorAll('#details tbody tr').length")
    assert 0 < rows <= 12


def test_the_critical_path_is_as_long_as_the_iterations(page, runs):
    page.press("c")
    assert page.details().startswith("The critical path")
    total = page.run("return report.runs[0].path.length.reduce((a, b) => a + b, 0)")
    assert total == int((runs[0].measured.end_ns - runs[0].measured.start_ns).sum())


def test_keys_move_and_zoom(page):
    before = page.run("return [view.x0, view.x1]")
    page.press("d")
    after = page.run("return [view.x0, view.x1]")
    assert after[0] - before[0] == pytest.approx(after[1] - before[1])
    assert after[0] > before[0]
    page.press("w")
    zoomed = page.run("return view.x1 - view.x0")
    assert zoomed == pytest.approx(0.6 * (after[1] - after[0]))
    page.press("0")
    assert page.run("return view.x0 <= 0 && view.x1 >= view.full")


def test_dragging_moves_all_timelines_alike(page):
    from selenium.webdriver.common.action_chains import ActionChains

    over = page.run("timelines[0].host.scrollIntoView({behavior: 'instant'}); return timelines[0].plot.over")
    before = page.run("return view.x0")
    ActionChains(page.browser).move_to_element(over).click_and_hold().move_by_offset(-100, 0).release().perform()
    page.settle()
    width = page.run("return timelines[0].plot.over.getBoundingClientRect().width")
    moved = page.run("return view.x0") - before
    assert moved == pytest.approx(100 / width * page.run("return view.x1 - view.x0"), rel=0.02)
    assert page.run("return timelines[1].plot.scales.x.min") == page.run("return view.x0")


def test_tables_sort_by_a_click_on_their_heading(page, runs):
    script = """const tables = [...document.querySelectorAll('section.table')];
        const table = tables.find((each) => each.querySelector('h3').textContent === 'Ranks');
        const head = [...table.querySelectorAll('th')].find((each) => each.textContent.startsWith('peak memory'));
        head.click(); head.click();
        return [...table.querySelectorAll('tbody tr')].map((row) => Number(row.cells[0].innerText));"""
    peaks = {rank.rank: rank.memory.peak_bytes for rank in runs[0].summary.ranks}
    assert page.run(script) == sorted(peaks, key=lambda rank: -peaks[rank])


def test_the_theme_changes_page_and_drawing(page):
    read = "return getComputedStyle(document.body).backgroundColor"
    light = page.run(read)
    page.press("t")
    dark = page.run(read)
    assert light != dark
    pixel = "const c = timelines[0].plot.ctx; return [...c.getImageData(0, 0, 1, 1).data]"
    assert page.run(pixel)  # drawn without an error
    page.press("t")


@pytest.mark.parametrize("size", [(390, 800), (900, 700), (1600, 1000)])
def test_no_part_of_the_page_is_wider_than_the_window(browser, path, size):
    browser.set_window_size(*size)
    try:
        page = Page(browser, path)
        page.settle()
        assert page.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        assert page.errors() == []
    finally:
        browser.set_window_size(1400, 1000)


def test_what_zb_v_changes_is_said_in_figures(page, runs):
    text = page.run("return document.querySelector('.cards').innerText")
    assert "What does zb_v change?" in text
    for shown in runs:
        assert f"{100 * shown.summary.bubble.pipeline.fraction:.1f} %" in text


def test_ops_on_the_page_are_those_of_the_trace(page):
    assert page.run("return report.ops.map((op) => op.name)") == [op.name for op in Op]


@pytest.mark.full
def test_a_large_report_opens_quickly_is_small_and_pans_at_30_frames_a_second(browser, tmp_path):
    """131,072 actions. Seconds are those of the page's thread: a machine with other work to do takes longer."""
    spec = hops.from_dict(
        {
            "pipeline": {
                "stage_times": {"forward": "10 ms", "backward": "20 ms", "message": "8 MiB"},
                "microbatches": 1024,
                "jitter": {"distribution": "lognormal", "mean": 1.0, "std": 0.03},
            },
            "hardware": {"nodes": [{"devices": ["h100"] * 8}] * 8, "interconnect": "infiniband-ndr"},
            "simulation": {"iterations": 1, "warmup_iterations": 0},
        }
    )
    run = hops.simulate(spec)
    assert (run.trace.of(Stream.COMPUTE).op <= Op.W).sum() == 131_072
    path = tmp_path / "large.html"
    write_report(report_of_runs("large", [ShownRun.of("1f1b", run.trace, run.facts)]), path)
    assert path.stat().st_size <= 15e6
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    page = Page(browser, path)

    def busy_s():
        metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return next(each["value"] for each in metrics if each["name"] == "TaskDuration")

    assert 0.05 < busy_s() <= 3  # all that opening took
    page.run("fit()")
    page.settle()
    before = busy_s()
    frames = browser.execute_async_script(
        """const done = arguments[0]; let n = 0;
        (function frame() { if (n >= 30) { done(n); return; }
          n++; setView(view.x0 + view.full * 0.001, view.x1 + view.full * 0.001); requestAnimationFrame(frame); })();"""
    )
    assert (busy_s() - before) / frames <= 1 / 30
    assert page.errors() == []
