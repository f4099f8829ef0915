"""Integrations: other tools' launches, traces and formats, translated into HOPS's own words here and nowhere else."""
