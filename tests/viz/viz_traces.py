"""Traces to draw, made without the engine: orders of actions evaluated by their dependencies alone."""

import numpy as np

from hops.metrics.summary import RunFacts
from hops.model.memory import StageMemory
from hops.program.action import Action, Op
from hops.trace.trace import LinkMeta, Stream, Trace, TraceMeta

GIB = 1 << 30
MS = 1_000_000
DURATION_MS = {Op.F: 1.0, Op.B: 2.0, Op.I: 1.0, Op.W: 1.0}


def one_f_one_b(ranks, microbatches, *, split=False):
    """Orders of 1F1B; with `split`, I at once and each W after the next I, the rest at the end."""
    orders = []
    for rank in range(ranks):
        ahead = min(ranks - rank, microbatches)
        order = [Action(rank, Op.F, m) for m in range(ahead)]
        for m in range(microbatches):
            if split:
                order.append(Action(rank, Op.I, m))
                if m >= rank:
                    order.append(Action(rank, Op.W, m - rank))
            else:
                order.append(Action(rank, Op.B, m))
            if m + ahead < microbatches:
                order.append(Action(rank, Op.F, m + ahead))
        if split:
            order += [Action(rank, Op.W, m) for m in range(max(microbatches - rank, 0), microbatches)]
        orders.append(order)
    return orders


def looped_gpipe(ranks, microbatches, chunks):
    """Orders of GPipe with several chunks on each rank: all F, chunk after chunk, then all B backwards."""
    return [
        [Action(c * ranks + r, Op.F, m) for c in range(chunks) for m in range(microbatches)]
        + [Action(c * ranks + r, Op.B, m) for c in reversed(range(chunks)) for m in range(microbatches)]
        for r in range(ranks)
    ]


def evaluate(orders, rank_of_stage, hop_ns):
    """(action, rank, start_ns, end_ns) of every action, each as early as its inputs and its rank allow."""
    stages, end_ns, free_ns, rows = len(rank_of_stage), {}, [0] * len(orders), []
    queues = [list(order) for order in orders]
    while any(queues):
        moved = False
        for rank, queue in enumerate(queues):
            while queue:
                action = queue[0]
                ready = inputs_ready(action, stages, rank_of_stage, end_ns, hop_ns)
                if ready is None:
                    break
                start = max(ready, free_ns[rank])
                slow = 1 + 0.08 * (rank % 3)
                end_ns[action] = free_ns[rank] = start + round(DURATION_MS[action.op] * MS * slow)
                rows.append((queue.pop(0), rank, start, free_ns[rank]))
                moved = True
        assert moved, "the orders deadlock"
    return rows


def inputs_ready(action, stages, rank_of_stage, end_ns, hop_ns):
    stage, op, m = action
    if op is Op.W:
        return end_ns.get(Action(stage, Op.I, m))
    if op is Op.F and stage == 0:
        return 0
    if op is not Op.F and stage == stages - 1:
        return end_ns.get(Action(stage, Op.F, m))
    other = stage - 1 if op is Op.F else stage + 1
    producers = [Op.F] if op is Op.F else [Op.B, Op.I]
    ends = [end_ns[Action(other, p, m)] for p in producers if Action(other, p, m) in end_ns]
    return ends[0] + hop_ns * (rank_of_stage[other] != rank_of_stage[stage]) if ends else None


