"""Integrations: other tools' launches, traces and formats, translated into HOPS's own words here and nowhere else."""

from hops.importers.base import IMPORTERS, Imported, Importer, OwnEvents, read_trace
from hops.importers.kineto import Kineto
from hops.importers.megatron.trace import Megatron
from hops.importers.own_tracing import OwnTracing
from hops.importers.primus import Primus
from hops.importers.simple_csv import SimpleCsv

__all__ = [
    "IMPORTERS",
    "Imported",
    "Importer",
    "Kineto",
    "Megatron",
    "OwnEvents",
    "OwnTracing",
    "Primus",
    "SimpleCsv",
    "read_trace",
]
