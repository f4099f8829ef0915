"""The figures of docs/how-to/live-with-a-slow-device.md are what its commands print."""

import re
import shlex
from pathlib import Path

import pytest

import hops

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/how-to/live-with-a-slow-device.md").read_text(encoding="utf-8")
SCHEDULES = ("1f1b", "zero_bubble", "hops_hetero")
RATES = {  # PFLOP/s of the data sheet over what each device is slower by
    slower: [
        f"hardware.nodes[0].devices[1].{key}={value}" for key, value in (("peak", peak), ("memory_bandwidth", speed))
    ]
    for slower, peak, speed in re.findall(r"^\| (\d+ %) \|.*?([\d.]+ TFLOP/s).*?([\d.]+ TB/s)", PAGE, re.MULTILINE)
} | {"10 %": [], "any": []}
CHANGES = {
    what: shlex.split(options)[1::2]
    for what, options in re.findall(r"^\| ([a-z ]+) \| `(--set .*)` \|$", PAGE, re.MULTILINE)
} | {"as they are": []}
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if re.match(r"\| (\d+ %|any) \| [a-z ]+ \| [\d,]+ \|", line)
]


def iteration_ms(schedule, slower, change):
    overrides = [f"pipeline.schedule={schedule}", "simulation.iterations=1", *RATES[slower], *CHANGES[change]]
    spec = hops.load(ROOT / "examples/straggler.yaml", overrides)
    return hops.summarize(hops.simulate(spec)).iteration_time.mean_ms


def test_the_page_has_a_row_for_5_10_and_15_percent_with_and_without_a_remedy():
    assert [row[0] for row in ROWS] == ["0 %", "5 %", "5 %", "5 %", "10 %", "10 %", "15 %", "15 %", "50 %", "any"]
    assert {row[1] for row in ROWS} == set(CHANGES)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_a_row_is_what_its_command_prints(row):
    slower, change, *times, _ = row
    assert [f"{iteration_ms(schedule, slower, change):,.0f}" for schedule in SCHEDULES] == times


def test_the_last_column_is_hops_hetero_against_its_healthy_run():
    hetero = [float(row[4].replace(",", "")) for row in ROWS]
    assert [row[5] for row in ROWS[1:]] == [f"{100 * (time / hetero[0] - 1):+.1f} %" for time in hetero[1:]]
