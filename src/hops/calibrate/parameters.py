"""Named parameters with a start, bounds and a scale, as least squares wants them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hops.calibrate.timings import Floats


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
    jacobian_groups: Sequence[Sequence[str]] | None = None,
) -> Fit:
    """Least squares with bounds; residuals beyond `soft` count linearly (soft L1), beliefs pull with weight `pull`.

    `jacobian_groups`: sets of parameters that can be moved together, since each residual depends on one of a set at
    most. Deterministic. Needs scipy (extra `calibrate`).
    """
    from scipy.optimize import least_squares

    start, low, high, belief = (
        np.array([getattr(each, name) for each in parameters]) for name in ("start", "low", "high", "belief")
    )
    names = [each.name for each in parameters]

    def all_residuals(x: Floats) -> Floats:
        return np.concatenate([residuals(dict(zip(names, x.tolist(), strict=True))), pull * (x - start) / belief])

    solution = least_squares(
        all_residuals, start, bounds=(low, high), loss="soft_l1", f_scale=soft, x_scale=belief, method="trf"
    )
    data = len(solution.fun) - len(names)
    spread = float(np.sum(solution.fun[:data] ** 2)) / max(1, data)
    scaled = solution.jac / np.sqrt(max(spread, 1e-30))
    scaled[data:] = np.diag(1 / belief)  # a belief is worth one observation of its own spread
    covariance = np.linalg.pinv(scaled.T @ scaled)
    errors = np.sqrt(np.diag(covariance))
    return Fit(
        parameters=tuple(parameters),
        values=solution.x,
        errors=errors,
        correlations=covariance / np.outer(errors, errors),
        residuals=solution.fun[:data],
    )
