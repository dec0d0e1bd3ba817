"""The names that `tmkit.visualization` exports."""

from tmkit.visualization.graph_picture import draw_semantics_graph as draw_semantics_graph
from tmkit.visualization.page import save_html as save_html
from tmkit.visualization.search_tree_picture import draw_search_tree as draw_search_tree
from tmkit.visualization.viewer import (
    LatestScene as LatestScene,
    Viewer as Viewer,
    enable_notebook as enable_notebook,
    show as show,
)
