"""The live viewer: scenes, plans and failures in a browser, to be turned, moved and planned again."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.data import is_built_in
from tmkit.errors import ArgumentError
from tmkit.graph import SceneGraph
from tmkit.plans import Plan
from tmkit.tamp import PlanningProblem, PlanResult
from tmkit.visualization.plan_timeline import plan_timeline
from tmkit.visualization.search_panel import search_panel
from tmkit.visualization.side_by_side import side_by_side
from tmkit.visualization.stage import PanelMaker, Shown, Stage
from tmkit.visualization.viewer_panels import FactsPanel, JointsPanel, PlanPanel, TreePanel
from tmkit.visualization.why_not import WhyNotPanel

if TYPE_CHECKING:
    from tmkit.visualization.scene_sources import SceneSource


class Viewer(Stage):
    """A viewer in a browser; a context manager.

    Args:
        shown: what to show first: a scene, a problem, a plan, or the result of planning.
        q: (n_joints,) configuration of a scene, radians or metres; zero by default.
        problem: the problem that a result belongs to: its domain gives the facts, and it is planned again.
        host: the address that the server listens at; by default only this machine can connect.
        port: the port; 0 for any free one.

    Raises:
        OutputError: the port is in use.
        MissingExtraError: viser is not installed.
        ArgumentError: something else is to be shown.
    """

    def __init__(
        self, shown: Shown | None = None, *, q: ArrayLike | None = None, problem: PlanningProblem | None = None,
        host: str = "127.0.0.1", port: int = 8080,
    ) -> None:  # fmt: skip
        super().__init__(host=host, port=port)
        self._follower: threading.Thread | None = None
        try:
            if shown is not None:
                self.show(shown, q=q, problem=problem)
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{self._server.get_host()}:{self._server.get_port()}"

    def wait(self) -> None:
        """Return when the viewer is closed, from another thread or by an interrupt."""
        while not self._closed.wait(0.5):
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Viewer({self.url}{', closed' if self._closed.is_set() else ''})"

    def show(self, shown: Shown, *, q: ArrayLike | None = None, problem: PlanningProblem | None = None) -> None:
        """Show something else.

        Args:
            shown: a scene, a problem, a plan, or the result of planning: its plan, else why there is none.
            q: (n_joints,) configuration of a scene; zero by default.
            problem: the problem that a result belongs to.
        """
        more: list[PanelMaker] = []
        if isinstance(shown, PlanResult):
            start = shown.plan if shown.plan is not None else problem or self.problem
            if start is not None and shown.search_trees:
                more = [search_panel(shown.search_trees, start.scene)]
            shown = shown.plan if shown.plan is not None else shown
        if isinstance(shown, Plan):
            built_in = is_built_in(shown.domain, "domains") and not shown.semantics  # a file's own code is never run
            own = PlanningProblem(shown.scene, shown.q, domain=shown.domain, goal=shown.goal, robots=shown.robots)
            self.problem = problem or (own if built_in else None)
            timeline = plan_timeline(shown)
            self.draw(shown.scene, shown.q, timeline=timeline, panels=[*self._usual_panels(), *more])
        elif isinstance(shown, PlanResult):
            self.problem = problem or self.problem
            WhyNotPanel(shown, more).show_first(self)
        elif isinstance(shown, PlanningProblem):
            self.problem = shown
            self._show_scene(shown.scene, shown.q if q is None else q)
        elif isinstance(shown, SceneGraph):
            self.problem = problem
            self._show_scene(shown, q)
        else:
            raise ArgumentError(f"show: a scene, problem, plan or result can be shown, not {type(shown).__name__}")

    def _show_scene(self, scene: SceneGraph, q: ArrayLike | None) -> None:
        if q is None and self.problem is not None:
            from tmkit.robots import find_manipulators, home_configuration

            q = home_configuration(find_manipulators(self.problem.robots, scene), scene)
        q = scene.at(scene.zero_configuration() if q is None else q).q
        self.draw(scene, q, panels=self._usual_panels())

    def _usual_panels(self) -> list[PanelMaker]:
        return [TreePanel, JointsPanel, *([FactsPanel] if self.problem is not None else []), PlanPanel]

    def compare(self, before: SceneGraph, after: SceneGraph, *, q: ArrayLike | None = None) -> None:
        """Show two versions side by side: what was added is green, removed red, changed orange.

        Args:
            before: the version on the left.
            after: the version on the right.
            q: (n_joints,) configuration of both; zero by default.
        """
        both = side_by_side(before, after, q=q)
        self.draw(both.scene, both.q, paint=both.paint, caption=both.caption, panels=[TreePanel])

    def follow(self, source: SceneSource, *, rate: float = 30.0) -> None:
        """Show the scene of a source as it changes, in a thread of its own, until it ends or the viewer is closed.

        Args:
            source: anything with a method ``current``.
            rate: updates a second at most.
        """

        def run() -> None:
            last: object = None
            while not self._closed.is_set() and threading.current_thread() is self._follower:
                began = time.monotonic()
                state = source.current()
                if state is None:
                    break
                if state is not last:
                    last = state
                    self._update(*state)
                self._closed.wait(max(0.001, 1.0 / rate - (time.monotonic() - began)))
            if isinstance(last, tuple) and not self._closed.is_set():
                self.set_state(*last)

        self._follower = threading.Thread(target=run, name="tmkit viewer", daemon=True)
        self._follower.start()

    def _update(self, scene: SceneGraph, q: NDArray[np.float64]) -> None:
        """Show a state without its panels; drawn anew only where frames came or went."""
        with self._lock:
            if self._model is None or scene.frame_names != self._model.frames:
                self.draw(scene, q, panels=[TreePanel])
            self._scene, self._q = scene, q
            self.send_poses(scene.at(q).poses)
