"""Live viewer: scenes, plans and failures in a browser, with editing and planning.

A viewer draws the content that a program or notebook passes to it, or follows a changing scene.
"""

from __future__ import annotations

import html
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.argument_errors import with_keyword_hints
from tmkit._support.closing import Closing
from tmkit._support.data import is_built_in
from tmkit.errors import ArgumentError, ConfigurationError
from tmkit.graph import SceneGraph
from tmkit.plans import Plan
from tmkit.spatial import Pose
from tmkit.spatial.plain import configuration_numbers
from tmkit.tamp import PlanningProblem, PlanResult
from tmkit.tamp.domains.loading import load_planning_domain
from tmkit.visualization.page import page_html, plan_timeline
from tmkit.visualization.scene_model import RIGHT_DIRECTION, Color, bounds, scene_model
from tmkit.visualization.search_panels import search_panel, show_failure
from tmkit.visualization.stage import PanelMaker, Stage
from tmkit.visualization.viewer_panels import (
    PALE,
    FactsPanel,
    JointsPanel,
    PlanPanel,
    TreePanel,
    VersionsPanel,
    are_drawn_differently,
    compare_versions,
    latest_configuration,
)

if TYPE_CHECKING:
    from tmkit.store import Store

Content = SceneGraph | Plan | PlanResult | PlanningProblem
"""Types that a viewer shows."""

_IFRAME = '<iframe srcdoc="{}" width="100%" height="{}" style="border:1px solid #ddd"></iframe>'
"""HTML of a page in a notebook, with its source and its height."""

_QUIET_TIME = 0.3
"""Time without a change after which the panels show the state of a followed scene [s]."""

_RELATIVE_DISTANCE = 1.05
"""Distance of two compared scenes in units of their width."""

SceneState = tuple[SceneGraph, NDArray[np.float64]]
"""Version of a scene and its configuration (n_joints,) [rad or m]."""


@runtime_checkable
class SceneSource(Protocol):
    """Source of a changing scene; see :meth:`tmkit.visualization.Viewer.follow`."""

    def current(self) -> SceneState | None:
        """Return the current scene with its configuration, or None after the last change."""
        ...


@runtime_checkable
class ChangingScene(Protocol):
    """Scene that changes from version to version, such as a :class:`tmkit.world.LiveScene`."""

    @property
    def scene(self) -> SceneGraph:
        """Current version."""
        ...


class _VersionSource:
    """Source with the versions of a changing scene."""

    def __init__(self, world: ChangingScene, q: ArrayLike | None) -> None:
        self._world, self._q = world, q
        self._state: SceneState | None = None

    def current(self) -> SceneState:
        """Return the current version, with the latest joint values."""
        scene = self._world.scene
        if self._state is None or scene is not self._state[0]:
            self._state = scene, latest_configuration(scene, self._q)
        return self._state


class LatestScene:
    """Source for programs that push scenes. The last scene is the current one.

    :meth:`put` fits the argument ``on_state`` of :func:`tmkit.simulate`, and is thread-safe.

    Args:
        scene: scene at the start.
        q: (n_joints,) configuration.
    """

    def __init__(self, scene: SceneGraph, q: NDArray[np.float64]) -> None:
        self._lock = threading.Lock()
        self._state: SceneState | None = (scene, q)

    def put(self, scene: SceneGraph, q: NDArray[np.float64]) -> None:
        """Set the current scene.

        Args:
            scene: the scene.
            q: (n_joints,) configuration.
        """
        with self._lock:
            self._state = (scene, q)

    def end(self) -> None:
        """End the source."""
        with self._lock:
            self._state = None

    def current(self) -> SceneState | None:
        """Return the last scene, or None after the end."""
        with self._lock:
            return self._state


