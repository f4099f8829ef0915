"""The Megatron-LM reader under its name among the importers."""

from dataclasses import replace
from pathlib import Path

from hops.api import build, loads
from hops.errors import HopsError
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
    """What the launch says of sizes, and of peak rates where the catalog has the devices; memory was not measured."""
    sizes = RunFacts(
        samples_per_microbatch=launch.micro_batch_size,
        tokens_per_microbatch=launch.micro_batch_size * launch.seq_length,
        data_parallel=launch.data_parallel,
    )
    try:
        expected = build(loads(spec_text(launch), name=launch.name)).facts
    except HopsError:  # a launch that HOPS cannot simulate can still be read
        return sizes
    return replace(sizes, flop_per_microbatch=expected.flop_per_microbatch, peak_flop_per_s=expected.peak_flop_per_s)
