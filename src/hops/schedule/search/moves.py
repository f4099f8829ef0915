"""The moves of the annealing: shift an action within its rank, split a B, fuse an I with a W."""

from hops.schedule.coded import IntArray
from hops.schedule.jit import kernel
from hops.schedule.search.chance import advance, below

NO_MOVE = -1


@kernel
def move(row: IntArray, length: int, at: int, state: int) -> tuple[int, int]:
    """Change a rank's order at a place at random: the first place that changed (NO_MOVE: none), and the new length.

    Splitting leaves the I in the B's place and puts the W at the end or anywhere after; fusing takes the stage's next
    or last W. Shifts are mostly short; W are moved by shifts as well.
    """
    kind = row[at]
    op = kind & 3
    draw = below(state, 100)
    state = advance(state)
    if op == 1 and draw < 30:
        place = length
        if below(state, 3) > 0:
            state = advance(state)
            place = at + 1 + below(state, length - at)
        for q in range(length, place, -1):
            row[q] = row[q - 1]
        row[place] = kind + 2
        row[at] = kind + 1
        return at, length + 1
    if op == 2 and draw < 30:
        place = NO_MOVE
        if below(state, 2) == 0:
            for q in range(at + 1, length):
                if row[q] == kind + 1:
                    place = q
                    break
        else:
            for q in range(length - 1, at, -1):
                if row[q] == kind + 1:
                    place = q
                    break
        if place == NO_MOVE:
            return NO_MOVE, length
        row[at] = kind - 1
        for q in range(place, length - 1):
            row[q] = row[q + 1]
        return at, length - 1
    reach = length
    if draw % 10 < 5:
        reach = 2
    elif draw % 10 < 8:
        reach = 6
    distance = 1 + below(state, reach)
    state = advance(state)
    same = True
    if below(state, 2) == 0:
        place = max(0, at - distance)
        for q in range(at, place, -1):
            same = same and row[q - 1] == kind
            row[q] = row[q - 1]
        row[place] = kind
        return NO_MOVE if same else place, length
    place = min(length - 1, at + distance)
    for q in range(at, place):
        same = same and row[q + 1] == kind
        row[q] = row[q + 1]
    row[place] = kind
    return NO_MOVE if same else at, length
