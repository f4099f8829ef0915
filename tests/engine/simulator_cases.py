"""Random cases in the tests' own simulator and in both engines.

    python tests/engine/simulator_cases.py --cases 2000

A case is a random program, durations that vary by 5 % or not at all, hops, host time, and a way to send; both engines
must start and end every action at the same nanosecond, or all must stall. Exits with 1 if any differs.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from benchmarks.differential import random_program
from event_simulator import simulate

from hops.compiled import available
from hops.cost.table import TableCosts
from hops.engine.settings import P2P, Engine, RunSettings
from hops.engine.simulate import run_program
from hops.errors import StalledError
from hops.hardware.network import Network
from hops.program.action import ACTION_OPS, Op
from hops.trace.trace import Stream

ENGINES = (Engine.REFERENCE, Engine.COMPILED) if available() else (Engine.REFERENCE,)


def outcome(seed, program=None, way=None, vary=None):
    """Check a case; how it ended. Raises AssertionError where an engine differs."""
    rng = Random(seed)
    program = program or random_program(rng)
    way = way or rng.choice([P2P.OVERLAPPED, P2P.POSTED, P2P.BLOCKING, P2P.BLOCKING_FUSED])
    hop, host = rng.choice([0, 1, 300, 2500]), rng.choice([0, 0, 200])
    vary = rng.choice([0.0, 0.05]) if vary is None else vary
    shape = program.shape
    base = np.array([[[rng.choice([1000, 1500, 2000])] for _ in ACTION_OPS] for _ in shape.rank_of_stage])
    noise = [[[1 + vary * rng.uniform(-1, 1) for _ in range(shape.num_microbatches)] for _ in range(4)] for _ in base]
    durations = np.rint(base * np.array(noise)).astype(np.int64)
    found = simulate(program, durations, hop, host, way)
    costs = TableCosts(times_s=durations / 1e9, sent_bytes=np.zeros((len(base), 4), dtype=np.int64))
    network = Network.uniform(shape.num_ranks, latency_s=hop / 1e9)
    for engine in ENGINES:
        how = RunSettings(p2p=way, host_per_action_ns=host, engine=engine)
        assert in_engine(program, costs, network, how) == found, f"seed {seed}, {way}, {engine}\n{program}"
    return "stalls" if found is None else "runs"


def in_engine(program, costs, network, how):
    try:
        trace = run_program(program, costs, network, how)
    except StalledError:
        return None
    rows = trace.where(trace.stream == Stream.COMPUTE)
    columns = zip(rows.stage, rows.op, rows.microbatch, rows.start_ns, rows.end_ns, strict=True)
    return {(stage, Op(op), microbatch): (start, end) for stage, op, microbatch, start, end in columns}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=2000)
    ended, different = Counter(), []
    for number in range(parser.parse_args().cases):
        try:
            ended[outcome(number)] += 1
        except AssertionError as error:
            different.append(number)
            print(error)
    print(f"{dict(ended)}, different: {different}")
    sys.exit(bool(different))
