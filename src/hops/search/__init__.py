"""The best order for given stage costs."""

from hops.search.robust import Noise, RobustChoice, choose
from hops.search.search import Certificate, Result, iterations_for, search, search_report, warm_up

__all__ = [
    "Certificate",
    "Noise",
    "Result",
    "RobustChoice",
    "choose",
    "iterations_for",
    "search",
    "search_report",
    "warm_up",
]
