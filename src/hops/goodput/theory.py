"""What theory says of checkpoints and availability, for comparison with what is simulated."""

from math import exp, expm1, sqrt


def young_interval(pause_s: float, mtbf_s: float) -> float:
    """Training between checkpoints that loses least: sqrt(2 C M).

    Young 1974, "A first order approximation to the optimum checkpoint interval", CACM 17(9), equation 3.

    Args:
        pause_s: seconds of training lost to one checkpoint (C).
        mtbf_s: mean seconds between failures of the whole job (M).
    """
    return sqrt(2 * pause_s * mtbf_s)


def daly_interval(pause_s: float, mtbf_s: float) -> float:
    """The same to higher order: sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C, and M if C >= 2 M.

    Daly 2006, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22, equation 37.
    """
    if pause_s >= 2 * mtbf_s:
        return mtbf_s
    part = pause_s / (2 * mtbf_s)
    return sqrt(2 * pause_s * mtbf_s) * (1 + sqrt(part) / 3 + part / 9) - pause_s


def goodput_of_interval(interval_s: float, *, pause_s: float, mtbf_s: float, restart_s: float = 0.0) -> float:
    """Expected goodput of a job that is interrupted at random, at a constant rate.

    A segment of `interval_s` training and a checkpoint needs M e^(R/M) (e^((tau + C)/M) - 1) seconds (Daly 2006,
    equation 13, without its approximation of the last segment), so goodput is tau over that. Recovery (R) can be
    interrupted, too.
    """
    return interval_s / (mtbf_s * exp(restart_s / mtbf_s) * expm1((interval_s + pause_s) / mtbf_s))


def availability(mtbf_s: float, mttr_s: float) -> float:
    """Long-run share of time in which a device works: MTBF / (MTBF + MTTR)."""
    return mtbf_s / (mtbf_s + mttr_s)
