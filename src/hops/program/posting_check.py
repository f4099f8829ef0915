"""Whether a program with its postings can run: every message once, in one order on both sides, and without deadlock.

Between two ranks a transport matches what is sent and received first come, first served. Most keep each direction apart
(gloo, MPI); NCCL on one communicator carries out everything between two ranks in the order in which it was posted.
"""

from collections import Counter
from collections.abc import Sequence

from hops.errors import ProgramError
from hops.program.action import Action, Op, Pair
from hops.program.program import Program
from hops.program.streams import Entry, Posting, receive_of, sends_of


def check_postings(program: Program, streams: Sequence[Sequence[Entry]]) -> None:
    """Raise ProgramError unless what is posted suits the actions, and both sides of each way post in one order.

    Then nobody waits for ever if the program can run, which `lower` says: to post is not to wait.
    """
    for rank, stream in enumerate(streams):
        _check_rank(program, rank, stream)
    _check_same_order(program, streams)


def _check_rank(program: Program, rank: int, stream: Sequence[Entry]) -> None:
    """Receives before what takes them, sends after what made them, each once, nothing else."""
    posted, made, expected = dict[Posting, int](), set[Posting](), set[Posting]()
    for place, entry in enumerate(stream):
        at = f"rank {rank}, position {place}"
        if isinstance(entry, Posting):
            if entry in posted:
                raise ProgramError(f"{at}: {entry} is there twice, expected once")
            if entry.kind.is_send and entry not in made:
                raise ProgramError(f"{at}: {entry} sends what is not computed yet, or what goes to no other rank")
            posted[entry] = place
            continue
        for action in entry if isinstance(entry, Pair) else (entry,):
            taken = receive_of(program.shape.rank_of_stage, action)
            if taken is not None:
                expected.add(taken)
                if taken not in posted:
                    raise ProgramError(
                        f"{at}: {action} takes what no receive was posted for, expected {taken} before it"
                    )
        made.update(sends_of(program.shape.rank_of_stage, entry))
    missing = sorted((made | expected) - set(posted), key=str)
    strange = sorted(set(posted) - made - expected, key=str)
    if missing:
        raise ProgramError(f"rank {rank} lacks {missing[0]}, expected a posting for every message between ranks")
    if strange:
        place = posted[strange[0]]
        raise ProgramError(f"rank {rank}, position {place}: {strange[0]} receives what no action of the rank takes")


def _check_same_order(program: Program, streams: Sequence[Sequence[Entry]]) -> None:
    sent, received = dict[tuple[int, int], list[Posting]](), dict[tuple[int, int], list[Posting]]()
    for rank, stream in enumerate(streams):
        for each in stream:
            if isinstance(each, Posting):
                other = program.shape.rank_of_stage[each.partner.stage]
                if each.kind.is_send:
                    sent.setdefault((rank, other), []).append(each.partner)
                else:
                    received.setdefault((other, rank), []).append(each)
    for (sender, receiver), order in sent.items():
        for wanted, got in zip(order, received[sender, receiver], strict=True):
            if wanted != got:
                raise ProgramError(
                    f"rank {receiver} posts {got} where rank {sender} sends {wanted.partner}: expected {wanted}, since "
                    "messages between two ranks are matched in the order in which they are posted"
                )


def stuck_in_one_queue(program: Program, streams: Sequence[Sequence[Entry]]) -> str:
    """Where the streams wait for ever if the two directions between two ranks share one queue; "" if nowhere.

    A message is carried out once it is first in the queues of both ranks; only actions wait, for what they take.
    """
    queues: dict[tuple[int, int], list[Posting]] = {}
    heads: Counter[tuple[int, int]] = Counter()
    arrived: set[Posting] = set()
    place = [0] * len(streams)

    def advance(rank: int) -> bool:
        moved = False
        stream = streams[rank]
        while place[rank] < len(stream):
            entry = stream[place[rank]]
            if isinstance(entry, Posting):
                other = program.shape.rank_of_stage[entry.partner.stage]
                queues.setdefault((rank, other), []).append(entry)
            elif not _taken(program, entry) <= arrived:
                break
            place[rank] += 1
            moved = True
        return moved

    def carry_out(rank: int, other: int) -> bool:
        mine, theirs = queues[rank, other], queues.get((other, rank), [])
        moved = False
        while heads[rank, other] < len(mine) and heads[other, rank] < len(theirs):
            first, second = mine[heads[rank, other]], theirs[heads[other, rank]]
            if first.partner != second:
                break
            arrived.update((first, second))
            heads[rank, other] += 1
            heads[other, rank] += 1
            moved = True
        return moved

    moving = True
    while moving:
        moved = [advance(rank) for rank in range(len(streams))]
        moved += [carry_out(rank, other) for rank, other in list(queues) if rank < other]
        moving = any(moved)
    stuck = [
        f"rank {rank} waits at {stream[place[rank]]}"
        for rank, stream in enumerate(streams)
        if place[rank] < len(stream)
    ]
    return ", ".join(stuck[:4])


def _taken(program: Program, entry: Action | Pair) -> set[Posting]:
    actions = entry if isinstance(entry, Pair) else (entry,)
    return {
        taken for action in actions for taken in (receive_of(program.shape.rank_of_stage, action),) if taken is not None
    }


def compute_only(streams: Sequence[Sequence[Entry]]) -> list[list[Action | Pair]]:
    """The streams without their postings."""
    return [[entry for entry in stream if not isinstance(entry, Posting)] for stream in streams]


def last_backward(stream: Sequence[Entry]) -> dict[int, int]:
    """The position of each stage's last B or W."""
    last = {}
    for place, entry in enumerate(stream):
        if isinstance(entry, Posting):
            continue
        for action in entry if isinstance(entry, Pair) else (entry,):
            if action.op in (Op.B, Op.W):
                last[action.stage] = place
    return last
