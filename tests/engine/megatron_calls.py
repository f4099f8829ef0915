"""Megatron-LM's interleaved schedule without overlap, call by call, written for the tests alone.

From memory of its source, and not compared with a run of it.

As `forward_backward_pipelining_with_interleaving` (megatron-core 0.14, `pipeline_parallel/schedules.py`) issues it: a
rank computes, then calls `send_forward_recv_forward`, `send_forward_backward_recv_forward_backward` or
`send_backward_recv_backward`. A call posts its sends and receives at once and ends when all are delivered; a message
starts when both of its ends are posted.
"""

F, B = 0, 1


def interleaved_calls(rank, ranks, chunks, microbatches):
    """The (computes, sends, receives) of a rank; a compute is (stage, op, microbatch), as is what makes a message."""
    total, last = microbatches * chunks, ranks * chunks - 1
    warm_up = min(total, 2 * (ranks - rank - 1) + (chunks - 1) * ranks)

    def action(op, k):
        chunk = k % (ranks * chunks) // ranks
        stage = (chunk if op == F else chunks - 1 - chunk) * ranks + rank
        return stage, op, k // (ranks * chunks) * ranks + k % ranks

    def taken(op, k):
        """What makes the input of the k-th forward or backward; nothing if there is none."""
        if not 0 <= k < total:
            return []
        stage, _, microbatch = action(op, k)
        maker = stage - 1 if op == F else stage + 1
        return [(maker, op, microbatch)] if 0 <= maker <= last else []

    def given(*actions):
        return [each for each in actions if each[0] != (last if each[1] == F else 0)]

    calls = [([], [], taken(F, 0))]
    for k in range(warm_up):
        ends = k == warm_up - 1
        calls.append(([action(F, k)], given(action(F, k)), taken(F, k + 1) + (taken(B, 0) if ends else [])))
    if not warm_up:
        calls[0] = ([], [], taken(F, 0) + taken(B, 0))
    for k in range(total - warm_up):
        both = [action(F, k + warm_up), action(B, k)]
        calls.append((both, given(*both), taken(F, k + warm_up + 1) + taken(B, k + 1)))
    drained = range(total - warm_up, total)
    calls.extend(([action(B, k)], given(action(B, k)), taken(B, k + 1)) for k in drained)
    return calls


def makespan(calls, durations, hop):
    """When all calls of all ranks are through. `durations[stage][op][microbatch]`."""
    position, free = [0 for _ in calls], [0 for _ in calls]
    posted = {}  # (message, whether it is the receive): when
    entered = [False for _ in calls]
    while True:
        moved = False
        for rank, mine in enumerate(calls):
            while position[rank] < len(mine):
                computes, sends, receives = mine[position[rank]]
                if not entered[rank]:
                    free[rank] += sum(durations[stage][op][microbatch] for stage, op, microbatch in computes)
                    posted.update({(each, False): free[rank] for each in sends})
                    posted.update({(each, True): free[rank] for each in receives})
                    entered[rank] = moved = True
                if any((each, side) not in posted for each in sends + receives for side in (False, True)):
                    break
                ends = [max(posted[each, False], posted[each, True]) + hop for each in sends + receives]
                free[rank] = max([free[rank], *ends])
                position[rank], entered[rank], moved = position[rank] + 1, False, True
        if not moved:
            assert position == [len(mine) for mine in calls], "Megatron-LM's calls meet"
            return max(free)
