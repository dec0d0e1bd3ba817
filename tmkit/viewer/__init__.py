"""Viewing: plots of what the library finds.

Drawing needs the extra ``viewer``; without it each function here says so in one line, and all else works.
"""

from tmkit.viewer.region_picture import draw_region, require_plots

__all__ = ["draw_region", "require_plots"]
