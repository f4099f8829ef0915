"""The schedule `program` runs a program from a file."""

import pytest

from hops.errors import ProgramError, UsageError
from hops.schedules.base import SCHEDULERS
from hops.timing.stage_costs import StageCosts

TEXT = "microbatches 1, rank of stage 0 1 1 0\n0F0 3F0 3B0 0I0 0W0\n1F0 2F0 2B0 1B0\n"


def from_file(path):
    return SCHEDULERS.get("program")(file=str(path))


def test_it_runs_what_the_file_says_on_the_file_s_placement(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text(TEXT)
    scheduler = from_file(path)
    shape = scheduler.shape(2, 1)
    assert shape.rank_of_stage == (0, 1, 1, 0)
    assert f"{scheduler.build(StageCosts.uniform(shape))}\n" == TEXT


def test_other_numbers_than_the_file_s_are_refused(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text(TEXT)
    with pytest.raises(UsageError, match=r"mine\.txt is for 2 ranks and 1 microbatches, but got 4 and 8"):
        from_file(path).shape(4, 8)


def test_a_wrong_program_is_refused_when_the_schedule_is_made(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text(TEXT.replace("2B0 ", ""))
    with pytest.raises(ProgramError, match=r"mine\.txt: rank 1 is not complete: it lacks 2B0"):
        from_file(path)


def test_without_a_file_it_says_what_it_needs():
    with pytest.raises(UsageError, match="program: it needs a file, such as"):
        SCHEDULERS.get("program")().shape(2, 1)
