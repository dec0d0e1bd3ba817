"""The search trees of a run, node by node: a click shows the version of the scene that the search reached."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from tmkit.graph import SceneGraph
from tmkit.tamp import SearchTree
from tmkit.visualization.stage import Panel, PanelMaker, Stage
from tmkit.visualization.viewer_panels import boxed

_MOST_ROWS = 1000


def search_panel(trees: Sequence[SearchTree], start: SceneGraph) -> PanelMaker:
    """Return what makes the panel of some search trees.

    Args:
        trees: the trees.
        start: the scene at the start.
    """

    def make(viewer: Stage, tabs: Any) -> Panel:
        return _SearchPanel(viewer, tabs, trees, start)

    return make


class _SearchPanel:
    def __init__(self, viewer: Stage, tabs: Any, trees: Sequence[SearchTree], start: SceneGraph) -> None:
        self._viewer, self._trees, self._start = viewer, trees, start
        self._now: tuple[int, int] | None = None
        with tabs.add_tab("Search"):
            self._text = viewer.server.gui.add_html("")

    def update(self) -> None:
        rows = []
        for number, tree in enumerate(self._trees):
            rows.append(f"<b>{html.escape(tree.search)}: {len(tree.nodes)} versions</b>")
            depths: list[int] = []
            for index, node in enumerate(tree.nodes[:_MOST_ROWS]):
                depths.append(0 if node.parent is None else depths[node.parent] + 1)
                style = "background:#fbd38d;" if (number, index) == self._now else ""
                style += "font-weight:600;" if node.is_in_plan else ""
                failed = "".join(f"\n{f.count} x {f.action}: {f.cause}" for f in node.failures)
                count = sum(failure.count for failure in node.failures)
                text = " ".join(node.actions) or "start"
                hint = html.escape(" ".join(node.choices) + failed)
                rows.append(
                    f'<div data-tmkit-tell="node {number} {index}" title="{hint}" '
                    f'style="cursor:pointer;padding-left:{0.8 * min(depths[-1], 20)}em;{style}">{html.escape(text)}'
                    f"{f' <span style=color:#c53030>{count} failed</span>' if count else ''}</div>"
                )
        self._text.content = boxed("".join(rows), "70vh")

    def receive(self, word: str, rest: str) -> None:
        numbers = rest.split()
        if word == "node" and len(numbers) == 2 and all(number.isdigit() for number in numbers):
            number, index = int(numbers[0]), int(numbers[1])
            if number < len(self._trees) and index < len(self._trees[number].nodes):
                self._now = (number, index)
                self._viewer.set_state(*self._trees[number].version(index, self._start))
