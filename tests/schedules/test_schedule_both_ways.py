"""Programs of two copies of the model: their text, their check, their closed forms."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.errors import ProgramError, UsageError
from hops.program.lowering import check
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS
from hops.timing.longest_path import evaluate
from hops.timing.stage_costs import StageCosts

few = settings(deadline=None, max_examples=40)

# The facts' printed order: the stage of the model, whichever copy the rank has of it.
AS_PAPERS_WRITE = """microbatches 2, rank of stage 0 1 1 0, copies 2
0F0 1F1 1B1 0B0
0F1 1F0 1B0 0B1"""
AS_WE_PRINT = """microbatches 2, rank of stage 0 1 1 0, copies 2
0F0 3F1 3B1 0B0
2F1 1F0 1B0 2B1"""


def run(name, p, m, **times):
    scheduler = SCHEDULERS.get(name)()
    profile = StageCosts.uniform(scheduler.shape(p, m), **times)
    program = scheduler.build(profile)
    check(program)
    return evaluate(program, profile)


def test_a_program_of_two_copies_reads_as_papers_write_it_and_prints_every_stage_by_its_own_number():
    program = Program.parse(AS_PAPERS_WRITE)
    check(program)
    assert str(program) == AS_WE_PRINT
    assert Program.parse(AS_WE_PRINT) == program
    paired = AS_WE_PRINT.replace("0F0 3F1 3B1 0B0", "0F0+3B1")
    assert Program.parse(paired.replace("3B1", "1B1")) == Program.parse(paired)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("copies 3", "program:1: 4 stages are not 3 copies of a model, each with as many"),
        ("copies 0", "program:1: 4 stages are not 0 copies of a model, each with as many"),
        ("copy 2", "program:1: got 'microbatches 2, rank of stage 0 1 1 0, c', expected a first line such as"),
    ],
)
def test_a_head_that_makes_no_copies_is_refused(head, message):
    with pytest.raises(ProgramError) as caught:
        Program.parse(AS_WE_PRINT.replace("copies 2", head))
    assert str(caught.value).startswith(message)


FAULTY = {
    "0F0 3F1 3B1 0B0": {
        "0F0 3F1 3B1": "rank 0 is not complete: it lacks 0B0 (or 0I0 and 0W0)",
        "0F0 3F1 3B1 0B0 3F0": "rank 0, position 4 (3F0): microbatch 0 runs through stages 0 to 1, another copy",
        "0B0 3F1 3B1 0F0": "rank 0, position 0 (0B0): it comes before 0F0",
        "0F0 3F1 3B1 0I0": "rank 0 is not complete: it lacks 0W0, which 0I0 needs",
    }
}


@pytest.mark.parametrize("row", FAULTY["0F0 3F1 3B1 0B0"])
def test_faults_in_a_program_of_two_copies_are_named(row):
    with pytest.raises(ProgramError) as caught:
        check(Program.parse(AS_WE_PRINT.replace("0F0 3F1 3B1 0B0", row)))
    assert str(caught.value).splitlines()[0] == FAULTY["0F0 3F1 3B1 0B0"][row]


def test_a_v_of_the_same_ranks_is_not_two_copies():
    v, both = Shape.v(2, num_microbatches=2), Shape.both_ways(2, num_microbatches=2)
    assert v.rank_of_stage == both.rank_of_stage
    assert v != both
    assert (v.after(1), both.after(1), both.before(2), both.after(2), both.before(0)) == (2, None, None, 3, None)
    with pytest.raises(ProgramError):
        check(Program.parse(AS_WE_PRINT.replace(", copies 2", "")))


REFUSED = {
    "dualpipe: ranks must be an even number, half for each direction, but got 3": ("dualpipe", 3, 8),
    "dualpipe: microbatches must be an even number, half for each direction, but got 9": ("dualpipe", 4, 9),
    "dualpipe: microbatches must be at least 8, twice the ranks, but got 6": ("dualpipe", 4, 6),
    "chimera: ranks must be an even number, half for each direction, but got 5": ("chimera", 5, 6),
    "chimera: microbatches must be an even number, half for each direction, but got 5": ("chimera", 4, 5),
}


@pytest.mark.parametrize("message", REFUSED)
def test_odd_numbers_are_refused(message):
    name, p, m = REFUSED[message]
    with pytest.raises(UsageError) as caught:
        SCHEDULERS.get(name)().shape(p, m)
    assert str(caught.value) == message


@few
@given(half=st.integers(1, 5), extra=st.integers(0, 8), unit=st.integers(1, 9))
def test_dualpipe_bubble_is_half_the_ranks_minus_1_times_pair_plus_b_minus_3w(half, extra, unit):
    p, m = 2 * half, 4 * half + 2 * extra
    found = run("dualpipe", p, m, f=unit, i=unit, w=unit)
    assert found.makespan_ns / 1e9 == unit * (3 * m + (half - 1) * (3 + 2 - 3))
    assert found.peak_in_flight == (p + 1,) * p


@pytest.mark.parametrize(("p", "m", "makespan"), [(4, 8, 26), (4, 16, 50), (8, 16, 54), (8, 64, 198)])
def test_golden_makespans_of_dualpipe(p, m, makespan):
    assert run("dualpipe", p, m).makespan_ns / 1e9 == makespan


@few
@given(half=st.integers(1, 6), units=st.integers(1, 5))
def test_chimera_takes_2m_plus_p_minus_2_slots_where_f_and_b_are_equal(half, units):
    p, m = 2 * half, 2 * half * units
    assert run("chimera", p, m, f=2, i=1, w=1).makespan_ns / 2e9 == 2 * m + p - 2


@pytest.mark.parametrize(
    ("p", "m", "makespan"), [(4, 4, 16), (4, 8, 30), (4, 12, 44), (4, 16, 58), (8, 8, 36), (8, 16, 66)]
)
def test_golden_makespans_of_chimera(p, m, makespan):
    assert run("chimera", p, m).makespan_ns / 1e9 == makespan


@pytest.mark.parametrize(("p", "peaks"), [(4, (3, 4, 4, 3)), (8, (5, 6, 7, 8, 8, 7, 6, 5))])
def test_chimera_holds_more_in_the_middle(p, peaks):
    for m in (p, 3 * p):
        assert run("chimera", p, m).peak_in_flight == peaks
