"""Programs as PyTorch's schedule CSV, both kinds: round trips, faults with their place, and postings that can run."""

import pytest

from hops.errors import ProgramError, UsageError
from hops.program.action import Action, Op, Pair
from hops.program.lowering import lower
from hops.program.posting_check import check_postings, stuck_in_one_queue
from hops.program.program import Program
from hops.program.pytorch_csv import communicating_csv, compute_csv, load_csv, parse_csv
from hops.program.reading import load_program
from hops.program.shape import Shape
from hops.program.streams import Posting, PostingKind, with_postings
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts

PROGRAMS = [
    ("gpipe", {}, 4, 6),
    ("1f1b", {}, 4, 6),
    ("interleaved_1f1b", {"chunks": 3}, 4, 8),
    ("zb_h1", {}, 4, 8),
    ("zb_h2", {}, 3, 8),
    ("zero_bubble", {}, 4, 7),
    ("zb_v", {}, 3, 6),
    ("dualpipe_v", {}, 3, 8),
]


def built(name, parameters, ranks, microbatches):
    scheduler = SCHEDULERS.get(name)(**parameters)
    assert isinstance(scheduler, StaticScheduler)
    scheduler.configure(StageCosts.uniform(scheduler.shape(ranks, microbatches)))
    return scheduler.program


@pytest.mark.parametrize(("name", "parameters", "ranks", "microbatches"), PROGRAMS)
def test_both_kinds_give_the_program_back(name, parameters, ranks, microbatches):
    program = built(name, parameters, ranks, microbatches)
    assert parse_csv(compute_csv(program)) == program
    assert parse_csv(communicating_csv(program)) == program


@pytest.mark.parametrize(("name", "parameters", "ranks", "microbatches"), PROGRAMS)
def test_postings_suit_the_program_and_receives_are_an_action_ahead(name, parameters, ranks, microbatches):
    program = built(name, parameters, ranks, microbatches)
    streams = with_postings(program)
    check_postings(program, streams)
    low = lower(program)
    crossing = sum(
        int(low.receiver[key] != low.rank[step])
        for step in range(len(low.rank))
        for key in low.bring[low.first[step] : low.first[step + 1]]
        if key >= 0
    )
    posted = [entry for stream in streams for entry in stream if isinstance(entry, Posting)]
    assert len(posted) == 2 * crossing
    assert {entry.partner for entry in posted} == set(posted)
    for stream in streams:
        actions = [entry for entry in stream if not isinstance(entry, Posting)]
        for entry in stream:
            if isinstance(entry, Posting) and not entry.kind.is_send:
                ops = (Op.F,) if entry.kind is PostingKind.RECV_F else (Op.B, Op.I)
                taken = min(
                    place
                    for place, each in enumerate(actions)
                    if any(
                        (a.stage, a.microbatch) == (entry.stage, entry.microbatch) and a.op in ops
                        for a in (each if isinstance(each, Pair) else (each,))
                    )
                )
                before = sum(not isinstance(each, Posting) for each in stream[: stream.index(entry)])
                assert before <= max(0, taken - 1)


def test_the_form_of_both_kinds():
    program = built("1f1b", {}, 2, 2)
    assert compute_csv(program) == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
    assert communicating_csv(program) == (
        "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0RECV_B1,0B0,0B1,0REDUCE_GRAD\n"
        "1RECV_F0,1UNSHARD,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1REDUCE_GRAD\n"
    )


def test_receives_follow_the_senders_order_where_it_is_not_the_order_of_need():
    """Rank 0 sends 0F0 before 2F0... but rank 1 needs 3F0 only after 1F1: receives are posted as they are sent."""
    shape = Shape(num_microbatches=2, rank_of_stage=(0, 1))
    program = Program.of(
        shape,
        [
            [Action(0, Op.F, 1), Action(0, Op.F, 0), Action(0, Op.B, 0), Action(0, Op.B, 1)],
            [Action(1, Op.F, 0), Action(1, Op.F, 1), Action(1, Op.B, 0), Action(1, Op.B, 1)],
        ],
    )
    stream = with_postings(program)[1]
    assert [str(each) for each in stream[:3]] == ["1RECV_F1", "1RECV_F0", "1F0"]
    check_postings(program, with_postings(program))


def test_one_queue_for_both_directions_can_wait_for_ever():
    program = built("1f1b", {}, 2, 4)
    assert stuck_in_one_queue(program, with_postings(program)) == "rank 0 waits at 0B0, rank 1 waits at 1F1"
    late = [
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1",
        "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1",
    ]
    program = parse_csv("\n".join(late))
    streams = [[as_entry(cell) for cell in row.split(",")] for row in late]
    check_postings(program, streams)
    assert stuck_in_one_queue(program, streams) == ""


