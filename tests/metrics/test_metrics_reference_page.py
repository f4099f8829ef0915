"""docs/reference/metrics.md names every key of the summary JSON."""

import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import get_args, get_type_hints

from hops.metrics.bubble import BubbleCause
from hops.metrics.summary import Summary

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


def keys_of(kind):
    """All field names of a record and of the records inside it."""
    found = set()
    hints = get_type_hints(kind)
    for field in fields(kind):
        found.add(field.name)
        for inner in [hints[field.name], *get_args(hints[field.name])]:
            if is_dataclass(inner):
                found |= keys_of(inner)
    return found


def test_every_key_and_cause_is_documented():
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", PAGE.read_text()))))
    assert keys_of(Summary) - words == set()
    assert {cause.value for cause in BubbleCause} - words == set()


def test_keys_that_are_times_sizes_or_rates_bear_their_unit():
    bare = {"utilization", "busy_share", "mfu", "hfu", "fraction", "messages"}
    numbers = {key for key in keys_of(Summary) if key.endswith(("_ms", "_bytes", "_per_s"))}
    assert {"mean_ms", "peak_bytes", "tokens_per_s", "contention_ms", "bandwidth_bytes_per_s"} <= numbers
    assert bare <= keys_of(Summary) - numbers
