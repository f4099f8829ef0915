"""Scenarios: runs of one launch, up to labels and repeats; folds never split them."""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from hops.api.inputs import RunInputs


def scenario(inputs: RunInputs) -> str:
    """The same text for launches that are the same up to the run's name and the order's label."""
    spec = inputs.spec
    return "\n".join(
        section.model_dump_json(exclude_defaults=True) for section in (spec.pipeline, spec.hardware, spec.optimizer)
    )


def digest(inputs: RunInputs) -> str:
    """A short name of the scenario, by which a profile remembers what it was fitted on."""
    return sha256(scenario(inputs).encode()).hexdigest()[:12]


def folds(inputs: Sequence[RunInputs], number: int, seed: int) -> list[int]:
    """The fold of every run: scenarios are shuffled with the seed and dealt to `number` folds."""
    names = list(dict.fromkeys(scenario(each) for each in inputs))
    order = np.random.default_rng(seed).permutation(len(names))
    fold_of = {names[place]: turn % number for turn, place in enumerate(order)}
    return [fold_of[scenario(each)] for each in inputs]
