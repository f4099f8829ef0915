"""Pictures of runs: timelines, comparisons, differences and the dashboard, all functions of traces and summaries."""

from hops.viz.canvas import prepare
from hops.viz.comparison import draw_comparison
from hops.viz.dashboard import draw_dashboard
from hops.viz.difference import draw_diff
from hops.viz.timeline import draw_timeline

__all__ = ["draw_comparison", "draw_dashboard", "draw_diff", "draw_timeline", "prepare"]
