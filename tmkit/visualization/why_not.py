"""Why not: the failures of a search, one after the other, each as the scene and configuration in which it happened.

What was in the way is red, the object that was to be handled is blue, everything else is pale. Each cause of each
action has one example, its first; causes are sorted as in the diagnosis, most frequent first.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tmkit.tamp import ActionDiagnosis, FailureCause, PlanResult
from tmkit.visualization.stage import PanelMaker, Stage
from tmkit.visualization.viewer_panels import RED, JointsPanel, PlanPanel, TreePanel, boxed

_BLUE, _ORANGE, _PALE = (0.12, 0.38, 0.95, 1.0), (0.98, 0.60, 0.15, 1.0), (0.88, 0.89, 0.90, 1.0)


@dataclass(frozen=True)
class _Case:
    """One cause of one action."""

    action: ActionDiagnosis
    cause: FailureCause


class WhyNotPanel:
    """The explanation, and the causes to click through.

    Args:
        result: a result without a plan.
        more: further panels.
    """

    def __init__(self, result: PlanResult, more: Sequence[PanelMaker] = ()) -> None:
        self._more = more
        self._result = result
        self._cases = [_Case(action, cause) for action in result.diagnosis.actions for cause in action.causes]
        self._now = next((i for i, case in enumerate(self._cases) if case.cause.example is not None), 0)

    def show_first(self, viewer: Stage) -> None:
        """Show the failure that is met most.

        Args:
            viewer: the viewer.
        """
        self._show(viewer, self._now)

    def _show(self, viewer: Stage, number: int) -> None:
        self._now = number
        example = self._cases[number].cause.example if self._cases else None
        panels: list[PanelMaker] = [self._build, TreePanel, JointsPanel, PlanPanel, *self._more]
        if example is not None:
            case = self._cases[number]
            paint = dict.fromkeys(example.scene.frame_names, _PALE)
            for name in example.scene.subtree(example.manipulator.base):
                del paint[name]  # the arm keeps its colours
            met = {name for pair in example.pairs for name in pair}
            paint |= dict.fromkeys(met, _ORANGE)
            paint |= dict.fromkeys(example.in_the_way, RED)
            paint |= {example.object: _BLUE} if example.object is not None else {}
            caption = f"{case.action.action}: {case.cause}"
            viewer.draw(example.scene, example.q, paint=paint, panels=panels, caption=caption)
        elif viewer.problem is not None:
            from tmkit.robots import find_manipulators, home_configuration

            problem = viewer.problem
            q = problem.q
            if q is None:
                q = home_configuration(find_manipulators(problem.robots, problem.scene), problem.scene)
            viewer.draw(problem.scene, problem.scene.at(q).q, panels=panels, caption=self._result.explanation)

    def _build(self, viewer: Stage, tabs: Any) -> WhyNotPanel:
        self._viewer = viewer
        gui = viewer.server.gui
        with tabs.add_tab("Why not"):
            self._text = gui.add_html("")
            row = gui.add_button_group("Cause", ("Previous", "Next"))
            row.on_click(lambda event: self._step(1 if event.target.value == "Next" else -1))
        return self

    def update(self) -> None:
        """Show the explanation and the list of causes, with the one that is drawn marked."""
        rows, before = [f"<p>{html.escape(self._result.explanation)}</p>"], None
        for number, case in enumerate(self._cases):
            if case.action is not before:
                before = case.action
                rows.append(f"<b>{html.escape(case.action.action)}</b>: {case.action.failures} failures")
            met = ", ".join(body.frame for body in case.cause.in_the_way)
            style = "background:#fed7d7" if number == self._now else ""
            faint = "" if case.cause.example is not None else ";opacity:.6"
            rows.append(
                f'<div data-tmkit-tell="cause {number}" style="cursor:pointer;padding-left:1em;{style}{faint}">'
                f"{case.cause.count} x {html.escape(str(case.cause))}"
                f"{f' [{html.escape(met)}]' if met else ''}</div>"
            )
        rows += [f"<p>{html.escape(text)}</p>" for text in self._result.diagnosis.causes]
        self._text.content = boxed("".join(rows), "70vh")

    def receive(self, word: str, rest: str) -> None:
        """Show a cause that was clicked.

        Args:
            word: ``cause``, or another word.
            rest: its number.
        """
        if word == "cause" and rest.isdigit() and int(rest) < len(self._cases):
            self._choose(int(rest))

    def _step(self, direction: int) -> None:
        numbers = [i for i, case in enumerate(self._cases) if case.cause.example is not None]
        if numbers:
            here = numbers.index(self._now) if self._now in numbers else 0
            self._choose(numbers[(here + direction) % len(numbers)])

    def _choose(self, number: int) -> None:
        if self._cases[number].cause.example is None:
            self._viewer.notify("No example", "this failure has no scene to show")
        else:
            self._show(self._viewer, number)
