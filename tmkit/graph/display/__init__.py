"""What people see of a scene: its tree as text, as HTML for notebooks, and as a drawing; groups too, as a graph.

The first three show the same outline of a scene: the top of the tree first, no more frames than stay readable, and a
count of what is omitted. Nothing recurses, and names are shown as what they are, never as markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.graph.display.html import tree_html as tree_html
    from tmkit.graph.display.outline import tree_text as tree_text
    from tmkit.graph.display.svg import graph_svg as graph_svg, tree_svg as tree_svg
else:
    __getattr__, __dir__ = lazy_names(__name__)
