"""Recompute saves memory: full needs no more than selective, but for what one layer takes while it is made again."""

from itertools import product

import pytest

from hops.build.run import simulate, summarize
from hops.spec.load import loads

S, B, H, HEADS = 1024, 1, 256, 8
LAYER = 32 * S * B * H  # of the classic shape, scores and input left out
SCORES = 5 * HEADS * S * S * B
SPEC = f"""
simulation: {{iterations: 1}}
pipeline:
  model: {{layers: LAYERS, hidden: {H}, heads: {HEADS}, vocab: 1000, max_positions: {S}, tied: false}}
  schedule: SCHEDULE
  microbatches: 8
  attention: unfused
  recompute: RECOMPUTE
hardware: {{nodes: [{{devices: [{{type: h200, count: 4}}]}}]}}
optimizer: {{enabled: false}}
"""


def activations(recompute, schedule, layers):
    """The most that activations take, by rank, workspace included."""
    text = SPEC.replace("RECOMPUTE", recompute).replace("SCHEDULE", schedule).replace("LAYERS", str(layers))
    return [rank.memory.activations_bytes for rank in summarize(simulate(loads(text))).ranks]


@pytest.mark.parametrize(("schedule", "layers"), [*product(["1f1b", "zb_v", "zb_h1", "v_half"], [8, 16])])
def test_full_recompute_needs_at_most_the_layer_being_made_more_than_selective(schedule, layers):
    """What awaits W is the same under both; one layer at a time is made again, and a rank works at one stage."""
    full, selective = (activations(each, schedule, layers) for each in ("full", "selective"))
    assert all(one <= other + LAYER for one, other in zip(full, selective, strict=True))
    if schedule in ("1f1b", "zb_v"):
        assert all(one <= other for one, other in zip(full, selective, strict=True))


def test_1f1b_by_hand():
    """Rank r holds 4 - r microbatches of 2 layers, and makes one layer or one layer's scores again."""
    full, selective = (activations(each, "1f1b", 8) for each in ("full", "selective"))
    for rank in (1, 2):
        held = (4 - rank) * 2 * S * B * H
        assert full[rank] == held * 2 + LAYER + SCORES
        assert selective[rank] == held * 34 + SCORES
