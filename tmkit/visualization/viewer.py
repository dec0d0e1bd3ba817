"""The live viewer: scenes, plans and failures in a browser, to be turned, moved and planned again.

A viewer shows what a program or notebook hands to it, or follows a source of scenes that change.
"""

from __future__ import annotations

import html
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.closing import Closing
from tmkit._support.data import is_built_in
from tmkit.errors import ArgumentError, ConfigurationError
from tmkit.graph import SceneGraph
from tmkit.plans import Plan
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_numbers
from tmkit.tamp import PlanningProblem, PlanResult
from tmkit.visualization.page import page_html, plan_timeline
from tmkit.visualization.scene_model import TO_THE_RIGHT, Color, bounds, scene_model
from tmkit.visualization.search_panels import search_panel, show_failure
from tmkit.visualization.stage import PanelMaker, Stage
from tmkit.visualization.viewer_panels import (
    PALE,
    FactsPanel,
    JointsPanel,
    PlanPanel,
    TreePanel,
    VersionsPanel,
    changes,
    latest_configuration,
    looks_differ,
)

if TYPE_CHECKING:
    from tmkit.store import Store

Shown = SceneGraph | Plan | PlanResult | PlanningProblem
"""What a viewer can show."""
_FRAME = '<iframe srcdoc="{}" width="100%" height="{}" style="border:1px solid #ddd"></iframe>'
_QUIET = 0.3  # seconds without a change after which the panels show what was followed
_GAP = 1.05  # distance of the two, in widths

SceneState = tuple[SceneGraph, NDArray[np.float64]]
"""A version of a scene and its configuration (n_joints,), radians and metres."""


@runtime_checkable
class SceneSource(Protocol):
    """Anything that has a scene which changes; see :meth:`tmkit.visualization.Viewer.follow`."""

    def current(self) -> SceneState | None:
        """Return the scene as it is now with its configuration; None once there will be no more."""
        ...


@runtime_checkable
class ChangingScene(Protocol):
    """A scene that changes from version to version, such as a :class:`tmkit.world.LiveScene`."""

    @property
    def scene(self) -> SceneGraph:
        """The version of now."""
        ...


class _Changing:
    """The versions of a scene that changes, as a source."""

    def __init__(self, world: ChangingScene, q: ArrayLike | None) -> None:
        self._world, self._q = world, q
        self._state: SceneState | None = None

    def current(self) -> SceneState:
        scene = self._world.scene
        if self._state is None or scene is not self._state[0]:
            self._state = scene, latest_configuration(scene, self._q)
        return self._state


class LatestScene:
    """A source for programs that push: the newest scene that was put is the current one.

    :meth:`put` fits the argument ``on_state`` of :func:`tmkit.simulate`. Any thread may put.

    Args:
        scene: the scene at the start.
        q: (n_joints,) its configuration.
    """

    def __init__(self, scene: SceneGraph, q: NDArray[np.float64]) -> None:
        self._lock = threading.Lock()
        self._state: SceneState | None = (scene, q)

    def put(self, scene: SceneGraph, q: NDArray[np.float64]) -> None:
        """Make a scene the current one.

        Args:
            scene: the scene.
            q: (n_joints,) its configuration.
        """
        with self._lock:
            self._state = (scene, q)

    def end(self) -> None:
        """End the source."""
        with self._lock:
            self._state = None

    def current(self) -> SceneState | None:
        """Return the scene that was put last; None after the end."""
        with self._lock:
            return self._state


