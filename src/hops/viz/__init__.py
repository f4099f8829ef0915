"""Pictures of runs: timelines, comparisons and the dashboard, all functions of traces and summaries."""

from hops.viz.timeline import draw_timeline

__all__ = ["draw_timeline"]
