"""Profiles that several tests of bound and search share."""

import json

import numpy as np
import pytest
from hypothesis import strategies as st
from search_exact import OPTIMA, tiny
from shared_data import FACTS

from hops.compiled import available
from hops.timing.examples import profile_from_json, read_profiles

needs_numba = pytest.mark.skipif(not available(), reason="takes minutes without numba")


def optima():
    """(name, profile, proved optimum in ns) of every tiny instance."""
    for line in OPTIMA.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        named = profile_from_json(OPTIMA.name, entry["profile"])
        yield named.name, named.profile, entry["optimum_ms"] * 1_000_000


def random_profile(seed):
    """A tiny random profile: one or two stages per rank, half of them short of memory."""
    value = tiny(seed)
    return profile_from_json(value["name"], value).profile


profiles = st.integers(1000, 5000).map(random_profile)


def pipelines(every=1):
    """The shared heterogeneous pipelines."""
    return read_profiles(FACTS / "pipelines.jsonl")[::every]


def hetero16(*, fused_is_sum=False, memory=None):
    """The 16 pipelines of the original HOPS; activation 2 bytes, of which W keeps 1; memory `p`, `1f1b` or None."""
    values = json.loads((FACTS / "hetero16.json").read_text(encoding="utf-8"))["pipelines"]
    for name, value in values.items():
        keys = ("microbatches", "forward_ms", "input_backward_ms", "weight_backward_ms", "fused_backward_ms", "hop_ms")
        stages = len(value["forward_ms"])
        limits = {None: [None] * stages, "p": [2 * stages] * stages, "1f1b": [2 * (stages - s) for s in range(stages)]}
        profile = {"name": name, **{key: value[key] for key in keys}}
        if fused_is_sum:
            both = zip(value["input_backward_ms"], value["weight_backward_ms"], strict=True)
            profile["fused_backward_ms"] = np.round([i + w for i, w in both], 6).tolist()
        profile |= {"activation_bytes": [2] * stages, "kept_for_weight_bytes": [1] * stages}
        yield profile_from_json(name, profile | {"memory_bytes": limits[memory]})
