"""Searches for the program with the shortest makespan, and certifies how far from the limit it is."""

from hops.schedule.search.driver import Certificate, Result, iterations_for, search, warm_up
from hops.schedule.search.profiles import NamedProfile, profile_from_json, read_profiles
from hops.schedule.search.report import search_report
from hops.schedule.search.robust import Choice, Noise, choose
from hops.schedule.search.versus import HETERO16, Versus, read_hetero16, versus, versus_report

__all__ = [
    "HETERO16",
    "Certificate",
    "Choice",
    "NamedProfile",
    "Noise",
    "Result",
    "Versus",
    "choose",
    "iterations_for",
    "profile_from_json",
    "read_hetero16",
    "read_profiles",
    "search",
    "search_report",
    "versus",
    "versus_report",
    "warm_up",
]
