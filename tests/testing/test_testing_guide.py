"""The guide to writing a schedule does what it says: its code runs and prints what it shows."""

import re
from pathlib import Path

from hops.program.lowering import check
from hops.program.program import Program

GUIDE = (Path(__file__).parents[2] / "docs" / "how-to" / "write-a-schedule.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", GUIDE, flags=re.DOTALL)
CODE = "\n".join(text for language, text in BLOCKS if language == "python")
TEXTS = [text for language, text in BLOCKS if language == "text"]


def stripped(text):
    return [line.rstrip() for line in text.strip().splitlines()]


def test_the_program_file_passes_the_check():
    check(Program.parse(TEXTS[0]))


def test_the_code_prints_the_grid_that_is_shown(capsys):
    exec(CODE, {})
    assert stripped(capsys.readouterr().out) == stripped(TEXTS[1])


def test_the_policy_passes_the_suite():
    names = {}
    exec(CODE, names)
    suite = names["TestWhateverIsReady"]()
    for size in ((1, 1), (2, 3), (4, 8)):
        suite.test_runs_every_action_once_without_a_stall(*size)
        suite.test_keeps_to_what_it_promises_in_flight(*size)
