"""Colours stay apart in grey, and numbers can be read on them."""

from itertools import combinations

import pytest
from matplotlib.colors import to_rgb

from hops.program.action import ACTION_OPS, Op
from hops.viz.style import CAUSES, EXPOSED_KINDS, MEMORY_PARTS, OPS


def luminance(colour):
    """Relative luminance (WCAG 2.1)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def lightness(colour):
    """CIE L*, 0 to 100."""
    return 116 * luminance(colour) ** (1 / 3) - 16


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("a", "b"), list(combinations(ACTION_OPS, 2)))
def test_actions_differ_in_lightness_so_that_they_stay_apart_in_grey_and_for_the_colour_blind(a, b):
    assert abs(lightness(OPS[a].fill) - lightness(OPS[b].fill)) >= 15


@pytest.mark.parametrize("op", ACTION_OPS)
def test_numbers_contrast_with_their_boxes_as_accessibility_rules_ask(op):
    assert contrast(OPS[op].fill, OPS[op].text) >= 4.5


def test_every_op_has_a_style_and_those_that_are_no_actions_are_hatched():
    assert set(OPS) == set(Op)
    assert {op for op in Op if OPS[op].hatch} == set(Op) - set(ACTION_OPS)


@pytest.mark.parametrize("parts", [CAUSES, EXPOSED_KINDS, MEMORY_PARTS], ids=["causes", "exposed", "memory"])
def test_parts_that_are_stacked_differ_in_lightness_or_hatch(parts):
    for a, b in combinations(parts.values(), 2):
        assert abs(lightness(a.fill) - lightness(b.fill)) >= 10 or a.hatch != b.hatch