class Viewer(Stage, Closing):
    """Viewer in a browser, and a context manager.

    Args:
        content: scene, problem, plan or planning result to show first.
        q: (n_joints,) configuration of a scene [rad or m]. Defaults to zeros.
        problem: problem of a planning result, for facts and further planning.
        host: address of the server. By default, only this machine can connect.
        port: port of the server, or 0 for any free one.

    Raises:
        ConfigurationError: if the port is outside 0 to 65535.
        OutputError: if the port is in use.
        MissingExtraError: if viser is not installed.
        ArgumentError: if ``content`` has another type.
    """

    def __init__(
        self,
        content: Content | None = None,
        *,
        q: ArrayLike | None = None,
        problem: PlanningProblem | None = None,
        host: str = "127.0.0.1",
        port: int = 8080,
    ) -> None:
        super().__init__(host=host, port=port)
        self._follower: threading.Thread | None = None
        self._versions: VersionsPanel | None = None
        try:
            if content is not None:
                self.show(content, q=q, problem=problem)
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://{self._server.get_host()}:{self._server.get_port()}"

    def wait(self) -> None:
        """Wait until the viewer is closed, from another thread or by an interrupt."""
        while not self._closed.wait(0.5):
            pass

    def __repr__(self) -> str:
        return f"Viewer({self.url}{', closed' if self._closed.is_set() else ''})"

    def show(
        self,
        content: Content,
        *,
        q: ArrayLike | None = None,
        problem: PlanningProblem | None = None,
    ) -> None:
        """Replace the content of the viewer.

        Args:
            content: scene, problem, plan, or planning result. A result shows its plan, or the
                causes of the failure.
            q: (n_joints,) configuration of a scene. Defaults to zeros.
            problem: problem of a planning result.

        Raises:
            ArgumentError: if ``content`` has another type.
        """
        self._end_versions()
        more: list[PanelMaker] = []
        if isinstance(content, PlanResult):
            start = content.plan if content.plan is not None else problem or self.problem
            if start is not None and content.search_trees:
                more = [search_panel(content.search_trees, start.scene)]
            content = content.plan if content.plan is not None else content
        if isinstance(content, Plan):
            self._show_plan(content, problem, more)
        elif isinstance(content, PlanResult):
            self.problem = problem or self.problem
            show_failure(self, content, more)
        elif isinstance(content, PlanningProblem):
            self.problem = content
            self._show_scene(content.scene, content.q if q is None else q)
        elif isinstance(content, SceneGraph):
            self.problem = problem
            self._show_scene(content, q)
        else:
            raise ArgumentError(
                f"show: expected a scene, problem, plan or result, got {type(content).__name__}"
            )

    def _show_plan(
        self, plan: Plan, problem: PlanningProblem | None, more: list[PanelMaker]
    ) -> None:
        """Draw the start of a plan with its time line."""
        # Semantics from the plan's file are never executed.
        is_trusted = is_built_in(plan.domain, "domains") and not plan.semantics
        plan_problem = PlanningProblem(
            plan.scene, plan.q, domain=plan.domain, goal=plan.goal, robots=plan.robots
        )
        self.problem = problem or (plan_problem if is_trusted else None)
        domain = None
        if problem is not None:
            domain = load_planning_domain(
                problem.domain, robot=plan.robots, semantics=problem.semantics
            )
        timeline = plan_timeline(plan, domain=domain)
        panels = [*self._standard_panels(), *more]
        self.draw(plan.scene, plan.q, timeline=timeline, panels=panels)

    def _show_scene(self, scene: SceneGraph, q: ArrayLike | None) -> None:
        """Draw a scene at a configuration, or with the arms of the problem ready."""
        if q is None:
            q = self.home(scene) if self.problem is not None else scene.zero_configuration()
        self.draw(scene, scene.at(q).q, panels=self._standard_panels())

    def _standard_panels(self) -> list[PanelMaker]:
        """Return the makers of the panels of a scene or plan."""
        facts = [FactsPanel] if self.problem is not None else []
        return [TreePanel, JointsPanel, *facts, PlanPanel]

    def compare(self, before: SceneGraph, after: SceneGraph, *, q: ArrayLike | None = None) -> None:
        """Draw two versions side by side: added frames green, removed red, changed orange.

        The caption lists the differences.

        Args:
            before: version on the left.
            after: version on the right.
            q: (n_joints,) configuration of both. Defaults to zeros.
        """
        self._end_versions()
        q_before = before.zero_configuration() if q is None else configuration_numbers(before, q)
        values = dict(zip(before.joint_names, q_before.tolist(), strict=True))
        low, high = bounds(scene_model(before), before.at(q_before).poses)
        width = float((high - low) @ np.abs(RIGHT_DIRECTION))
        shift = Pose(_RELATIVE_DISTANCE * width * RIGHT_DIRECTION)
        both = (
            SceneGraph()
            .mount(before, "world", prefix="before/")
            .mount(after, "world", prefix="after/", pose=shift)
        )
        joints = {
            f"{side}/{name}": value
            for side in ("before", "after")
            for name, value in values.items()
        }
        paints, description = compare_versions(before, after)
        paint: dict[str, Color] = dict.fromkeys(both.frame_names, PALE)
        for side, colors in zip(("before", "after"), paints, strict=True):
            paint |= {f"{side}/{name}": color for name, color in colors.items()}
        existing = {name: value for name, value in joints.items() if name in both.joint_names}
        q_both = both.configuration(existing)
        caption = f"Left: before. Right: after. {description}"
        self.draw(both, q_both, paint=paint, caption=caption, panels=[TreePanel])

    def show_versions(
        self, store: Store, version: str = "main", *, q: ArrayLike | None = None
    ) -> None:
        """Draw the versions of a store with a slider, and the changes since the previous version.

        Added frames are green and changed ones orange. The caption also lists removed frames.

        Args:
            store: the store.
            version: branch, identifier or its prefix. The slider has all versions that led to it.
            q: (n_joints,) configuration. Defaults to the latest stamped values of joints, or zeros.

        Raises:
            UnknownNameError: if there is no such version.
            StoreDamageError: if the version cannot be read.
        """
        self.problem = None
        log = [*store.log(version)][::-1]
        self._end_versions()
        self._versions = VersionsPanel(self, store, log, q)

    def _end_versions(self) -> None:
        """Remove the slider over versions, if any."""
        if self._versions is not None:
            self._versions.remove()
            self._versions = None

    def follow(
        self, source: SceneSource | ChangingScene, *, q: ArrayLike | None = None, rate: float = 30.0
    ) -> None:
        """Draw the scene of a source as it changes, in a thread, until the source or viewer ends.

        Args:
            source: a :class:`tmkit.world.LiveScene`, or an object with a method ``current``.
            q: (n_joints,) values of the joints of a live scene without stamped values. Defaults to
                zeros.
            rate: largest number of updates for each second [Hz].

        Raises:
            ArgumentError: if the source has another type.
        """
        if not isinstance(source, SceneSource):
            if not isinstance(source, ChangingScene):
                raise ArgumentError(
                    "follow: expected a LiveScene or a source with current(), got"
                    f" {type(source).__name__}"
                )
            source = _VersionSource(source, q)
        self._follower = threading.Thread(
            target=self._run_follower, args=(source, rate), name="tmkit viewer", daemon=True
        )
        self._follower.start()

    def _run_follower(self, source: SceneSource, rate: float) -> None:
        """Draw the states of a source until it ends, the viewer closes or another is followed."""
        last: object = None
        change_time, has_current_panels = 0.0, True
        while not self._closed.is_set() and threading.current_thread() is self._follower:
            start_time = time.monotonic()
            state = source.current()
            if state is None:
                break
            if state is not last:
                last, change_time, has_current_panels = state, start_time, False
                self._update(*state)
            elif not has_current_panels and start_time - change_time > _QUIET_TIME:
                self.set_state(*state, sends=False)
                has_current_panels = True
            self._closed.wait(max(0.001, 1.0 / rate - (time.monotonic() - start_time)))
        if isinstance(last, tuple) and not self._closed.is_set():
            self.set_state(*last)

    def _update(self, scene: SceneGraph, q: NDArray[np.float64]) -> None:
        """Send a state without an update of the panels. Redraw it if frames or shapes differ."""
        with self._lock:
            if self._closed.is_set():
                return
            is_new = self._model is None or scene.frame_names != self._model.frames
            if is_new or are_drawn_differently(self._scene, scene):
                self.draw(scene, q, panels=[TreePanel], keeps_view=True)
            self._scene, self._q = scene, q
            self.send_poses(scene.at(q).poses)


