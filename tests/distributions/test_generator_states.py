"""Generators worked out at once are those that NumPy seeds one by one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.distributions import generator, generator_from, generator_states, generators, purpose_key


@settings(deadline=None, max_examples=50)
@given(
    seed=st.integers(0, 2**128 - 1) | st.integers(0, 100),
    purposes=st.lists(st.text(max_size=8), min_size=1, max_size=4),
    index=st.integers(0, 2**32 - 1),
)
def test_states_are_those_of_numpys_seed_sequence(seed, purposes, index):
    keys = np.asarray([(purpose_key(purpose), index) for purpose in purposes], dtype=np.uint32)
    for purpose, state in zip(purposes, generator_states(seed, keys), strict=True):
        one, other = generator_from(state), generator(seed, purpose, index)
        assert one.bit_generator.state == other.bit_generator.state
        assert (one.exponential(3.0, 5) == other.exponential(3.0, 5)).all()


@settings(deadline=None, max_examples=50)
@given(
    seed=st.integers(0, 2**130),
    indices=st.integers(1, 4).flatmap(
        lambda words: st.lists(
            st.lists(st.integers(0, 100) | st.integers(0, 2**33), min_size=words, max_size=words), max_size=20
        )
    ),
)
def test_many_generators_of_a_purpose_are_those_made_one_by_one(seed, indices):
    for rng, each in zip(generators(seed, "jitter", indices), indices, strict=True):
        assert rng.bit_generator.state == generator(seed, "jitter", *each).bit_generator.state
