"""What a fleet makes of microbatches of unequal work."""

from types import SimpleNamespace

import pytest

from hops.build.setup import build
from hops.fleet.result import _tokens_per_iteration
from hops.fleet.variants import _with_microbatches
from hops.spec.load import loads

SPEC = """
pipeline:
  stage_times: {forward: 2 ms, backward: 4 ms}
  microbatches: 3
  microbatch_work: [1, 2, 3]
hardware: {nodes: [{devices: [h100, h100]}]}
"""


def test_more_microbatches_take_their_work_from_the_list_again():
    assert _with_microbatches(loads(SPEC), 5).pipeline.microbatch_work == (1, 2, 3, 1, 2)
    assert _with_microbatches(loads(SPEC), 2).pipeline.microbatch_work == (1, 2)
    assert build(_with_microbatches(loads(SPEC), 5)).expected.work.tolist() == [1, 2, 3, 1, 2]


@pytest.mark.parametrize(("work", "tokens"), [("1", 6000), ("[1, 2, 3]", 12000), ("2.5", 15000)])
def test_tokens_of_an_iteration_count_the_work(work, tokens):
    """Two copies of three microbatches of 1000 tokens for work 1."""
    overrides = ["pipeline.sequence_length=1000", f"pipeline.microbatch_work={work}"]
    study = SimpleNamespace(
        setup=build(loads(SPEC, overrides=overrides)), fleet=SimpleNamespace(microbatches=3, replicas=2)
    )
    assert _tokens_per_iteration(study) == tokens