def as_entry(cell):
    for exchange in PostingKind:
        if exchange.value in cell:
            stage, microbatch = cell.split(exchange.value)
            return Posting(int(stage), exchange, int(microbatch))
    return Action.parse(cell)


def test_a_file_from_before_the_rename_says_b_for_i():
    old = "0F0,0B0,0W0,0F1,0B1\n,1F0,1B0,1W0,1F1,1B1\n"
    assert compute_csv(parse_csv(old)) == "0F0,0I0,0W0,0F1,0B1\n1F0,1I0,1W0,1F1,1B1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "s.csv: it is empty, expected a row of actions per rank, such as 0F0,0F1,0B0,0B1"),
        (",,\n", "s.csv: it is empty"),
        (
            "0F0,0B0\n1F0,1X0\n",
            "s.csv:2:2: got '1X0', expected such as 2F0, (0F8;3B7)OVERLAP_F_B, 2SEND_F0, 2REDUCE_GRAD",
        ),
        ("0F0,(0F1;0B0)OVERLAP\n", "s.csv:1:2: got '(0F1;0B0)OVERLAP'"),
        ("0F0,0B0\n0F1,0B1\n", "s.csv:2: stage 0 is on rank 1, but on rank 0 before"),
        ("0F0,0B0\n2F0,2B0\n", "s.csv: stage 1 is on no rank, expected stages 0 to 2 without a gap"),
        ("0F0,0B0\n\n1F0,1B0\n", "s.csv:2: no action of rank 1"),
    ],
)
def test_faults_are_named_with_their_place(text, message):
    with pytest.raises(ProgramError) as error:
        parse_csv(text, source="s.csv")
    assert message in str(error.value)


GOOD = ["0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1", "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1"]


@pytest.mark.parametrize(
    ("rank", "old", "new", "message"),
    [
        (0, "0SEND_F0,", "0SEND_F0,0SEND_F0,", "rank 0, position 2: 0SEND_F0 is there twice, expected once"),
        (0, "0F0,0SEND_F0", "0SEND_F0,0F0", "rank 0, position 0: 0SEND_F0 sends what is not computed yet"),
        (0, "0RECV_B0,", "", "rank 0, position 4: 0B0 takes what no receive was posted for, expected 0RECV_B0"),
        (1, ",1SEND_B1", "", "rank 1 lacks 1SEND_B1, expected a posting for every message between ranks"),
        (1, "1SEND_B1", "1SEND_B1,1RECV_B0", "rank 1, position 8: 1RECV_B0 receives what no action of the rank takes"),
        (1, "1RECV_F0,1F0,1RECV_F1", "1RECV_F1,1RECV_F0,1F0", "rank 1 posts 1RECV_F1 where rank 0 sends 0SEND_F0"),
    ],
)  # fmt: skip
def test_faulty_communication_is_named(rank, old, new, message):
    assert parse_csv("\n".join(GOOD)) == built("1f1b", {}, 2, 2)
    rows = [row.replace(old, new) if number == rank else row for number, row in enumerate(GOOD)]
    assert rows != GOOD
    with pytest.raises(ProgramError) as error:
        parse_csv("\n".join(rows), source="s.csv")
    assert str(error.value).startswith("s.csv: ")
    assert message in str(error.value)


def test_files_are_read_by_their_ending_and_checked(tmp_path):
    program = built("zb_h1", {}, 3, 4)
    path = tmp_path / "schedule.csv"
    path.write_text(communicating_csv(program))
    assert load_program(path) == load_csv(path) == program
    path.write_text("0F0,0B0,0F1\n1F0,1B0,1F1,1B1\n")
    with pytest.raises(ProgramError, match=r"schedule.csv: rank 0 is not complete: it lacks 0B1"):
        load_program(path)
    path.unlink()
    with pytest.raises(ProgramError, match=r"schedule.csv.*a row of actions per rank|schedule.csv: cannot be read"):
        load_program(path)


def test_a_schedule_runs_from_a_csv(tmp_path):
    program = built("interleaved_1f1b", {}, 2, 4)
    path = tmp_path / "mine.csv"
    path.write_text(compute_csv(program))
    scheduler = SCHEDULERS.get("program")(file=str(path))
    assert scheduler.shape(2, 4) == program.shape
    with pytest.raises(UsageError, match="for 2 ranks and 4 microbatches"):
        scheduler.shape(4, 4)
