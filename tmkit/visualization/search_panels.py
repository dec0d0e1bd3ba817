"""Panels of the viewer for a search: its failures and its trees.

Each failure is drawn as the scene and configuration in which it occurred. Obstacles are red, the
object of the action is blue, and all other bodies are pale. The rejected grasps and placements are
listed below, and a click draws one. The search trees are listed by node, and a click draws the
version of the scene.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import partial
from typing import Any

from tmkit.graph import SceneGraph
from tmkit.tamp import PlanResult, SearchTree
from tmkit.tamp.diagnosis.diagnosis import ActionDiagnosis, FailureCause, FailureExample
from tmkit.visualization.stage import Panel, PanelMaker, Stage
from tmkit.visualization.viewer_panels import RED, JointsPanel, PlanPanel, TreePanel, scroll_box

_OBJECT_COLOR = (0.12, 0.38, 0.95, 1.0)
"""Colour of the object of the action."""

_CONTACT_COLOR = (0.98, 0.60, 0.15, 1.0)
"""Colour of other bodies in a collision."""

_PALE_COLOR = (0.88, 0.89, 0.90, 1.0)
"""Colour of all other bodies."""

_MAX_ROWS = 1000
"""Largest number of rows of a search tree."""


def show_failure(
    viewer: Stage, result: PlanResult, more: Sequence[PanelMaker] = (), *, number: int = 0
) -> None:
    """Draw an example of a failure, with the explanation and a list of rejected attempts.

    Args:
        viewer: the viewer.
        result: result of a search without a plan.
        more: makers of further panels.
        number: number of the example.
    """
    cases = _cases(result)
    maker = partial(_FailurePanel, result=result, more=more, number=number)
    panels: list[PanelMaker] = [maker, TreePanel, JointsPanel, PlanPanel, *more]
    if cases:
        action, cause, example = cases[number]
        paint = dict.fromkeys(example.scene.frame_names, _PALE_COLOR)
        for name in example.scene.subtree(example.robot.base):
            del paint[name]  # The arm keeps its colours.
        paint |= dict.fromkeys((name for pair in example.pairs for name in pair), _CONTACT_COLOR)
        paint |= dict.fromkeys(example.in_the_way, RED)
        paint |= {example.object: _OBJECT_COLOR} if example.object is not None else {}
        choice = f", {example.choice}" if example.choice else ""
        caption = f"{action.action}{choice}: {cause}"
        viewer.draw(example.scene, example.q, paint=paint, panels=panels, caption=caption)
    elif viewer.problem is not None:
        scene, q = viewer.problem.scene, viewer.problem.q
        q = scene.at(viewer.home(scene) if q is None else q).q
        viewer.draw(scene, q, panels=panels, caption=result.explanation)


def _cases(result: PlanResult) -> list[tuple[ActionDiagnosis, FailureCause, FailureExample]]:
    """Return the examples of all failures, with their actions and causes."""
    return [
        (a, cause, example)
        for a in result.diagnosis.actions
        for cause in a.causes
        for example in cause.examples
    ]


class _FailurePanel(Panel):
    """Explanation of a failed search, and a list of causes."""

    def __init__(
        self,
        viewer: Stage,
        tabs: Any,
        *,
        result: PlanResult,
        more: Sequence[PanelMaker],
        number: int,
    ) -> None:
        self._result, self._more = result, more
        self._number, self._cases = number, _cases(result)
        super().__init__(viewer, tabs)

    def _build(self, gui: Any, tabs: Any) -> None:
        with tabs.add_tab("Why not"):
            self._text = gui.add_html("")
            row = gui.add_button_group("Rejected", ("Previous", "Next"))
            row.on_click(lambda event: self._step(1 if event.target.value == "Next" else -1))

    def update(self) -> None:
        """Show the explanation and the list of causes, with the current one marked."""
        rows, number = [f"<p>{html.escape(self._result.explanation)}</p>"], 0
        for action in self._result.diagnosis.actions:
            rows.append(f"<b>{html.escape(action.action)}</b>: {action.failures} failures")
            for cause in action.causes:
                bodies = ", ".join(body.frame for body in cause.in_the_way)
                is_open = number <= self._number < number + len(cause.examples)
                first = number if cause.examples else None
                rows.append(self._row(first, f"{cause.count} x {cause}", bodies, depth=1))
                for index, example in enumerate(cause.examples if is_open else (), start=number):
                    text = example.choice or "the state in which it happened"
                    rows.append(self._row(index, text, ", ".join(example.in_the_way), depth=2))
                number += len(cause.examples)
        rows += [f"<p>{html.escape(text)}</p>" for text in self._result.diagnosis.causes]
        self._text.content = scroll_box("".join(rows), "70vh")

    def _row(self, number: int | None, text: str, bodies: str, *, depth: int) -> str:
        """Return a row of HTML, which draws an example by number when it is clicked."""
        is_current = depth == 2 and number == self._number
        style = f"padding-left:{depth}em;" + ("background:#fed7d7;" if is_current else "")
        click = f'data-tmkit-tell="rejected {number}"' if number is not None else ""
        style += "cursor:pointer" if number is not None else "opacity:.6"
        text += f" [{bodies}]" if bodies else ""
        return f'<div {click} style="{style}">{html.escape(text)}</div>'

    def receive(self, word: str, rest: str) -> None:
        if word == "rejected" and rest.isdigit() and int(rest) < len(self._cases):
            show_failure(self._viewer, self._result, self._more, number=int(rest))

    def _step(self, direction: int) -> None:
        if self._cases:
            number = (self._number + direction) % len(self._cases)
            show_failure(self._viewer, self._result, self._more, number=number)


def search_panel(trees: Sequence[SearchTree], start: SceneGraph) -> PanelMaker:
    """Return the maker of the panel of some search trees."""
    return partial(_SearchPanel, trees=trees, start=start)


class _SearchPanel(Panel):
    """Panel of the search trees of a run."""

    def __init__(
        self, viewer: Stage, tabs: Any, *, trees: Sequence[SearchTree], start: SceneGraph
    ) -> None:
        self._trees, self._start = trees, start
        self._current: tuple[int, int] | None = None
        super().__init__(viewer, tabs)

    def _build(self, gui: Any, tabs: Any) -> None:
        with tabs.add_tab("Search"):
            self._text = gui.add_html("")

    def update(self) -> None:
        rows = []
        for number, tree in enumerate(self._trees):
            rows.append(f"<b>{html.escape(tree.search)}: {len(tree.nodes)} versions</b>")
            depths: list[int] = []
            for index, node in enumerate(tree.nodes[:_MAX_ROWS]):
                depths.append(0 if node.parent is None else depths[node.parent] + 1)
                style = "background:#fbd38d;" if (number, index) == self._current else ""
                style += "font-weight:600;" if node.is_in_plan else ""
                indent = 0.8 * min(depths[-1], 20)
                failures = "".join(f"\n{f.count} x {f.action}: {f.cause}" for f in node.failures)
                count = sum(failure.count for failure in node.failures)
                count_html = f" <span style=color:#c53030>{count} failed</span>" if count else ""
                text = html.escape(" ".join(node.actions) or "start")
                hint = html.escape(" ".join(node.choices) + failures)
                rows.append(
                    f'<div data-tmkit-tell="node {number} {index}" title="{hint}" '
                    f'style="cursor:pointer;padding-left:{indent}em;{style}">{text}{count_html}</div>'
                )
        self._text.content = scroll_box("".join(rows), "70vh")

    def receive(self, word: str, rest: str) -> None:
        numbers = rest.split()
        if word == "node" and len(numbers) == 2 and all(number.isdigit() for number in numbers):
            number, index = int(numbers[0]), int(numbers[1])
            if number < len(self._trees) and index < len(self._trees[number].nodes):
                self._current = (number, index)
                self._viewer.set_state(*self._trees[number].version(index, self._start))
