"""What a fleet makes of microbatches of unequal work."""

from hops.build.setup import build
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
