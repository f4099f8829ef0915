"""Schedules: which action a rank runs next, fixed before the run (programs) or decided during it (policies)."""

from hops.schedule.base import SCHEDULERS, Scheduler, StaticScheduler, View
from hops.schedule.detect import Detected, detect
from hops.schedule.dualpipe_v import DualPipeV
from hops.schedule.evaluate import Evaluation, evaluate
from hops.schedule.freeze import freeze
from hops.schedule.from_file import FromFile
from hops.schedule.gpipe import GPipe
from hops.schedule.hops_hetero import HopsHetero
from hops.schedule.hops_hetero_adaptive import HopsHeteroAdaptive
from hops.schedule.interleaved_1f1b import Interleaved1F1B
from hops.schedule.one_f_one_b import OneFOneB
from hops.schedule.profile import Profile
from hops.schedule.program import Program, Shape
from hops.schedule.show import grid
from hops.schedule.v_half import VHalf
from hops.schedule.zb_h1 import ZBH1
from hops.schedule.zb_h2 import ZBH2
from hops.schedule.zb_or_1f1b import ZBOr1F1B
from hops.schedule.zb_v import ZBV
from hops.schedule.zero_bubble import ZeroBubble

__all__ = [
    "SCHEDULERS",
    "ZBH1",
    "ZBH2",
    "ZBV",
    "Detected",
    "DualPipeV",
    "Evaluation",
    "FromFile",
    "GPipe",
    "HopsHetero",
    "HopsHeteroAdaptive",
    "Interleaved1F1B",
    "OneFOneB",
    "Profile",
    "Program",
    "Scheduler",
    "Shape",
    "StaticScheduler",
    "VHalf",
    "View",
    "ZBOr1F1B",
    "ZeroBubble",
    "detect",
    "evaluate",
    "freeze",
    "grid",
]
