"""Visualization: scenes, plans and failures in a browser; plots of results, pictures of relations and scenes.

:func:`show` opens a :class:`Viewer`, :func:`save_html` writes a page that needs no server. Plots and pictures need the
extra ``viewer``; without it each of their functions raises a :class:`~tmkit.errors.MissingExtraError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.visualization.drawing import (
        Area as Area,
        Cross as Cross,
        Dot as Dot,
        Drawing as Drawing,
        Label as Label,
        Line as Line,
        Mark as Mark,
        require_plots as require_plots,
        save_drawings as save_drawings,
    )
    from tmkit.visualization.graph_picture import (
        Refused as Refused,
        draw_semantics_graph as draw_semantics_graph,
        semantics_graph_drawing as semantics_graph_drawing,
        try_edge as try_edge,
    )
    from tmkit.visualization.page import save_html as save_html
    from tmkit.visualization.region_picture import draw_region as draw_region
    from tmkit.visualization.relation_picture import (
        draw_relations as draw_relations,
        draw_semantics as draw_semantics,
        relation_drawing as relation_drawing,
        semantics_drawing as semantics_drawing,
    )
    from tmkit.visualization.search_tree_picture import (
        draw_search_tree as draw_search_tree,
        search_tree_drawing as search_tree_drawing,
    )
    from tmkit.visualization.viewer import (
        ChangingScene as ChangingScene,
        LatestScene as LatestScene,
        SceneSource as SceneSource,
        Viewer as Viewer,
        enable_notebook as enable_notebook,
        show as show,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
