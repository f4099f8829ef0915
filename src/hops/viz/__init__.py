"""Pictures of runs: timelines, comparisons and the dashboard, all functions of traces and summaries."""

from hops.viz.comparison import draw_comparison
from hops.viz.dashboard import draw_dashboard
from hops.viz.timeline import draw_timeline

__all__ = ["draw_comparison", "draw_dashboard", "draw_timeline"]
