"""Reports: summaries as terminal screens and files."""

from hops.report.comparison import render_comparison
from hops.report.overview import render_summary, write_chrome, write_summary
from hops.report.schedule import grid
from hops.report.warnings import warnings

__all__ = ["grid", "render_comparison", "render_summary", "warnings", "write_chrome", "write_summary"]
