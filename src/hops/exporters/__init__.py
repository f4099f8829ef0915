"""Exporters: a spec's program and layout in the words of the runtimes that train, here and nowhere else."""

from hops.exporters.base import EXPORTERS, Exported, Exporter, Launchable, launchable
from hops.exporters.megatron import MegatronFlags
from hops.exporters.torch_schedule import ProgramText, TorchSchedule
from hops.exporters.torchtitan import Torchtitan

__all__ = [
    "EXPORTERS",
    "Exported",
    "Exporter",
    "Launchable",
    "MegatronFlags",
    "ProgramText",
    "TorchSchedule",
    "Torchtitan",
    "launchable",
]
