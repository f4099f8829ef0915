"""No fault plan makes a run hang, lose an action or count one twice: 2,000 random (spec, plan) pairs, each audited."""

import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from engine_faults import MS, costs, rows

from hops.cost.base import StepCosts
from hops.engine.settings import P2P, Faults, RunSettings
from hops.engine.simulate import run_policy, run_program
from hops.errors import HopsError, JobFailedError, StalledError, UsageError
from hops.faults.plan import FOREVER, Fault, FaultKind, FaultPlan
from hops.hardware.network import Link, Network, Route
from hops.program.action import Op
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, Scheduler, StaticScheduler
from hops.timing.stage_costs import StageCosts
from hops.trace.trace import Stream

PAIRS, CHUNKS = 2_000, 20
DONE = (Stream.COMPUTE, Stream.MESSAGE, Stream.COLLECTIVE, Stream.HOST)
NAMES = ["policy", *(name for name in SCHEDULERS.names() if issubclass(SCHEDULERS.get(name), StaticScheduler))]
SCHEDULES = [name for name in NAMES if name not in ("program", "zero_bubble")]  # a file; the slow search


class Greedy(Scheduler):
    """Backward first, forward otherwise."""

    def configure(self, profile):
        pass

    def next_actions(self, view):
        ready = [action for action in view.ready() if action.op is not Op.I]
        backward = [action for action in ready if action.op is Op.B]
        return (backward or ready)[:1]


@cache
def program_of(name, ranks, microbatches):
    """The program, or None if the schedule cannot arrange it."""
    scheduler = SCHEDULERS.get(name)()
    try:
        scheduler.configure(StageCosts.uniform(scheduler.shape(ranks, microbatches)))
    except UsageError:
        return None
    return scheduler.program


