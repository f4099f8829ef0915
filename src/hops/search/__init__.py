"""The best order for given stage costs."""

from hops.search.robust import Noise, RobustChoice, choose
from hops.search.search import Certificate, Incumbent, Result, iterations_for, judge, search, search_report, warm_up

__all__ = [
    "Certificate",
    "Incumbent",
    "Noise",
    "Result",
    "RobustChoice",
    "choose",
    "iterations_for",
    "judge",
    "search",
    "search_report",
    "warm_up",
]