class Viewer(Stage, Closing):
    """A viewer in a browser; a context manager.

    Args:
        shown: what to show first: a scene, a problem, a plan, or the result of planning.
        q: (n_joints,) configuration of a scene, radians or metres; zero by default.
        problem: the problem that a result belongs to: its domain gives the facts, and it is planned
            again.
        host: the address that the server listens at; by default only this machine can connect.
        port: the port; 0 for any free one.

    Raises:
        ConfigurationError: if the port is outside 0 to 65535.
        OutputError: if the port is in use.
        MissingExtraError: viser is not installed.
        ArgumentError: something else is to be shown.
    """

    def __init__(
        self,
        shown: Shown | None = None,
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

    def __repr__(self) -> str:
        return f"Viewer({self.url}{', closed' if self._closed.is_set() else ''})"

    def show(
        self, shown: Shown, *, q: ArrayLike | None = None, problem: PlanningProblem | None = None
    ) -> None:
        """Show something else.

        Args:
            shown: a scene, a problem, a plan, or the result of planning: its plan, else why there
                is none.
            q: (n_joints,) configuration of a scene; zero by default.
            problem: the problem that a result belongs to.
        """
        self._end_versions()
        more: list[PanelMaker] = []
        if isinstance(shown, PlanResult):
            start = shown.plan if shown.plan is not None else problem or self.problem
            if start is not None and shown.search_trees:
                more = [search_panel(shown.search_trees, start.scene)]
            shown = shown.plan if shown.plan is not None else shown
        if isinstance(shown, Plan):
            # a file's own code is never run
            built_in = is_built_in(shown.domain, "domains") and not shown.semantics
            own = PlanningProblem(
                shown.scene, shown.q, domain=shown.domain, goal=shown.goal, robots=shown.robots
            )
            self.problem = problem or (own if built_in else None)
            timeline = plan_timeline(shown, domain=None if problem is None else problem.domain)
            self.draw(
                shown.scene, shown.q, timeline=timeline, panels=[*self._usual_panels(), *more]
            )
        elif isinstance(shown, PlanResult):
            self.problem = problem or self.problem
            show_failure(self, shown, more)
        elif isinstance(shown, PlanningProblem):
            self.problem = shown
            self._show_scene(shown.scene, shown.q if q is None else q)
        elif isinstance(shown, SceneGraph):
            self.problem = problem
            self._show_scene(shown, q)
        else:
            raise ArgumentError(
                f"show: a scene, problem, plan or result can be shown, not {type(shown).__name__}"
            )

    def _show_scene(self, scene: SceneGraph, q: ArrayLike | None) -> None:
        if q is None:
            q = self.home(scene) if self.problem is not None else scene.zero_configuration()
        self.draw(scene, scene.at(q).q, panels=self._usual_panels())

    def _usual_panels(self) -> list[PanelMaker]:
        return [
            TreePanel,
            JointsPanel,
            *([FactsPanel] if self.problem is not None else []),
            PlanPanel,
        ]

    def compare(self, before: SceneGraph, after: SceneGraph, *, q: ArrayLike | None = None) -> None:
        """Show two versions side by side: what was added is green, removed red, changed orange; the caption says so.

        Args:
            before: the version on the left.
            after: the version on the right.
            q: (n_joints,) configuration of both; zero by default.
        """
        self._end_versions()
        at = before.zero_configuration() if q is None else plain_numbers(q, "q")
        values = dict(zip(before.joint_names, at.tolist(), strict=True))
        low, high = bounds(scene_model(before), before.at(at).poses)
        shift = Pose(_GAP * float((high - low) @ np.abs(TO_THE_RIGHT)) * TO_THE_RIGHT)
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
        paints, told = changes(before, after)
        paint: dict[str, Color] = dict.fromkeys(both.frame_names, PALE)
        for side, colors in zip(("before", "after"), paints, strict=True):
            paint |= {f"{side}/{name}": color for name, color in colors.items()}
        known = {name: value for name, value in joints.items() if name in both.joint_names}
        caption = f"Left: before. Right: after. {told}"
        self.draw(both, both.configuration(known), paint=paint, caption=caption, panels=[TreePanel])

    def show_versions(
        self, store: Store, version: str = "main", *, q: ArrayLike | None = None
    ) -> None:
        """Show the versions of a store, with a slider over them; what differs from the version before is coloured.

        What was added is green, what changed orange; the caption names what was removed, too.

        Args:
            store: the store.
            version: a branch, an id, or how one begins: shown is all that led to it.
            q: (n_joints,) configuration; by default joints are at their newest values, or zero.

        Raises:
            UnknownNameError: there is no such version.
            StoreDamageError: it cannot be read.
        """
        self.problem = None
        log = [*store.log(version)][::-1]
        self._end_versions()
        self._versions = VersionsPanel(self, store, log, q)

    def _end_versions(self) -> None:
        if self._versions is not None:
            self._versions.remove()
            self._versions = None

    def follow(
        self, source: SceneSource | ChangingScene, *, q: ArrayLike | None = None, rate: float = 30.0
    ) -> None:
        """Show the scene of a source as it changes, in a thread of its own, until it ends or the viewer is closed.

        Args:
            source: a :class:`tmkit.world.LiveScene`, or anything with a method ``current``.
            q: (n_joints,) configuration of the joints of a live scene that have no stamped values;
                zero by default.
            rate: updates a second at most.

        Raises:
            ArgumentError: the source is neither.
        """
        if not isinstance(source, SceneSource):
            if not isinstance(source, ChangingScene):
                raise ArgumentError(
                    f"follow: a LiveScene or a source with current(), not {type(source).__name__}"
                )
            source = _Changing(source, q)

        def run() -> None:
            last: object = None
            quiet, is_told = 0.0, True  # since when nothing has changed; whether the panels show it
            while not self._closed.is_set() and threading.current_thread() is self._follower:
                began = time.monotonic()
                state = source.current()
                if state is None:
                    break
                if state is not last:
                    last, quiet, is_told = state, began, False
                    self._update(*state)
                elif not is_told and began - quiet > _QUIET:
                    self.set_state(*state, sends=False)
                    is_told = True
                self._closed.wait(max(0.001, 1.0 / rate - (time.monotonic() - began)))
            if isinstance(last, tuple) and not self._closed.is_set():
                self.set_state(*last)

        self._follower = threading.Thread(target=run, name="tmkit viewer", daemon=True)
        self._follower.start()

    def _update(self, scene: SceneGraph, q: NDArray[np.float64]) -> None:
        """Show a state without its panels; drawn anew only where frames came or went, or look different."""
        with self._lock:
            if self._closed.is_set():
                return
            is_new = self._model is None or scene.frame_names != self._model.frames
            if is_new or looks_differ(self._scene, scene):
                self.draw(scene, q, panels=[TreePanel], keeps_view=True)
            self._scene, self._q = scene, q
            self.send_poses(scene.at(q).poses)


def show(
    shown: Shown,
    *,
    q: ArrayLike | None = None,
    problem: PlanningProblem | None = None,
    port: int = 0,
    opens: bool = True,
) -> Viewer:
    """Show a scene, a problem, a plan or the result of planning in the browser, and go on; return the viewer.

    ``viewer.wait()`` keeps a script alive, ``viewer.close()`` ends it.

    Args:
        shown: what to show; a result without a plan opens on the likely cause.
        q: (n_joints,) configuration of a scene, radians or metres; zero by default.
        problem: the problem that a result belongs to: it gives the facts, and is planned again.
        port: the port of the page; any free one by default.
        opens: whether a browser is opened.

    Raises:
        MissingExtraError: viser is not installed.
        ConfigurationError: if the port is outside 0 to 65535.
        OutputError: if the port is in use.
        ArgumentError: something else is to be shown.
    """
    import webbrowser

    viewer = Viewer(shown, q=q, problem=problem, port=port)
    if opens:
        webbrowser.open(viewer.url)
    return viewer


def enable_notebook(*, height: int = 480) -> None:
    """Show scenes, plans and solved results in three dimensions where a notebook displays them, ``height`` pixels high.

    Each display is a page of its own of one to three megabytes in the notebook. Results without a
    plan keep their text.

    Raises:
        ConfigurationError: there is no notebook: IPython does not run this code.
    """
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        raise ConfigurationError(
            "enable_notebook: this is not a notebook; use tmkit.show(...) or tmkit.save_html(...)"
        )
    formatter = shell.display_formatter.formatters["text/html"]

    def framed(shown: Plan | SceneGraph) -> str:
        return _FRAME.format(html.escape(page_html(shown, autoplay=False)), height)

    def of_result(result: PlanResult) -> str:
        return framed(result.plan) if result.plan is not None else result._repr_html_()

    formatter.for_type(SceneGraph, framed)
    formatter.for_type(Plan, framed)
    formatter.for_type(PlanResult, of_result)
