"""Schedules: which action a rank runs next, fixed before the run (programs) or decided during it (policies)."""

from hops.program.policy import View
from hops.schedules.base import SCHEDULERS, Scheduler, StaticScheduler
from hops.schedules.chimera import Chimera
from hops.schedules.dualpipe import DualPipe
from hops.schedules.dualpipe_v import DualPipeV
from hops.schedules.grouped_interleaved import GroupedInterleaved
from hops.schedules.hops_hetero import HopsHetero, HopsHeteroAdaptive
from hops.schedules.interleaved_1f1b import Combined1F1B, Interleaved1F1B
from hops.schedules.interleaved_zb import InterleavedZeroBubble
from hops.schedules.looped_bfs import LoopedBFS
from hops.schedules.plain import FromFile, GPipe, OneFOneB
from hops.schedules.seq1f1b import Seq1F1B
from hops.schedules.v_1f1b import V1F1B
from hops.schedules.v_auto import VAuto
from hops.schedules.zb_h import ZBH1, ZBH2
from hops.schedules.zb_or_1f1b import ZBOr1F1B
from hops.schedules.zb_v import ZBV, VHalf, VMin
from hops.schedules.zero_bubble import ZeroBubble
from hops.schedules.zero_bubble_paper import ZeroBubblePaper

__all__ = [
    "SCHEDULERS",
    "V1F1B",
    "ZBH1",
    "ZBH2",
    "ZBV",
    "Chimera",
    "Combined1F1B",
    "DualPipe",
    "DualPipeV",
    "FromFile",
    "GPipe",
    "GroupedInterleaved",
    "HopsHetero",
    "HopsHeteroAdaptive",
    "Interleaved1F1B",
    "InterleavedZeroBubble",
    "LoopedBFS",
    "OneFOneB",
    "Scheduler",
    "Seq1F1B",
    "StaticScheduler",
    "VAuto",
    "VHalf",
    "VMin",
    "View",
    "ZBOr1F1B",
    "ZeroBubble",
    "ZeroBubblePaper",
]
