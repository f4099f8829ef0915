"""The how-to pages about recovery policies and stragglers do what they say."""

import re
from pathlib import Path

import pytest

from hops.build.run import simulate
from hops.build.setup import build
from hops.diagnose.what_if import parse_changes, what_if
from hops.fleet.recovery.base import RECOVERIES
from hops.fleet.study import prepare
from hops.fleet.time_use import TimeUse
from hops.spec.load import loads

PAGES = Path(__file__).parents[2] / "docs/how-to"


def blocks(page, language):
    text = (PAGES / page).read_text(encoding="utf-8")
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [content for of, content in fences if of == language]


SPEC = """
pipeline: {stage_times: {forward: 1 s, backward: 2 s}, microbatches: 4}
hardware: {nodes: [{count: 2, devices: [l4]}]}
"""


def test_the_policy_of_the_page_waits_and_takes_its_parameter(monkeypatch):
    code, conformance = blocks("write-a-recovery-policy.md", "python")
    names = {}
    exec(code + conformance, names)
    monkeypatch.setitem(RECOVERIES._members, "patient", names["Patient"])
    (section,) = blocks("write-a-recovery-policy.md", "yaml")
    models = "  enabled: true\n  models: [{kind: stop, on: node0/0, at: [50 s], repair: 100 s}]\n"
    for text, lost in ((section, 0), (section.replace("120", "99"), 50)):
        spec = loads(SPEC + text + models)
        (found,) = prepare(build(spec), spec.failure.recovery, days=0.05, seeds=1).trajectories()
        assert found.lost_iterations["device"] <= 1 + lost
        assert (found.spent_ns[TimeUse.RELOAD] + found.spent_ns[TimeUse.RESTART] > 0) is bool(lost)
    suite = names["TestPatient"]()
    for name in dir(suite):
        if name.startswith("test_"):
            getattr(suite, name)()


def test_the_straggler_of_the_page_is_found_and_its_names_fit_the_spec():
    from rich.console import Console

    from hops.diagnose.stragglers import find_stragglers
    from hops.report.diagnosis import render_stragglers

    (text,) = blocks("find-stragglers.md", "yaml")
    spec = loads(text)
    console = Console(width=300)
    with console.capture() as printed:
        console.print(render_stragglers("spec.yaml (simulated)", find_stragglers(simulate(spec).trace)))
    shown = blocks("find-stragglers.md", "")
    assert [line.rstrip() for line in printed.get().splitlines()] in [block.splitlines() for block in shown]
    slow = re.search(r"--slow (\S+) --down (\S+) --schedules (\S+)", (PAGES / "find-stragglers.md").read_text())
    assert slow is not None
    found, refused = what_if(spec, parse_changes([slow[1]], [], [slow[2]]), slow[3].split(","))
    assert (list(found), refused) == (slow[3].split(","), {})


@pytest.mark.parametrize("page", ["write-a-recovery-policy.md", "find-stragglers.md"])
def test_the_page_is_listed(page):
    assert f"how-to/{page}" in (PAGES.parent / "README.md").read_text(encoding="utf-8")
