"""A program is data with a text form that reads back, and a checker that points at the fault."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.errors import ProgramError
from hops.program.action import Action, Op, Pair
from hops.program.lowering import check
from hops.program.program import Program
from hops.program.reading import load_program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS
from hops.timing.stage_costs import StageCosts

ONE_F_ONE_B = """\
microbatches 3, rank of stage 0 1
0F0 0F1 0B0 0F2 0B1 0B2
1F0 1B0 1F1 1B1 1F2 1B2"""


def build(name, num_ranks, num_microbatches, **parameters):
    scheduler = SCHEDULERS.get(name)(**parameters)
    return scheduler.build(StageCosts.uniform(scheduler.shape(num_ranks, num_microbatches)))


def fault(text):
    with pytest.raises(ProgramError) as caught:
        check(Program.parse(text))
    return str(caught.value)


actions = st.builds(Action, st.integers(0, 3), st.sampled_from([Op.F, Op.B, Op.I, Op.W]), st.integers(0, 9))
rows = st.lists(actions, min_size=1, max_size=8).map(tuple)


def test_text_is_that_of_pytorch_with_the_shape_in_front():
    assert str(build("1f1b", 2, 3)) == ONE_F_ONE_B


@settings(deadline=None, max_examples=50)
@given(rank_rows=st.lists(rows, min_size=4, max_size=4), data=st.data())
def test_any_program_reads_back_from_its_text(rank_rows, data):
    entries = [paired(row, data.draw(st.integers(0, 3))) for row in rank_rows]
    program = Program.of(Shape.loop(4, num_microbatches=10), entries)
    assert Program.parse(str(program)) == program
    assert [list(program.rank(rank)) for rank in range(4)] == entries


def paired(row, number):
    """The row with its first actions joined two by two, into at most so many pairs."""
    number = min(number, len(row) // 2)
    return [*(Pair(*row[2 * at : 2 * at + 2]) for at in range(number)), *row[2 * number :]]


def test_blank_lines_and_comments_are_left_out():
    lines = ONE_F_ONE_B.splitlines()
    text = "\n".join(["# mine", "", lines[0] + "  # two ranks", lines[1], "   ", lines[2], ""])
    assert Program.parse(text) == Program.parse(ONE_F_ONE_B)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mine.txt: it is empty, expected a first line such as 'microbatches 8, rank of stage 0 1 2 3'"),
        ("\n0F0 0B0", "mine.txt:2: got '0F0 0B0', expected a first line such as"),
        ("microbatches 1, rank of stage 0 999999999", "mine.txt:1: rank 1 has no stage, expected ranks 0 to 999999999"),
        (f"microbatches {'9' * 5000}, rank of stage 0", "mine.txt:1: got 'microbatches 99999"),
        (f"microbatches 1, rank of stage 0\n0F0 0B{'9' * 5000}", "mine.txt:2:2: got 0B999999999999999999..., expected"),
        ("microbatches 1, rank of stage 0 2", "mine.txt:1: rank 1 has no stage, expected ranks 0 to 2 all used"),
        ("microbatches 1, rank of stage 0 1\n0F0 0B0", "mine.txt: got 1 lines of actions, expected 2"),
        (
            "microbatches 1, rank of stage 0\n0F0 0X0",
            "mine.txt:2:2: not an action: got '0X0', expected stage, op (F, B, I or W)",
        ),
        ("microbatches 1, rank of stage 0\n0F0+0B0+0W0", "mine.txt:2:1: got '0F0+0B0+0W0', expected at most two"),
    ],
)
def test_unreadable_text_is_refused_with_file_line_and_word(text, message):
    with pytest.raises(ProgramError) as caught:
        Program.parse(text, source="mine.txt")
    assert str(caught.value).startswith(message)


def test_a_file_is_read_and_checked(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text(ONE_F_ONE_B)
    assert load_program(path) == Program.parse(ONE_F_ONE_B)
    path.write_text(ONE_F_ONE_B.replace("1F2 ", ""))
    with pytest.raises(ProgramError, match=r"mine.txt: rank 1 is not complete: it lacks 1F2"):
        load_program(path)


def test_a_file_that_is_no_text_or_not_there_is_refused(tmp_path):
    path = tmp_path / "mine.txt"
    with pytest.raises(ProgramError, match=r"mine\.txt: cannot be read as a program: .*No such file"):
        Program.load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProgramError, match=r"mine\.txt: cannot be read as a program"):
        Program.load(path)


def test_fused_and_split_backwards_mix_per_stage_and_microbatch():
    check(Program.parse(ONE_F_ONE_B.replace("0B1 0B2", "0I1 0B2 0W1").replace("1B0", "1I0 1W0")))


CHANGES = {
    "missing forward": ("1F2 ", "", "rank 1 is not complete: it lacks 1F2"),
    "missing backward": (" 0B2", "", "rank 0 is not complete: it lacks 0B2 (or 0I2 and 0W2)"),
    "missing weight": ("1B2", "1I2", "rank 1 is not complete: it lacks 1W2, which 1I2 needs"),
    "weight alone": ("1B2", "1W2", "rank 1 is not complete: it lacks 1B2 (or 1I2 and 1W2)"),
    "twice": ("0F1", "0F0", "rank 0, position 1 (0F0): it is there twice"),
    "both": ("1B2", "1B2 1I2", "rank 1, position 5 (1B2): 1B2 and 1I2 are both there, expected one of them"),
    "both with weight": (
        "1B2",
        "1B2 1I2 1W2",
        "rank 1, position 5 (1B2): 1B2 and 1I2 are both there, expected one of them",
    ),
    "weight beside": ("1B2", "1B2 1W2", "rank 1, position 6 (1W2): 1W2 is there beside 1B2, which includes it"),
    "backward first": ("1F1 1B1", "1B1 1F1", "rank 1, position 2 (1B1): it comes before 1F1"),
    "weight first": ("1B2", "1W2 1I2", "rank 1, position 5 (1W2): it comes before 1I2"),
    "other rank": ("0F1", "1F1", "rank 0, position 1 (1F1): stage 1 is on rank 1"),
    "no such stage": ("0F1", "2F1", "rank 0, position 1 (2F1): there is no stage 2, expected 0 to 1"),
    "no such microbatch": ("0F1", "0F3", "rank 0, position 1 (0F3): there is no microbatch 3, expected 0 to 2"),
    "pair of two forwards": ("0F0 0F1", "0F0+0F1", "rank 0, position 0: a pair joins an F with a B or I of another"),
    "pair of one microbatch": ("1F1 1B1", "1F1+1B1", "rank 1, position 2: a pair joins an F with a B or I of another"),
}


@pytest.mark.parametrize(("old", "new", "message"), CHANGES.values(), ids=CHANGES)
def test_each_fault_is_named_with_rank_and_position(old, new, message):
    assert fault(ONE_F_ONE_B.replace(old, new)).startswith(message)


def test_the_grid_marks_the_fault():
    assert fault(ONE_F_ONE_B.replace("1F1 1B1", "1B1 1F1")) == (
        "rank 1, position 2 (1B1): it comes before 1F1\n"
        "rank 0 |  0F0   0F1   0B0   0F2   0B1   0B2\n"
        "rank 1 |  1F0   1B0  >1B1<  1F1   1F2   1B2"
    )


def test_the_grid_marks_what_is_missing_at_the_end():
    assert fault(ONE_F_ONE_B.replace(" 1B2", "")) == (
        "rank 1 is not complete: it lacks 1B2 (or 1I2 and 1W2)\n"
        "rank 0 | 0F0 0F1 0B0 0F2 0B1 0B2\n"
        "rank 1 | 1F0 1B0 1F1 1B1 1F2  ><"
    )


def test_the_grid_around_a_fault_in_a_large_program_fits_a_screen():
    text = str(build("1f1b", 64, 512)).replace("40F100 40B77", "40B77 40B77")
    lines = fault(text).splitlines()
    assert lines[0] == "rank 40, position 178 (40B77): it is there twice"
    assert [line.split(" |")[0] for line in lines[1:]] == [f"rank {rank}" for rank in range(37, 44)]
    assert max(map(len, lines)) < 140


def test_a_deadlock_names_what_each_rank_waits_for():
    text = "microbatches 2, rank of stage 0 1\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1"
    assert fault(text) == (
        "the program deadlocks:\n"
        "  rank 0 waits at 0B0 for 1B0, position 2 of rank 1\n"
        "  rank 1 waits at 1F1 for 0F1, position 2 of rank 0\n"
        "rank 0 |  0F0  >0B0<  0F1   0B1\n"
        "rank 1 |  1F0  >1F1<  1B0   1B1"
    )


def test_a_pair_waits_for_both_inputs_and_may_deadlock_where_single_actions_do_not():
    single = "microbatches 2, rank of stage 0 1\n0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1"
    check(Program.parse(single))
    assert fault(single.replace("0F1 0B0", "0F1+0B0").replace("1B0 1F1 1B1", "1F1 1B0 1B1")).startswith(
        "the program deadlocks:\n  rank 0 waits at 0F1 for"
    )


def test_a_program_far_from_complete_is_refused_by_its_size():
    message = fault("microbatches 999999999, rank of stage 0 1\n0F0 0B0\n1F0 1B0")
    assert message == (
        "the program has 4 actions, expected at least 3999999996: "
        "an F and a B for each of 999999999 microbatches on each of 2 stages"
    )


def test_the_number_of_ranks_must_be_that_of_the_shape():
    program = Program.parse(ONE_F_ONE_B)
    with pytest.raises(ProgramError, match="the program has 1 ranks, expected 2, one line per rank"):
        check(Program.of(program.shape, [program.actions(0)]))


@settings(deadline=None, max_examples=60)
@given(data=st.data(), name=st.sampled_from(["1f1b", "zb_h1", "zb_v"]))
def test_a_program_with_two_actions_exchanged_either_is_refused_or_runs(data, name):
    """The checker's verdict equals that of a naive simulation that starts whatever can start."""
    program = build(name, 3, 4)
    rank = data.draw(st.integers(0, 2))
    rows = [list(program.actions(number)) for number in range(3)]
    row = rows[rank]
    one, two = (data.draw(st.integers(0, len(row) - 1)) for _ in range(2))
    row[one], row[two] = row[two], row[one]
    changed = Program.of(program.shape, rows)
    try:
        check(changed)
        accepted = True
    except ProgramError:
        accepted = False
    assert accepted == naively_runs(changed)


def naively_runs(program):
    done, position, last = set(), [0] * program.num_ranks, program.shape.num_stages - 1
    moved = True
    while moved:
        moved = False
        for rank in range(program.num_ranks):
            row = program.actions(rank)
            if position[rank] < len(row) and can_start(row[position[rank]], done, last):
                done.add(row[position[rank]])
                position[rank] += 1
                moved = True
    return len(done) == program.num_actions


def can_start(action, done, last):
    stage, op, microbatch = action
    own = {Op.F: [], Op.B: [Op.F], Op.I: [Op.F], Op.W: [Op.I]}[op]
    if any(Action(stage, needed, microbatch) not in done for needed in own):
        return False
    if op is Op.F:
        return stage == 0 or Action(stage - 1, Op.F, microbatch) in done
    if op is Op.W or stage == last:
        return True
    return Action(stage + 1, Op.B, microbatch) in done or Action(stage + 1, Op.I, microbatch) in done
