"""Small traces built by hand for metric tests: orders per rank and times in, columns out; no engine involved."""

from hops.program.action import Action, Op
from hops.trace.trace import Stream, Trace, TraceMeta

F, B, I, W = Op.F, Op.B, Op.I, Op.W  # noqa: E741


def gpipe(ranks, microbatches):
    """All forwards, then all backwards."""
    return [
        [Action(s, F, m) for m in range(microbatches)] + [Action(s, B, m) for m in range(microbatches)]
        for s in range(ranks)
    ]


def one_f_one_b(ranks, microbatches):
    """Warm-up of ranks - s - 1 forwards, then one forward and one backward in turn, then the rest."""
    orders = []
    for s in range(ranks):
        ahead = min(ranks - s - 1, microbatches)
        order = [Action(s, F, m) for m in range(ahead)]
        for m in range(microbatches):
            order += [Action(s, F, ahead + m)] if ahead + m < microbatches else []
            order.append(Action(s, B, m))
        orders.append(order)
    return orders


def split(orders):
    """B as I and then W."""
    return [
        [part for a in order for part in ([a] if a.op is not B else [a._replace(op=I), a._replace(op=W)])]
        for order in orders
    ]


def meta(ranks, microbatches, **more):
    """Stage s on rank s, one device and host per rank."""
    named = {
        "source": "simulated",
        "num_microbatches": microbatches,
        "rank_of_stage": tuple(range(ranks)),
        "devices": tuple(f"device{r}" for r in range(ranks)),
        "hosts": tuple(f"host{r}" for r in range(ranks)),
        "routes": {},
    }
    return TraceMeta(**{**named, **more})


class Rows:
    """Collects rows of a trace by name."""

    def __init__(self):
        self.rows = []

    def add(self, start, end, *, rank, stream=Stream.COMPUTE, op=F, stage=-1, microbatch=-1, iteration=0, **more):
        self.rows.append(
            {"start_ns": start, "end_ns": end, "rank": rank, "stream": stream, "op": op, "stage": stage}
            | {"microbatch": microbatch, "iteration": iteration, "peer": -1, "bytes": 0}
            | more
        )

    def trace(self, meta):
        return Trace.from_columns({name: [row[name] for row in self.rows] for name in self.rows[0]}, meta)


def simulate(orders, seconds, *, hop=0, iterations=1, step=None, size=0, **more):
    """Run stage s on rank s in the given orders.

    `seconds(action, iteration)` in ns; `hop` ns per message; `step`: ns of reduction, optimizer, host.
    """
    rows, begin = Rows(), 0
    ranks = len(orders)
    for number in range(iterations):
        done, sent, free, todo = {}, {}, [begin] * ranks, [list(order) for order in orders]
        while any(todo):
            for r in range(ranks):
                while todo[r] and (start := _start(todo[r][0], done, sent, free[r], ranks)) is not None:
                    action = todo[r].pop(0)
                    end = start + seconds(action, number)
                    kind = F if action.op is F else B if action.op is not W else W
                    done[action.stage, kind, action.microbatch] = free[r] = end
                    there = {"stage": action.stage, "op": action.op, "microbatch": action.microbatch}
                    rows.add(start, end, rank=r, iteration=number, **there)
                    to = r + 1 if action.op is F else r - 1
                    if action.op is not W and 0 <= to < ranks:
                        sent[action.stage, kind, action.microbatch] = end + hop
                        rows.add(
                            end,
                            end + hop,
                            rank=r,
                            stream=Stream.MESSAGE,
                            iteration=number,
                            peer=to,
                            bytes=size,
                            **there,
                        )
        begin = max(free)
        for stream, op, length in zip(
            (Stream.COLLECTIVE, Stream.COMPUTE, Stream.HOST),
            (Op.GRAD_REDUCE, Op.OPTIMIZER, Op.HOST),
            step or (0, 0, 0),
            strict=True,
        ):
            for r in range(ranks if length else 0):
                rows.add(begin, begin + length, rank=r, stream=stream, op=op, iteration=number)
            begin += length
    microbatches = 1 + max(action.microbatch for action in orders[0])
    return rows.trace(meta(ranks, microbatches, **more))


def _start(action, done, sent, free, ranks):
    stage, op, m = action
    needs = []
    if op is F and stage:
        needs.append(sent.get((stage - 1, F, m)))
    if op in (B, I):
        needs.append(done.get((stage, F, m)))
        if stage < ranks - 1:
            needs.append(sent.get((stage + 1, B, m)))
    if op is W:
        needs.append(done.get((stage, B, m)))
    return None if None in needs else max([free, *needs])
