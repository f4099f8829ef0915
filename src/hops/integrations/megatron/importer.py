"""The Megatron-LM reader under its name among the importers."""

from dataclasses import replace
from pathlib import Path

from hops.api import build, loads
from hops.integrations.base import IMPORTERS, Imported, Importer
from hops.integrations.lines import plain_name
from hops.integrations.megatron.launch import Launch
from hops.integrations.megatron.spec import spec_text
from hops.integrations.megatron.trace import FOLDER, read_run
from hops.metrics import RunFacts


@IMPORTERS.register("megatron")
class Megatron(Importer):
    """A run folder (run.yaml beside megatron_trace/), or a folder of rank<r>.jsonl."""

    def recognises(self, path: Path) -> bool:
        if not path.is_dir():
            return False
        return (path / FOLDER).is_dir() or any(plain_name(file).endswith(".jsonl") for file in path.iterdir())

    def read(self, path: Path, *, lenient: bool = False) -> Imported:
        run = read_run(path, lenient=lenient)
        facts = RunFacts() if run.launch is None else launch_facts(run.launch)
        return Imported(trace=run.trace, facts=facts, dropped=run.dropped)


def launch_facts(launch: Launch) -> RunFacts:
    """What the launch says of sizes and peak rates; memory was not measured, so what HOPS expects of it stays out."""
    facts = build(loads(spec_text(launch), name=launch.name)).facts
    return replace(facts, warmup_iterations=0, stage_memory=(), memory_bytes=())
