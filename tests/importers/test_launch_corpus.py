"""Launch scripts in every shell form that people use: each becomes the spec that it describes."""

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hops.importers.megatron.launch import read_launch
from hops.importers.megatron.source import Asked
from hops.importers.megatron.spec import spec_text
from hops.spec.load import loads

FOLDER = Path(__file__).parent / "launches"
EXPECTED = YAML(typ="safe", pure=True).load((FOLDER / "expected.yaml").read_text())


def test_the_corpus_is_whole():
    files = {file.name for file in FOLDER.iterdir()} - {"expected.yaml", "sourced_sizes.env"}
    assert files == set(EXPECTED)
    assert len([name for name in files if name.endswith(".sh")]) >= 30


@pytest.mark.parametrize("name", EXPECTED)
def test_a_launch_becomes_the_spec_that_it_describes(name):
    wanted = dict(EXPECTED[name])
    asked = Asked(**{"devices": ["h100"], **wanted.pop("options", {})})
    spec = loads(spec_text(read_launch(FOLDER / name, asked=asked)))
    pipeline, model = spec.pipeline, spec.pipeline.model
    found = {
        "layers": model.layers,
        "hidden": model.hidden,
        "heads": model.heads,
        "ranks": len(spec.hardware.ranks()),
        "microbatches": pipeline.microbatches,
        "size": pipeline.microbatch_size,
        "copies": spec.optimizer.data_parallel,
        "hosts": len(spec.hardware.hosts()),
    }
    assert found == {key: wanted[key] for key in found}
    assert pipeline.precision == wanted.get("precision", "bf16")
    assert pipeline.recompute == wanted.get("recompute", "none")
    even = [model.layers // len(spec.hardware.ranks())] * len(spec.hardware.ranks())
    assert list(pipeline.partition) == wanted.get("partition", even)
