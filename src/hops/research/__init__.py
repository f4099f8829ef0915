"""The calibration loop as a tool: observe the error, try a hypothesis, keep it if the gates hold, log it either way."""

from hops.research.folder import Data, Folder, Limits, ResearchSettings
from hops.research.journal import Journal, render_log
from hops.research.loop import LoopEnd, initialise, run_loop
from hops.research.observe import observe, render
from hops.research.scores import Scores, Tolerances, scores_of

__all__ = [
    "Data",
    "Folder",
    "Journal",
    "Limits",
    "LoopEnd",
    "ResearchSettings",
    "Scores",
    "Tolerances",
    "initialise",
    "observe",
    "render",
    "render_log",
    "run_loop",
    "scores_of",
]