@with_keyword_hints
def show(
    content: Content,
    *,
    q: ArrayLike | None = None,
    problem: PlanningProblem | None = None,
    port: int = 0,
    opens: bool = True,
) -> Viewer:
    """Open a viewer in the browser, and return it without waiting.

    ``viewer.wait()`` keeps a script running, and ``viewer.close()`` ends the viewer.

    Args:
        content: scene, problem, plan or planning result. A result without a plan shows the likely
            cause.
        q: (n_joints,) configuration of a scene [rad or m]. Defaults to zeros.
        problem: problem of a planning result, for facts and further planning.
        port: port of the page. Defaults to any free one.
        opens: whether to open a browser.

    Raises:
        MissingExtraError: if viser is not installed.
        ConfigurationError: if the port is outside 0 to 65535.
        OutputError: if the port is in use.
        ArgumentError: if ``content`` has another type.
    """
    import webbrowser

    viewer = Viewer(content, q=q, problem=problem, port=port)
    if opens:
        webbrowser.open(viewer.url)
    return viewer


def enable_notebook(*, height: int = 480) -> None:
    """Show scenes, plans and solved results in three dimensions in the output of a notebook.

    Each output is a separate page of one to three megabytes in the notebook. Results without a plan
    keep their text.

    Args:
        height: height of an output [pixels].

    Raises:
        ConfigurationError: if IPython does not run this code, so that there is no notebook.
    """
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        raise ConfigurationError(
            "enable_notebook: this is not a notebook; use tmkit.show(...) or tmkit.save_html(...)"
        )
    formatter = shell.display_formatter.formatters["text/html"]

    def frame_html(content: Plan | SceneGraph) -> str:
        return _IFRAME.format(html.escape(page_html(content, autoplay=False)), height)

    def result_html(result: PlanResult) -> str:
        return frame_html(result.plan) if result.plan is not None else result._repr_html_()

    formatter.for_type(SceneGraph, frame_html)
    formatter.for_type(Plan, frame_html)
    formatter.for_type(PlanResult, result_html)
