"""Integrations: other tools' launches, traces and formats, translated into HOPS's own words here and nowhere else."""

from hops.integrations.base import IMPORTERS, Imported, Importer, read_trace
from hops.integrations.kineto import Kineto
from hops.integrations.megatron.importer import Megatron
from hops.integrations.own import OwnEvents
from hops.integrations.simple_csv import SimpleCsv

__all__ = ["IMPORTERS", "Imported", "Importer", "Kineto", "Megatron", "OwnEvents", "SimpleCsv", "read_trace"]
