"""All importers of ours pass the suite that outsiders' are given."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from megatron_files import lines_of, simulated, write_run

from hops.importers.base import OwnEvents
from hops.importers.kineto import Kineto
from hops.importers.megatron.trace import Megatron
from hops.importers.simple_csv import SimpleCsv
from hops.testing.importers import ImporterConformance
from hops.trace.files import write_events
from hops.trace.trace import Stream


class TestMegatron(ImporterConformance):
    def make(self):
        return Megatron()

    def write(self, folder):
        return write_run(folder / "run", lines_of(simulated()))


class TestOwnEvents(ImporterConformance):
    def make(self):
        return OwnEvents()

    def write(self, folder):
        write_events(simulated(), folder / "run.csv.gz")
        return folder / "run.csv.gz"


class TestSimpleCsv(ImporterConformance):
    def make(self):
        return SimpleCsv()

    def write(self, folder):
        trace = simulated(schedule="zb_h1")
        rows = trace.where((trace.stream == Stream.COMPUTE) & (trace.stage >= 0))
        columns = (rows.iteration, rows.stage, rows.op, rows.microbatch, rows.start_ns, rows.end_ns)
        lines = [
            f"{iteration},{stage},{'FBIW'[op]},{microbatch},{start},{end}"
            for iteration, stage, op, microbatch, start, end in zip(*(c.tolist() for c in columns), strict=True)
        ]
        (folder / "run.csv").write_text("\n".join(["iteration,stage,op,microbatch,start_ns,end_ns", *lines]))
        return folder / "run.csv"


class TestKineto(ImporterConformance):
    def make(self):
        return Kineto()

    def write(self, folder):
        trace = simulated()
        for rank in range(trace.meta.num_ranks):
            mine = trace.where((trace.stream == Stream.COMPUTE) & (trace.stage >= 0) & (trace.rank == rank))
            columns = (mine.op, mine.microbatch, mine.start_ns, mine.duration_ns)
            events = [
                {"ph": "X", "cat": "user_annotation", "name": f"PP:{rank}{'FB'[op]}{microbatch}"}
                | {"ts": start / 1e3, "dur": duration / 1e3, "pid": 1, "tid": 1}
                for op, microbatch, start, duration in zip(*(c.tolist() for c in columns), strict=True)
            ]
            document = {"distributedInfo": {"rank": rank}, "traceEvents": events}
            (folder / f"rank{rank}.json").write_text(json.dumps(document))
        return folder
