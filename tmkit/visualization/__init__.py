"""Visualization: plots of results, pictures of relations and scenes.

Drawing needs the extra ``viewer``; without it each function raises a :class:`~tmkit.errors.MissingExtraError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.visualization.drawing import Area, Cross, Dot, Drawing, Label, Line, Mark, save_drawings
    from tmkit.visualization.graph_picture import Refused, draw_semantics_graph, semantics_graph_drawing, try_edge
    from tmkit.visualization.region_picture import draw_region, require_plots
    from tmkit.visualization.relation_picture import draw_relations, relation_drawing
    from tmkit.visualization.semantics_picture import draw_semantics, semantics_drawing
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Area",
    "Cross",
    "Dot",
    "Drawing",
    "Label",
    "Line",
    "Mark",
    "Refused",
    "draw_region",
    "draw_relations",
    "draw_semantics",
    "draw_semantics_graph",
    "relation_drawing",
    "require_plots",
    "save_drawings",
    "semantics_drawing",
    "semantics_graph_drawing",
    "try_edge",
]
