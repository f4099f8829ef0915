"""Runs random cases in both engines and compares every column: the contract of the compiled engine.

    python -m benchmarks.differential [--cases 5000] [--seed 0] [--json]

A case is drawn from its seed: a program (a built-in schedule, or random orders on random placements, with pairs),
times, jitter, links with and without sharing, ways to send, iterations and their ends, faults. Exits with 1 if any
differs.
"""

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from hops.cost.base import CostModel, StepCosts
from hops.cost.jittered import Jittered
from hops.cost.paired import paired
from hops.cost.table import TableCosts
from hops.cost.uneven import uneven
from hops.distributions import Exponential, LogNormal
from hops.engine.compiled_run import run_compiled
from hops.engine.settings import P2P, Engine, Faults, RunSettings
from hops.engine.simulate import EngineProgram, run_program, run_program_until_stop
from hops.engine.tables import Inputs
from hops.errors import HopsError, UsageError
from hops.faults.plan import FOREVER, Fault, FaultKind, FaultPlan
from hops.hardware.network import Link, Network, RareDelay, Route
from hops.program.action import Action, Op, Pair
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts
from hops.trace.trace import COLUMNS

MS = 1_000_000
SLOW_TO_BUILD = ("program", "zero_bubble", "hops_hetero", "hops_hetero_adaptive", "zb_or_1f1b")
SCHEDULES = [
    name
    for name in SCHEDULERS.names()
    if issubclass(SCHEDULERS.get(name), StaticScheduler) and name not in SLOW_TO_BUILD
]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run, with or without faults."""

    program: Program
    costs: CostModel
    network: Network
    settings: RunSettings
    until_stop: bool


def random_case(seed: int) -> Case:
    """The case of a seed."""
    rng = Random(seed)
    program = random_program(rng)
    shape = program.shape
    network = random_network(rng, shape.num_ranks)
    settings = RunSettings(
        iterations=rng.randint(1, 3),
        seed=rng.randrange(1000),
        p2p=rng.choice([P2P.OVERLAPPED, P2P.POSTED, P2P.BLOCKING, P2P.BLOCKING_FUSED]),
        host_per_action_ns=rng.choice([0, 0, MS // 4, MS]),
        engine=Engine.REFERENCE,
    )
    costs = uneven(random_costs(rng, shape), random_work(rng, shape.num_microbatches))
    until_stop = rng.random() < 0.2
    if rng.random() < 0.6:
        settings = replace(settings, faults=random_faults(rng, network, shape.num_ranks))
    settings = replace(settings, pair_factor=rng.choice([1.0, 1.0, 0.75]))
    return Case(program=program, costs=costs, network=network, settings=settings, until_stop=until_stop)


def random_work(rng: Random, count: int) -> tuple[float, ...] | LogNormal | None:
    """Microbatches alike, of stated work, or of work that is drawn."""
    stated = tuple(rng.choice([0.5, 1.0, 2.0]) for _ in range(count))
    return rng.choice([None, None, stated, LogNormal(mean=1.0, std=0.5)])


def random_program(rng: Random) -> Program:
    """A built-in schedule, or any order that can run."""
    ranks, microbatches = rng.randint(1, 5), rng.randint(1, 6)
    if rng.random() < 0.5:
        scheduler = SCHEDULERS.get(rng.choice(SCHEDULES))()
        try:
            shape = scheduler.shape(ranks, microbatches)
            scheduler.configure(StageCosts.uniform(shape, hop_s=rng.choice([0.0, 0.3])))
        except UsageError:
            return random_order(rng, Shape.loop(ranks, num_microbatches=microbatches))
        assert isinstance(scheduler, StaticScheduler)
        return scheduler.program
    owners = [*range(ranks), *(rng.randrange(ranks) for _ in range(rng.randint(0, ranks)))]
    rng.shuffle(owners)
    return random_order(rng, Shape(num_microbatches=microbatches, rank_of_stage=tuple(owners)))


def random_order(rng: Random, shape: Shape) -> Program:
    """Actions one by one, each chosen among those that can run; an F may be paired with a backward that can, too."""
    last = shape.num_stages - 1
    splits = rng.choice([0.0, 0.5, 1.0])
    ready = [Action(0, Op.F, microbatch) for microbatch in range(shape.num_microbatches)]
    ranks: list[list[Action | Pair]] = [[] for _ in range(shape.num_ranks)]
    done: set[tuple[int, bool, int]] = set()  # stage, whether it is a backward, microbatch

    def run(action: Action) -> None:
        stage, op, microbatch = action
        ready.remove(action)
        if op is Op.W:
            return
        done.add((stage, op is not Op.F, microbatch))
        if op is Op.F and stage < last:
            ready.append(Action(stage + 1, Op.F, microbatch))
        if op is Op.I:
            ready.append(Action(stage, Op.W, microbatch))
        for below in (stage, stage - 1):
            gradient = below == last or (below + 1, True, microbatch) in done
            if (below, False, microbatch) in done and (below, True, microbatch) not in done and gradient:
                backward = Action(below, Op.I if rng.random() < splits else Op.B, microbatch)
                if all(each[::2] != backward[::2] or each.op in (Op.F, Op.W) for each in ready):
                    ready.append(backward)

    while ready:
        action = rng.choice(ready)
        rank = shape.rank_of_stage[action.stage]
        partners = [
            each for each in ready
            if each.op in (Op.B, Op.I) and shape.rank_of_stage[each.stage] == rank and each[::2] != action[::2]
        ]  # fmt: skip
        run(action)
        if action.op is Op.F and partners and rng.random() < 0.3:
            second = rng.choice(partners)
            run(second)
            ranks[rank].append(Pair(action, second))
        else:
            ranks[rank].append(action)
    return Program.of(shape, ranks)


def random_costs(rng: Random, shape: Shape) -> CostModel:
    """Whole and half milliseconds, so that much happens at one instant; or drawn."""
    times = [[rng.choice([0, 1, 1, 2, 2.5, 3]) / 1e3 for _ in range(shape.num_stages)] for _ in range(3)]
    if rng.random() < 0.4:
        times = [[each[0]] * shape.num_stages for each in times]
    ranks = range(shape.num_ranks)
    step = StepCosts(
        tied_reduce_s=rng.choice([0, 2e-3]),
        grad_reduce_s=rng.choice([(), tuple(rng.choice([0, 1e-3, 2e-3]) for _ in ranks)]),
        optimizer_s=rng.choice([(), tuple(rng.choice([0, 1e-3, 3e-3]) for _ in ranks)]),
        host_s=rng.choice([0, 1e-3]),
        synchronized=rng.random() < 0.5,
    )
    costs: CostModel = TableCosts.of(
        forward_s=times[0], input_backward_s=times[1], weight_backward_s=times[2],
        bytes_per_message=rng.choice([0, 500, 2_000]), step_costs=rng.choice([step, StepCosts()]),
    )  # fmt: skip
    return Jittered(inner=costs, factors=LogNormal(mean=1.0, std=0.3)) if rng.random() < 0.3 else costs


def random_network(rng: Random, ranks: int) -> Network:
    """No links, one per pair, one bus, or two per rank (out of it and into it) and a switch."""
    pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    bandwidth = rng.choice([1e6, 7e5, 4e5, float("inf")])
    kind = rng.choice(["none", "own", "bus", "nics"])
    names = {
        "none": [],
        "own": [f"{a}->{b}" for a, b in pairs],
        "bus": ["bus"],
        "nics": [*(f"out{rank}" for rank in range(ranks)), *(f"in{rank}" for rank in range(ranks)), "switch"],
    }[kind]
    noise = Exponential(mean=1e-4) if rng.random() < 0.2 else None
    stall = RareDelay(probability=0.1, extra=Exponential(mean=1e-3)) if rng.random() < 0.2 else None
    latency_s = rng.choice([0.0, 3e-4, 2e-3])

    def route(number: int, pair: tuple[int, int]) -> Route:
        links = {"none": (), "own": (number,), "bus": (0,), "nics": (pair[0], 2 * ranks, ranks + pair[1])}[kind]
        return Route(links=links, latency_s=latency_s, jitter=noise, stall=stall)

    widths = [bandwidth if name != "switch" else 1.5 * bandwidth for name in names]
    return Network(
        links=tuple(Link(name=name, bandwidth=width) for name, width in zip(names, widths, strict=True)),
        routes={pair: route(number, pair) for number, pair in enumerate(pairs)},
    )


def random_faults(rng: Random, network: Network, ranks: int) -> Faults:
    """A few faults, some at the same moment, some when something ends anyway, some for ever."""
    horizon = rng.choice([20, 60, 200]) * MS
    moments = [rng.randrange(horizon) // (MS // 2) * MS // 2 for _ in range(4)] + [0]
    links = [link.name for link in network.links] + ["nic"]
    kinds = [FaultKind.STOP, FaultKind.STOP, FaultKind.SLOW, FaultKind.LINK_SLOW, FaultKind.LINK_DOWN]
    faults = []
    for _ in range(rng.choice([1, 3, 6, 6, 150])):
        kind = rng.choice(kinds)
        start = rng.choice([*moments, rng.randrange(horizon)])
        factor = {FaultKind.SLOW: rng.choice([1.5, 3.0]), FaultKind.LINK_SLOW: rng.choice([0.1, 0.5])}.get(kind, 1.0)
        target = rng.choice(links) if kind.of_link else f"rank{rng.randrange(ranks)}"
        end = start + rng.choice([1, MS // 3, MS, 5 * MS])
        end = FOREVER if rng.random() < 0.02 else end
        faults.append(Fault(kind=kind, target=target, start_ns=start, end_ns=end, factor=factor))
    return Faults(
        plan=FaultPlan.of(faults),
        reduction_links=(("nic",), *((),) * (ranks - 1)) if rng.random() < 0.5 else (),
        link_timeout_ns=rng.choice([None, None, 4 * MS]),
    )


def outcome(case: Case) -> str:
    """How the case ended, in both engines alike. Raises AssertionError where they differ."""
    run = (case.program, case.costs, case.network, case.settings)
    try:
        expected = run_program_until_stop(*run) if case.until_stop else None
        trace = run_program(*run) if expected is None else expected.trace
    except HopsError as error:
        said = error
    else:
        said = None
    if said is not None:
        assert compiled(case) is None, f"the reference says: {said}"
        return type(said).__name__
    found = compiled(case)
    assert found is not None, "it does not end in the compiled engine"
    assert len(found.trace) == len(trace), f"{len(found.trace)} rows, expected {len(trace)}"
    for name in COLUMNS:
        differs = np.flatnonzero(getattr(found.trace, name) != getattr(trace, name))
        assert not len(differs), f"column {name} differs, first in row {differs[0]} of {len(trace)}"
    assert found.trace.meta == trace.meta, "the metadata differs"
    assert expected is None or found.interruption == expected.interruption, (
        f"interrupted by {found.interruption}, expected {expected.interruption}"
    )
    return "stopped" if found.interruption else "faulty" if case.settings.faults.plan else "whole"


def compiled(case: Case):  # noqa: ANN201
    """The case in the compiled engine; None if it does not end there."""
    costs = paired(case.costs, case.program, case.settings.pair_factor)
    prepared = EngineProgram.of(case.program, case.costs, case.settings)
    program, couples, how = prepared
    inputs = Inputs.of(program, couples, prepared.lowered(), costs, case.network, how)
    return run_compiled(inputs, until_stop=case.until_stop)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=5000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="of the first; the others follow")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    arguments = parser.parse_args()
    ended: Counter[str] = Counter()
    wrong = []
    began = time.perf_counter()
    for seed in range(arguments.seed, arguments.seed + arguments.cases):
        try:
            ended[outcome(random_case(seed))] += 1
        except AssertionError as error:
            wrong.append({"seed": seed, "difference": str(error)})
    seconds = round(time.perf_counter() - began, 1)
    if arguments.json:
        print(json.dumps({"cases": arguments.cases, "ended": ended, "different": wrong, "seconds": seconds}))
    else:
        print(
            f"{arguments.cases} cases in {seconds} s: " + ", ".join(f"{ended[name]} {name}" for name in sorted(ended))
        )
        for each in wrong:
            print(f"seed {each['seed']}: {each['difference']}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
