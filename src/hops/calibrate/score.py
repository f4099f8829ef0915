"""Scores: predictions against what was measured, per run and over runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hops.calibrate.outcome import Outcome

MIN_RANKS = 3  # a rank correlation of two ranks says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScore:
    """One run, predicted and measured. Errors are prediction over measurement - 1, in percent."""

    name: str
    predicted: Outcome
    measured: Outcome

    @property
    def throughput_pct(self) -> float:
        return _percent(self.predicted.throughput, self.measured.throughput)

    @property
    def p50_pct(self) -> float:
        return _percent(self.predicted.p50_iteration_s, self.measured.p50_iteration_s)

    @property
    def latency_pct(self) -> float:
        return _percent(self.predicted.latency_s, self.measured.latency_s)

    @property
    def bubble_pp(self) -> float:
        return 100 * (self.predicted.bubble - self.measured.bubble)

    @property
    def forward_pct(self) -> tuple[float, ...]:
        pairs = zip(self.predicted.forward_s, self.measured.forward_s, strict=True)
        return tuple(_percent(*pair) for pair in pairs)

    @property
    def backward_pct(self) -> tuple[float, ...]:
        pairs = zip(self.predicted.backward_s, self.measured.backward_s, strict=True)
        return tuple(_percent(*pair) for pair in pairs)

    @property
    def terms(self) -> dict[str, tuple[float, float]]:
        """Parts of the mean iteration, predicted and measured, in seconds; they add up to it.

        F and B are those of the rank that is busiest in the measurement; what else the pipeline takes is messages
        and waiting.
        """
        rank = int(np.argmax(self.measured.busy_s))
        both = (self.predicted, self.measured)
        forward, backward = [each.forward_busy_s[rank] for each in both], [each.backward_busy_s[rank] for each in both]
        rest = [each.pipeline_s - f - b for each, f, b in zip(both, forward, backward, strict=True)]
        return {
            "forward": (forward[0], forward[1]),
            "backward": (backward[0], backward[1]),
            "messages_and_waits": (rest[0], rest[1]),
            "reduce": (both[0].reduce_s, both[1].reduce_s),
            "optimizer": (both[0].step_s, both[1].step_s),
            "gap": (both[0].gap_s, both[1].gap_s),
        }

    @property
    def spearman(self) -> float | None:
        """Rank correlation of the ranks' utilisation; None with fewer than three ranks."""
        if len(self.measured.busy_s) < MIN_RANKS:
            return None
        return spearman(self.predicted.utilization, self.measured.utilization)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Over runs: mean absolute errors, the largest of throughput, mean rank correlation (None without such runs)."""

    throughput_mape_pct: float
    throughput_max_pct: float
    iteration_p50_mape_pct: float
    bubble_mae_pp: float
    utilization_spearman: float | None
    forward_mape_pct: float
    backward_mape_pct: float
    latency_mape_pct: float


def suite(scores: Sequence[RunScore]) -> Suite:
    """Figures over runs; F and B over (run, stage)."""
    correlations = [score.spearman for score in scores if score.spearman is not None]
    throughput = [abs(score.throughput_pct) for score in scores]
    return Suite(
        throughput_mape_pct=float(np.mean(throughput)),
        throughput_max_pct=max(throughput),
        iteration_p50_mape_pct=_mean(score.p50_pct for score in scores),
        bubble_mae_pp=_mean(score.bubble_pp for score in scores),
        utilization_spearman=float(np.mean(correlations)) if correlations else None,
        forward_mape_pct=_mean(each for score in scores for each in score.forward_pct),
        backward_mape_pct=_mean(each for score in scores for each in score.backward_pct),
        latency_mape_pct=_mean(score.latency_pct for score in scores),
    )


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Pearson correlation of ranks, ties at their mean rank (Spearman 1904); 0 where one side has ties only."""
    ranks = [_ranks(np.asarray(values, dtype=np.float64)) for values in (one, other)]
    if min(np.ptp(each) for each in ranks) == 0:
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0, ties at their mean."""
    below = (values[:, None] > values[None, :]).sum(axis=1)
    equal = (values[:, None] == values[None, :]).sum(axis=1)
    return np.asarray(below + (equal - 1) / 2)


def _percent(predicted: float, measured: float) -> float:
    return 100 * (predicted / measured - 1)


def _mean(values: "object") -> float:
    return float(np.mean(np.abs(np.fromiter(values, dtype=np.float64))))  # type: ignore[call-overload]
