"""Short words for fault tests: faults in milliseconds, runs with and without them, rows as tuples."""

import numpy as np

from hops.cost.table import TableCosts
from hops.engine.settings import Faults, RunSettings
from hops.engine.simulate import run_program
from hops.faults.plan import FOREVER, Fault, FaultKind, FaultPlan
from hops.program.action import Action, Op
from hops.trace.trace import Stream

MS = 1_000_000


def _fault(kind, target, start_ms, end_ms, factor=1.0, cause=""):
    end_ns = FOREVER if end_ms is None else round(end_ms * MS)
    return Fault(kind=kind, target=target, start_ns=round(start_ms * MS), end_ns=end_ns, factor=factor, cause=cause)


def stop(rank, start_ms, end_ms, **more):
    return _fault(FaultKind.STOP, f"rank{rank}", start_ms, end_ms, **more)


def slow(rank, start_ms, end_ms, factor):
    return _fault(FaultKind.SLOW, f"rank{rank}", start_ms, end_ms, factor)


def link_slow(link, start_ms, end_ms, factor):
    return _fault(FaultKind.LINK_SLOW, link, start_ms, end_ms, factor)


def link_down(link, start_ms, end_ms, **more):
    return _fault(FaultKind.LINK_DOWN, link, start_ms, end_ms, **more)


def costs(stages, f=1, i=1, w=1, **more):
    """Costs in milliseconds."""
    return TableCosts.of(
        forward_s=(f / 1e3,) * stages,
        input_backward_s=(i / 1e3,) * stages,
        weight_backward_s=(w / 1e3,) * stages,
        **more,
    )


def broken(faults, *, timeout_ms=None, reduction_links=(), **settings):
    """Settings with these faults."""
    timeout_ns = None if timeout_ms is None else round(timeout_ms * MS)
    plan = FaultPlan.of(faults)
    return RunSettings(
        faults=Faults(plan=plan, link_timeout_ns=timeout_ns, reduction_links=reduction_links), **settings
    )


def run(work, stage_costs, network, *faults, timeout_ms=None, reduction_links=(), **settings):
    how = broken(faults, timeout_ms=timeout_ms, reduction_links=reduction_links, **settings)
    return run_program(work, stage_costs, network, how)


def rows(trace, *streams):
    """(what, rank, peer, start, end) in ms of the rows of these streams, in order."""
    found = trace.where(np.isin(trace.stream, streams))
    columns = (found.rank, found.peer, found.stage, found.op, found.microbatch, found.start_ns, found.end_ns)
    return [
        (_name(stage, Op(op), microbatch), rank, peer, start / MS, end / MS)
        for rank, peer, stage, op, microbatch, start, end in zip(*(each.tolist() for each in columns), strict=True)
    ]


def _name(stage, op, microbatch):
    return str(Action(stage, op, microbatch)) if stage >= 0 else op.name


def lost(trace):
    return rows(trace, Stream.LOST)


def end_ms(trace):
    """When the last thing was done."""
    done = (trace.stream != Stream.FAULT) & (trace.stream != Stream.LOST)
    return trace.end_ns[done].max() / MS
