"""Panels of a search: why there is no plan, and the versions of the scene that were reached.

Why not: the failures of a search, one after the other, each as the scene and configuration in which it happened. What
was in the way is red, the object that was to be handled is blue, everything else is pale. Each cause of each action has
one example, its first; causes are sorted as in the diagnosis, most frequent first.

The search trees are shown node by node: a click shows the version of the scene.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import partial
from typing import Any

from tmkit.graph import SceneGraph
from tmkit.tamp import ActionDiagnosis, FailureCause, PlanResult, SearchTree
from tmkit.visualization.stage import Panel, PanelMaker, Stage
from tmkit.visualization.viewer_panels import RED, JointsPanel, PlanPanel, TreePanel, boxed

_BLUE, _ORANGE, _PALE = (0.12, 0.38, 0.95, 1.0), (0.98, 0.60, 0.15, 1.0), (0.88, 0.89, 0.90, 1.0)
_MOST_ROWS = 1000


def show_failure(
    viewer: Stage, result: PlanResult, more: Sequence[PanelMaker] = (), *, number: int | None = None
) -> None:
    """Draw a failure of a search, with the explanation and the causes to click through.

    Args:
        viewer: the viewer.
        result: a result without a plan.
        more: further panels.
        number: of the cause; the one that is met most by default.
    """
    cases = _cases(result)
    if number is None:
        number = next((i for i, (_, cause) in enumerate(cases) if cause.example is not None), 0)
    maker = partial(_WhyNotPanel, result=result, more=more, now=number)
    panels: list[PanelMaker] = [maker, TreePanel, JointsPanel, PlanPanel, *more]
    example = cases[number][1].example if cases else None
    if example is not None:
        action, cause = cases[number]
        paint = dict.fromkeys(example.scene.frame_names, _PALE)
        for name in example.scene.subtree(example.manipulator.base):
            del paint[name]  # the arm keeps its colours
        paint |= dict.fromkeys((name for pair in example.pairs for name in pair), _ORANGE)
        paint |= dict.fromkeys(example.in_the_way, RED)
        paint |= {example.object: _BLUE} if example.object is not None else {}
        viewer.draw(example.scene, example.q, paint=paint, panels=panels, caption=f"{action.action}: {cause}")
    elif viewer.problem is not None:
        scene, q = viewer.problem.scene, viewer.problem.q
        q = scene.at(viewer.home(scene) if q is None else q).q
        viewer.draw(scene, q, panels=panels, caption=result.explanation)


def _cases(result: PlanResult) -> list[tuple[ActionDiagnosis, FailureCause]]:
    return [(action, cause) for action in result.diagnosis.actions for cause in action.causes]


class _WhyNotPanel(Panel):
    """The explanation, and the causes to click through."""

    def __init__(self, viewer: Stage, tabs: Any, *, result: PlanResult, more: Sequence[PanelMaker], now: int) -> None:
        self._result, self._more, self._now, self._cases = result, more, now, _cases(result)
        super().__init__(viewer, tabs)

    def _build(self, gui: Any, tabs: Any) -> None:
        with tabs.add_tab("Why not"):
            self._text = gui.add_html("")
            row = gui.add_button_group("Cause", ("Previous", "Next"))
            row.on_click(lambda event: self._step(1 if event.target.value == "Next" else -1))

    def update(self) -> None:
        """Show the explanation and the list of causes, with the one that is drawn marked."""
        rows, before = [f"<p>{html.escape(self._result.explanation)}</p>"], None
        for number, (action, cause) in enumerate(self._cases):
            if action is not before:
                before = action
                rows.append(f"<b>{html.escape(action.action)}</b>: {action.failures} failures")
            met = ", ".join(body.frame for body in cause.in_the_way)
            style = "background:#fed7d7" if number == self._now else ""
            faint = "" if cause.example is not None else ";opacity:.6"
            rows.append(
                f'<div data-tmkit-tell="cause {number}" style="cursor:pointer;padding-left:1em;{style}{faint}">'
                f"{cause.count} x {html.escape(str(cause))}"
                f"{f' [{html.escape(met)}]' if met else ''}</div>"
            )
        rows += [f"<p>{html.escape(text)}</p>" for text in self._result.diagnosis.causes]
        self._text.content = boxed("".join(rows), "70vh")

    def receive(self, word: str, rest: str) -> None:
        if word == "cause" and rest.isdigit() and int(rest) < len(self._cases):
            self._choose(int(rest))

    def _step(self, direction: int) -> None:
        numbers = [i for i, (_, cause) in enumerate(self._cases) if cause.example is not None]
        if numbers:
            here = numbers.index(self._now) if self._now in numbers else 0
            self._choose(numbers[(here + direction) % len(numbers)])

    def _choose(self, number: int) -> None:
        if self._cases[number][1].example is None:
            self._viewer.notify("No example", "this failure has no scene to show")
        else:
            show_failure(self._viewer, self._result, self._more, number=number)


def search_panel(trees: Sequence[SearchTree], start: SceneGraph) -> PanelMaker:
    """Return what makes the panel of some search trees.

    Args:
        trees: the trees.
        start: the scene at the start.
    """
    return partial(_SearchPanel, trees=trees, start=start)


class _SearchPanel(Panel):
    """The search trees of a run."""

    def __init__(self, viewer: Stage, tabs: Any, *, trees: Sequence[SearchTree], start: SceneGraph) -> None:
        self._trees, self._start = trees, start
        self._now: tuple[int, int] | None = None
        super().__init__(viewer, tabs)

    def _build(self, gui: Any, tabs: Any) -> None:
        with tabs.add_tab("Search"):
            self._text = gui.add_html("")

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