def trace_of(
    orders,
    *,
    rank_of_stage=None,
    iterations=1,
    hop_ms=0.15,
    step=True,
    faults=(),
    devices=("A100-80G-SXM", "L4", "RTX 4090"),
    schedule="1f1b",
    source="simulated",
    stretch=1.0,
):
    """The trace of these orders, iteration after iteration; `faults` are (rank, start_ms, end_ms)."""
    ranks = len(orders)
    rank_of_stage = tuple(rank_of_stage or range(ranks))
    stages = len(rank_of_stage)
    once = evaluate(orders, rank_of_stage, round(hop_ms * MS))
    makespan = max(end for *_, end in once)
    rows, offset = [], 0

    def add(iteration, rank, stream, stage, op, microbatch, peer, start, end, size=0):
        rows.append((iteration, rank, stream, stage, op, microbatch, peer, offset + start, offset + end, size))

    for iteration in range(iterations):
        for (stage, op, m), rank, start, end in once:
            add(iteration, rank, Stream.COMPUTE, stage, op, m, -1, start, end)
            to = stage + 1 if op is Op.F else stage - 1
            if op.sends and 0 <= to < stages and rank_of_stage[to] != rank:
                add(iteration, rank, Stream.MESSAGE, stage, op, m, rank_of_stage[to], end, end + round(hop_ms * MS), MS)
        end = makespan
        if step:
            for rank in {0, ranks - 1}:
                add(iteration, rank, Stream.COLLECTIVE, -1, Op.TIED_REDUCE, -1, -1, makespan, makespan + 2 * MS)
            for rank in range(ranks):
                add(
                    iteration, rank, Stream.COLLECTIVE, -1, Op.GRAD_REDUCE, -1, -1, makespan + 2 * MS, makespan + 4 * MS
                )
                add(iteration, rank, Stream.COMPUTE, -1, Op.OPTIMIZER, -1, -1, makespan + 4 * MS, makespan + 6 * MS)
                add(iteration, rank, Stream.HOST, -1, Op.HOST, -1, -1, makespan + 6 * MS, makespan + 7 * MS)
            end = makespan + 7 * MS
        offset += end
    offset = 0
    for rank, start_ms, end_ms in faults:
        add(0, rank, Stream.FAULT, -1, Op.HOST, -1, -1, round(start_ms * MS), round(end_ms * MS))
    names = ["iteration", "rank", "stream", "stage", "op", "microbatch", "peer", "start_ns", "end_ns", "bytes"]
    columns = dict(zip(names, np.asarray(rows, dtype=np.int64).reshape(-1, 10).T, strict=True))
    for name in ("start_ns", "end_ns"):
        columns[name] = np.round(columns[name] * stretch).astype(np.int64)
    return Trace.from_columns(columns, meta_of(ranks, rank_of_stage, orders, devices, schedule, source))


def meta_of(ranks, rank_of_stage, orders, devices, schedule="1f1b", source="simulated"):
    pairs = [(a, b) for a in range(ranks) for b in ((a + 1) % ranks, (a - 1) % ranks) if a != b]
    return TraceMeta(
        source=source,
        schedule=schedule,
        num_microbatches=1 + max((action.microbatch for order in orders for action in order), default=0),
        rank_of_stage=rank_of_stage,
        devices=tuple(devices[rank % len(devices)] for rank in range(ranks)),
        hosts=tuple(f"node{rank // 4}" for rank in range(ranks)),
        links=tuple(LinkMeta(name=f"{a} to {b}", bandwidth=12.5e9) for a, b in dict.fromkeys(pairs)),
        routes={pair: (index,) for index, pair in enumerate(dict.fromkeys(pairs))},
    )


def facts_of(trace, *, memory=True, warmup=0):
    """Facts in which the first stages are tightest."""
    stages, ranks = trace.meta.num_stages, trace.meta.num_ranks
    held = StageMemory(
        weights_bytes=2 * GIB,
        gradients_bytes=2 * GIB,
        optimizer_bytes=6 * GIB,
        activation_bytes=GIB // (1 + ranks // 8),
        kept_for_weight_bytes=GIB // 2 // (1 + ranks // 8),
    )
    return RunFacts(
        warmup_iterations=warmup,
        samples_per_microbatch=2,
        tokens_per_microbatch=4096,
        flop_per_microbatch=2e12,
        peak_flop_per_s=tuple((312e12, 121e12, 165e12)[rank % 3] for rank in range(ranks)),
        stage_memory=(held,) * stages if memory else (),
        memory_bytes=tuple((80, 24, 24)[rank % 3] * GIB for rank in range(ranks)) if memory else (),
    )