class Case:
    """A random run, and a random plan for it."""

    def __init__(self, seed):
        rng = self.rng = Random(seed)
        self.ranks, self.microbatches = rng.randint(1, 4), rng.randint(1, 4)
        self.name = rng.choice(SCHEDULES)
        self.program = None if self.name == "policy" else program_of(self.name, self.ranks, self.microbatches)
        if self.program is None:
            self.name = "policy"
        self.shape = self.program.shape if self.program else Shape.loop(self.ranks, num_microbatches=self.microbatches)
        self.p2p = rng.choice([*[P2P.OVERLAPPED] * 3, *[P2P.BLOCKING_FUSED] * 2, P2P.BLOCKING])
        self.iterations = rng.randint(1, 2)
        self.network = self._network()
        step = StepCosts(
            tied_reduce_s=rng.choice([0, 2e-3]),
            grad_reduce_s=tuple(rng.choice([0, 1e-3, 2e-3]) for _ in range(self.ranks)),
            optimizer_s=tuple(rng.choice([0, 1e-3, 3e-3]) for _ in range(self.ranks)),
            host_s=rng.choice([0, 1e-3]),
            synchronized=rng.random() < 0.5,
        )
        times = {op: rng.randint(0 if op == "w" else 1, 4) for op in "fiw"}
        self.costs = costs(
            self.shape.num_stages, **times, bytes_per_message=rng.choice([0, 500, 2_000]), step_costs=step
        )
        self.timeout_ns = rng.choice([None, None, None, 4 * MS])

    def _network(self):
        """No links, a link per pair, or one bus; with or without latency and finite bandwidth."""
        rng, ranks = self.rng, range(self.ranks)
        pairs = [(a, b) for a in ranks for b in ranks if a != b]
        latency_s = rng.choice([0.0, 3e-4, 2e-3])
        kind = rng.choice(["none", "own", "bus"])
        bandwidth = rng.choice([1e6, 4e5, float("inf")])
        names = {"none": [], "own": [f"{a}->{b}" for a, b in pairs], "bus": ["bus"]}[kind]
        links = {"none": lambda _: (), "own": lambda n: (n,), "bus": lambda _: (0,)}[kind]
        return Network(
            links=tuple(Link(name=name, bandwidth=bandwidth) for name in names),
            routes={pair: Route(links=links(n), latency_s=latency_s) for n, pair in enumerate(pairs)},
        )

    def plan(self, horizon_ns, *, for_ever):
        """A few faults, some at the same moment, some at moments at which something ends anyway."""
        rng = self.rng
        moments = [rng.randrange(horizon_ns + 1) // rng.choice([1, MS // 2]) * MS // 2 for _ in range(3)]
        moments = [rng.choice([0, *(min(each, horizon_ns) for each in moments)]) for _ in range(4)]
        links = [link.name for link in self.network.links] + ["nic"]
        faults = []
        for _ in range(rng.randint(1, 6)):
            kind = rng.choice(
                [FaultKind.STOP, FaultKind.STOP, FaultKind.SLOW, FaultKind.LINK_SLOW, FaultKind.LINK_DOWN]
            )
            start = rng.choice([*moments, rng.randrange(horizon_ns + 1)])
            factor = {FaultKind.SLOW: rng.choice([1.5, 3.0]), FaultKind.LINK_SLOW: rng.choice([0.1, 0.5])}.get(
                kind, 1.0
            )
            target = rng.choice(links) if kind.of_link else f"rank{rng.randrange(self.ranks)}"
            length = rng.choice([1, MS // 3, MS, 5 * MS, 20 * MS])
            end = FOREVER if for_ever and rng.random() < 0.3 else start + length
            faults.append(Fault(kind=kind, target=target, start_ns=start, end_ns=end, factor=factor))
        return FaultPlan.of(faults)

    def run(self, plan):
        faults = Faults(
            plan=plan, link_timeout_ns=self.timeout_ns, reduction_links=(("nic",), *((),) * (self.ranks - 1))
        )
        how = RunSettings(iterations=self.iterations, p2p=self.p2p, faults=faults)
        if self.program is None:
            return run_policy(Greedy().placed(StageCosts.uniform(self.shape)), self.costs, self.network, how)
        return run_program(self.program, self.costs, self.network, how)


def counted(trace):
    """How often everything was done."""
    done = trace.where(np.isin(trace.stream, DONE))
    columns = (done.iteration, done.rank, done.stream, done.stage, done.op, done.microbatch, done.peer)
    return Counter(zip(*(column.tolist() for column in columns), strict=True))


def audit(case, base, trace, plan):
    """Everything exactly once, nothing on what is down, nothing lost without a fault, no work too short."""
    assert counted(trace) == counted(base)
    first = min(fault.start_ns for fault in plan)
    assert before(trace, first) == before(base, first)
    stops = [fault for fault in plan if fault.kind in (FaultKind.STOP, FaultKind.LINK_DOWN)]
    for what, rank, peer, start, end in rows(trace, *DONE):
        targets = targets_of(case, what, rank, peer)
        for fault in stops:
            hit = fault.target in targets and fault.start_ns < round(end * MS) and round(start * MS) < fault.end_ns
            assert not hit, (what, rank, peer, start, end, fault)
    ends = {(fault.target, fault.start_ns) for fault in stops}
    for what, rank, peer, _, end in rows(trace, Stream.LOST):
        targets = targets_of(case, what, rank, peer)
        assert any((target, round(end * MS)) in ends for target in targets), (what, rank, peer, end)
    if case.name != "policy":
        audit_lengths(base, trace, plan)


def before(trace, moment_ns):
    """What had been done by then; what takes no time and is due at that very moment comes after the fault."""
    return [row for row in rows(trace, *DONE) if row[4] * MS <= moment_ns and row[3] * MS < moment_ns]


def targets_of(case, what, rank, peer):
    """Devices and links that a row needs."""
    if what == "TIED_REDUCE":
        ends = case.shape.rank_of_stage[0], case.shape.rank_of_stage[-1]
        return {f"rank{end}" for end in ends} | links_of(case, *ends) | links_of(case, *ends[::-1])
    if peer in (-1, rank):  # its own rank: one of a pair
        return {f"rank{rank}"} | ({"nic"} if what == "GRAD_REDUCE" and rank == 0 else set())
    return {f"rank{rank}", f"rank{peer}"} | links_of(case, rank, peer)


def links_of(case, source, target):
    return {case.network.links[index].name for index in case.network.routes[source, target].links}


def audit_lengths(base, trace, plan):
    """Speed integrated over every action is its undisturbed length."""
    length = {key: row.duration for key, row in actions(base)}
    for key, row in actions(trace):
        slows = [fault for fault in plan if fault.kind is FaultKind.SLOW and fault.target == f"rank{row.rank}"]
        edges = {row.start, row.end, *(edge for fault in slows for edge in (fault.start_ns, fault.end_ns))}
        edges = sorted(edge for edge in edges if row.start <= edge <= row.end)
        done = 0.0
        for left, right in pairwise(edges):
            factor = 1.0
            for fault in slows:
                factor *= fault.factor if fault.start_ns <= left < fault.end_ns else 1.0
            done += (right - left) / factor
        assert abs(done - length[key]) <= 1, (key, row)


class Row:
    def __init__(self, rank, start, end):
        self.rank, self.start, self.end, self.duration = rank, start, end, end - start


def actions(trace):
    found = trace.of(Stream.COMPUTE)
    columns = (found.iteration, found.stage, found.op, found.microbatch, found.rank, found.start_ns, found.end_ns)
    for iteration, stage, op, microbatch, rank, start, end in zip(*(each.tolist() for each in columns), strict=True):
        yield (iteration, stage, op, microbatch, rank), Row(rank, start, end)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_plan_makes_a_run_hang_or_lose_or_repeat_an_action(chunk):
    ended = Counter()
    for seed in range(chunk * PAIRS // CHUNKS, (chunk + 1) * PAIRS // CHUNKS):
        ended[outcome_of(seed)] += 1
    assert ended["whole"] > PAIRS / CHUNKS / 2, ended


def outcome_of(seed):
    case = Case(seed)
    for_ever = case.rng.random() < 0.1
    base = result_of(case, FaultPlan())
    if isinstance(base, StalledError):  # rendezvous in this order is impossible, with or without faults
        assert "try p2p" in str(base)
        assert isinstance(result_of(case, case.plan(30 * MS, for_ever=for_ever)), HopsError)
        return "stalls anyway"
    plan = case.plan(int(base.end_ns.max()), for_ever=for_ever)
    trace = result_of(case, plan)
    if isinstance(trace, JobFailedError):
        assert any(each.kind is FaultKind.LINK_DOWN and each.end_ns - each.start_ns > case.timeout_ns for each in plan)
        return "fails"
    if isinstance(trace, StalledError):
        assert "never repaired: " in str(trace)
        assert any(fault.end_ns == FOREVER for fault in plan)
        return "stalls"
    audit(case, base, trace, plan)
    return "whole"


def result_of(case, plan):
    """The trace, or the error."""
    try:
        return case.run(plan)
    except (StalledError, JobFailedError) as error:
        return error


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("scale", [2, 7])
def test_scaling_all_times_and_the_plan_scales_every_row(seed, scale):
    """Factors are powers of two and links unshared, so that no rounding differs."""
    rng = Random(seed)
    ranks = rng.randint(2, 4)
    work = program_of("zb_h1", ranks, 4)
    moments = [rng.randrange(40 * MS) for _ in range(4)]
    faults = [
        Fault(
            kind=kind, target=f"rank{rng.randrange(ranks)}", start_ns=at, end_ns=at + rng.randrange(1, 9 * MS), **more
        )
        for at, kind, more in zip(moments, 2 * [FaultKind.STOP, FaultKind.SLOW], 2 * [{}, {"factor": 2.0}], strict=True)
    ]

    def rows_of(times):
        plan = FaultPlan.of(
            replace(fault, start_ns=fault.start_ns * times, end_ns=fault.end_ns * times) for fault in faults
        )
        network = Network.uniform(ranks, latency_s=times * 1e-4)
        trace = run_program(work, costs(ranks, times, times, times), network, RunSettings(faults=Faults(plan=plan)))
        return trace.start_ns // times, trace.end_ns // times, trace.op

    for one, many in zip(rows_of(2), rows_of(2 * scale), strict=True):
        assert np.array_equal(one, many)
