"""Generators belong to a purpose: what one part draws never moves what another draws."""

import subprocess
import sys

import numpy as np

from hops.distributions import Exponential, generator


def first_draws(*key):
    return generator(*key).random(5)


def test_the_same_key_gives_the_same_stream():
    assert np.array_equal(first_draws(1, "compute", 2, 3), first_draws(1, "compute", 2, 3))


def test_seed_purpose_and_every_index_change_the_stream():
    keys = [(1, "compute", 2, 3), (2, "compute", 2, 3), (1, "message", 2, 3), (1, "compute", 3, 2), (1, "compute", 2)]
    streams = {tuple(first_draws(*key)) for key in keys}
    assert len(streams) == len(keys)


def test_streams_of_neighbouring_indices_are_uncorrelated():
    sample = np.array([Exponential(mean=1.0).sample(generator(7, "compute", index), 2000) for index in range(20)])
    correlation = np.corrcoef(sample) - np.eye(20)
    assert np.abs(correlation).max() < 5 / np.sqrt(2000)


def test_the_stream_is_the_same_in_another_process_under_another_hash_seed():
    code = "from hops.distributions import generator; print(generator(1, 'compute', 2).random(5).tobytes().hex())"
    output = [
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True
        ).stdout.strip()
        for seed in ("0", "1")
    ]
    assert output == [generator(1, "compute", 2).random(5).tobytes().hex()] * 2
