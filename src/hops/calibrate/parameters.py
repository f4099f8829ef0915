"""Named parameters with a start, bounds and a scale, as least squares wants them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hops.calibrate.observations import Floats

Bools = NDArray[np.bool_]
STEP = 1e-4  # of finite differences, in beliefs
TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One number to fit.

    Attributes:
        name: as in reports, such as `operation_s.g5.2xlarge`.
        start: what it is believed to be before any data (a count that is right is 1).
        low, high: bounds; a share of a vendor's peak is at most 1.
        belief: standard deviation of that belief, in which the pull back to `start` is measured.
    """

    name: str
    start: float
    low: float
    high: float
    belief: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """A solution: values and standard errors by name, and the matrix of correlations."""

    parameters: tuple[Parameter, ...]
    values: Floats
    errors: Floats
    correlations: Floats
    residuals: Floats

    def __getitem__(self, name: str) -> float:
        return float(self.values[[each.name for each in self.parameters].index(name)])

    def inseparable(self, threshold: float = 0.9) -> list[tuple[str, str, float]]:
        """Pairs that the data cannot tell apart: correlation beyond the threshold."""
        names = [each.name for each in self.parameters]
        return [
            (names[i], names[j], float(self.correlations[i, j]))
            for i in range(len(names))
            for j in range(i)
            if abs(self.correlations[i, j]) > threshold
        ]

    def undetermined(self) -> list[str]:
        """Parameters whose standard error is as large as what was believed before: the data say nothing of them."""
        return [
            each.name for each, error in zip(self.parameters, self.errors, strict=True) if error > 0.8 * each.belief
        ]

    def at_bound(self) -> list[str]:
        """Parameters that would go beyond their bounds."""
        return [
            each.name
            for each, value in zip(self.parameters, self.values, strict=True)
            if min(value - each.low, each.high - value) < 1e-3 * (each.high - each.low)
        ]


def solve(
    parameters: Sequence[Parameter],
    residuals: Callable[[Mapping[str, float]], Floats],
    *,
    pull: float,
    soft: float,
    rows_of: Callable[[str], Bools] | None = None,
) -> Fit:
    """Least squares with bounds; residuals beyond `soft` count linearly (soft L1), beliefs pull with weight `pull`.

    `rows_of` tells for each parameter which residuals it can move, None: all; parameters of one kind that move
    different ones are then varied together. Deterministic. Needs scipy (extra `calibrate`).
    """
    from scipy.optimize import least_squares

    start, low, high, belief = (
        np.array([getattr(each, name) for each in parameters]) for name in ("start", "low", "high", "belief")
    )
    names = [each.name for each in parameters]

    def data(x: Floats) -> Floats:
        return residuals(dict(zip(names, x.tolist(), strict=True)))

    def with_beliefs(x: Floats) -> Floats:
        return np.concatenate([data(x), pull * (x - start) / belief])

    def jacobian(x: Floats) -> Floats:
        slopes = _slopes(data, x, np.where(x + STEP * belief <= high, STEP, -STEP) * belief, colours)
        return np.concatenate([slopes, np.diag(pull / belief)])

    colours = _colours(names, rows_of, len(data(start)))
    solution = least_squares(
        with_beliefs, start, jac=jacobian, bounds=(low, high), loss="soft_l1", f_scale=soft, x_scale=belief,
        ftol=TOLERANCE, xtol=TOLERANCE,
    )  # fmt: skip
    errors, correlations = _uncertainty(solution.fun, jacobian(solution.x), belief)
    return Fit(
        parameters=tuple(parameters),
        values=solution.x,
        errors=errors,
        correlations=correlations,
        residuals=solution.fun[: -len(names)],
    )


Colour = list[tuple[int, Bools]]  # parameters that are varied together, each with the residuals it moves


def _colours(names: Sequence[str], rows_of: Callable[[str], Bools] | None, size: int) -> list[Colour]:
    every = np.ones(size, dtype=np.bool_)
    if rows_of is None:
        return [[(place, every)] for place in range(len(names))]
    kinds: dict[str, Colour] = {}
    for place, name in enumerate(names):
        rows = rows_of(name)
        kind = name if rows.all() else name.split(".")[0]
        kinds.setdefault(kind, []).append((place, rows))
    return list(kinds.values())


def _slopes(data: Callable[[Floats], Floats], x: Floats, steps: Floats, colours: Sequence[Colour]) -> Floats:
    """Forward differences, shape (residuals, parameters)."""
    base = data(x)
    slopes = np.zeros((len(base), len(x)))
    for colour in colours:
        moved = x.copy()
        for place, _ in colour:
            moved[place] += steps[place]
        change = data(moved) - base
        for place, rows in colour:
            slopes[rows, place] = change[rows] / steps[place]
    return slopes


def _uncertainty(residuals: Floats, jacobian: Floats, belief: Floats) -> tuple[Floats, Floats]:
    """Standard errors and correlations at a solution, in first order; a belief counts as an observation of its own.

    Computed in units of the beliefs, since parameters differ by many orders of magnitude.
    """
    count = len(belief)
    variance = float(np.sum(residuals[:-count] ** 2)) / max(1, len(residuals) - 2 * count)
    scaled = jacobian[:-count] * belief / np.sqrt(max(variance, 1e-30))
    covariance = np.linalg.inv(scaled.T @ scaled + np.eye(count))
    spread = np.sqrt(np.diag(covariance))
    return spread * belief, covariance / np.outer(spread, spread)
