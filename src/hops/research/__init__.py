"""The calibration loop as a tool: observe the error, try a hypothesis, keep it if the gates hold, log it either way."""

from hops.research.errors import GateError, ResearchError
from hops.research.folder import Folder
from hops.research.gates import Tolerances
from hops.research.journal import Journal
from hops.research.log import render_log
from hops.research.loop import Outcome, run_loop
from hops.research.observe import observe, render
from hops.research.scores import Scores, scores_of
from hops.research.settings import Data, Limits, Settings
from hops.research.start import initialise

__all__ = [
    "Data",
    "Folder",
    "GateError",
    "Journal",
    "Limits",
    "Outcome",
    "ResearchError",
    "Scores",
    "Settings",
    "Tolerances",
    "initialise",
    "observe",
    "render",
    "render_log",
    "run_loop",
    "scores_of",
]
