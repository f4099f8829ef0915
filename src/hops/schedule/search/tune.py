"""Coordinate search over a policy: change a rule of a stage or a run of stages, decode, keep what is not much worse."""

from hops.schedule.coded import IntArray
from hops.schedule.instance import UNLIMITED
from hops.schedule.jit import kernel
from hops.schedule.search.chance import advance, below
from hops.schedule.search.decode import decode

MOST_PATIENT = 150  # percent of a W's time
ROUGHNESS = 1024  # thresholds are drawn as (u / ROUGHNESS)^2 of the largest


@kernel
def tune(
    size: int,
    times: IntArray,
    hop: IntArray,
    rank_of: IntArray,
    later: IntArray,
    activation: IntArray,
    kept: IntArray,
    memory: IntArray,
    bound: int,
    tries: int,
    threshold: int,
    state: int,
    policy: IntArray,
    kinds: IntArray,
    length: IntArray,
) -> int:
    """Improve `policy` in place over so many tries; `kinds` and `length` become its order. Returns the makespan.

    A policy is kept if it is worse by less than a random part of `threshold`, which falls to 0. Stops at `bound`.
    """
    stages = len(rank_of)
    trial = policy.copy()
    kept_policy = policy.copy()
    current = decode(size, times, hop, rank_of, later, activation, kept, memory, policy, kinds, length)
    best = current
    for attempt in range(tries):
        if best <= bound:
            break
        trial[:] = kept_policy
        state = advance(state)
        for _ in range(1 if below(state, 10) < 7 else 2):
            state = advance(state)
            start = below(state, stages)
            stop = start + 1
            state = advance(state)
            if below(state, 6) == 0:
                state = advance(state)
                stop += below(state, stages - start)
            state = advance(state)
            choice = below(state, 12)
            state = advance(state)
            step = 1 if below(state, 2) == 0 else -1
            state = advance(state)
            if below(state, 4) == 0:
                state = advance(state)
                step *= 1 + below(state, max(2, size // 4))
            for s in range(start, stop):
                if choice < 4:
                    trial[0, s] = min(size, max(1, trial[0, s] + step))
                elif choice < 7:
                    trial[1, s] = min(size, max(0, trial[1, s] + step))
                elif choice < 8:
                    trial[2, s] = min(size, max(0, trial[2, s] + step))
                elif choice < 9:
                    trial[3, s] = 1 - trial[3, s]
                elif choice < 10:
                    trial[4, s] = min(MOST_PATIENT, max(0, trial[4, s] + 10 * step))
                else:
                    trial[5, s] = min(size, max(0, trial[5, s] + step))
        new = decode(size, times, hop, rank_of, later, activation, kept, memory, trial, kinds, length)
        state = advance(state)
        drawn = below(state, ROUGHNESS)
        allowed = threshold * (tries - attempt) // tries * drawn // ROUGHNESS * drawn // ROUGHNESS
        if new <= current + allowed and new < UNLIMITED:
            current = new
            kept_policy[:] = trial
            if new < best:
                best = new
                policy[:] = trial
    decode(size, times, hop, rank_of, later, activation, kept, memory, policy, kinds, length)
    return best
