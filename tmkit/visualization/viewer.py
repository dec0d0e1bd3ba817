"""The live viewer: scenes, plans and failures in a browser, to be turned, moved and planned again.

A :class:`Viewer` is a web server on this machine. The browser draws with viser's client; tmkit's script in it
(``viewer.js``) computes plans by itself, so scrubbing needs no answer from Python. Python sends a *document* (frames,
boxes, time line) once for what is shown, and then the poses of all frames as one message, however many they are.
What a user does in the page comes back as lines of text through an invisible field: ``pick FRAME``, ``sample N``,
``cause N``.

Everything that is shown is a *state*: a scene version with a configuration. Panels (:mod:`.viewer_panels`,
:mod:`.why_not`) read and change it by :meth:`Viewer.set_state`.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.data import is_built_in
from tmkit.errors import ArgumentError, TmkitError
from tmkit.graph import SceneGraph
from tmkit.plans import Plan
from tmkit.tamp import PlanningProblem, PlanResult
from tmkit.visualization.page import CELL, script_text, start_server, stop_server
from tmkit.visualization.plan_timeline import PlanTimeline, plan_timeline, rest_document, timeline_document
from tmkit.visualization.scene_model import Color, SceneModel, scene_model
from tmkit.visualization.scene_nodes import add_nodes, bounds, model_document, set_view
from tmkit.visualization.side_by_side import side_by_side
from tmkit.visualization.stage import Panel, PanelMaker, Shown
from tmkit.visualization.viewer_panels import FactsPanel, JointsPanel, PlanPanel, TreePanel
from tmkit.visualization.why_not import WhyNotPanel

if TYPE_CHECKING:
    from tmkit.visualization.scene_sources import SceneSource

_logger = logging.getLogger(__name__)


class Viewer:
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
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._follower: threading.Thread | None = None
        self._panels: list[Panel] = []
        self._tabs: Any = None
        self._picked: str | None = None
        self._view = (np.zeros(3), np.ones(3))
        self._timeline: PlanTimeline | None = None
        self._model: SceneModel | None = None
        self.handles: dict[int, Any] = {}
        self.problem = problem
        self._server = start_server(host, port)
        try:
            self._server.gui.configure_theme(show_logo=False, show_share_button=False)
            self._server.gui.main_panel.dock_right()
            self._inbox = self._server.gui.add_text("inbox", "", visible=False)
            self._inbox.on_update(lambda event: self._receive(event.target.value))
            self._run_script(f"{script_text()}\nwindow.tmkit.follow();")
            if shown is not None:
                self.show(shown, q=q, problem=problem)
        except BaseException:
            self.close()
            raise

    # --- life ---------------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{self._server.get_host()}:{self._server.get_port()}"

    @property
    def server(self) -> Any:
        """Viser's server, for what this class does not offer."""
        return self._server

    def close(self) -> None:
        """End the server; once is enough, twice does no harm."""
        if not self._closed.is_set():
            self._closed.set()
            stop_server(self._server)

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

    # --- what is shown ------------------------------------------------------------------------------------------------

    @property
    def scene(self) -> SceneGraph:
        """The version of the scene that is shown."""
        return self._scene

    @property
    def q(self) -> NDArray[np.float64]:
        """(n_joints,) its configuration, radians or metres."""
        return self._q

    @property
    def model(self) -> SceneModel:
        """What is drawn of it."""
        assert self._model is not None, "nothing is shown yet"
        return self._model

    @property
    def timeline(self) -> PlanTimeline | None:
        """The plan that is shown, if it is one."""
        return self._timeline

    @property
    def picked(self) -> str | None:
        """The frame that was clicked last."""
        return self._picked

    def show(self, shown: Shown, *, q: ArrayLike | None = None, problem: PlanningProblem | None = None) -> None:
        """Show something else.

        Args:
            shown: a scene, a problem, a plan, or the result of planning: its plan, else why there is none.
            q: (n_joints,) configuration of a scene; zero by default.
            problem: the problem that a result belongs to.
        """
        if isinstance(shown, PlanResult) and shown.plan is not None:
            shown = shown.plan
        if isinstance(shown, Plan):
            built_in = is_built_in(shown.domain, "domains") and not shown.semantics  # a file's own code is never run
            own = PlanningProblem(shown.scene, shown.q, domain=shown.domain, goal=shown.goal, robots=shown.robots)
            self.problem = problem or (own if built_in else None)
            timeline = plan_timeline(shown)
            self.draw(shown.scene, shown.q, timeline=timeline, panels=self._usual_panels())
        elif isinstance(shown, PlanResult):
            self.problem = problem or self.problem
            WhyNotPanel(shown).show_first(self)
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

    def draw(
        self, scene: SceneGraph, q: NDArray[np.float64], *, panels: Sequence[PanelMaker],
        timeline: PlanTimeline | None = None, paint: Mapping[str, Color] | None = None, caption: str = "",
    ) -> None:  # fmt: skip
        """Draw a state anew, with its panels; what :meth:`show` is made of.

        Args:
            scene: the version.
            q: (n_joints,) configuration.
            panels: makers of panels, called with the viewer and viser's tab group.
            timeline: the plan that the state belongs to.
            paint: colours of frames, instead of their own.
            caption: text below the picture of a scene without a time line.
        """
        with self._lock, self._server.atomic():
            before = () if self._model is None else self._model.frames
            self._scene, self._q, self._timeline, self._picked = scene, np.array(q), timeline, None
            self._model = scene_model(scene, cell=CELL, paint=paint)
            poses = scene.at(q).poses
            api = self._server.scene
            api.reset()
            self.handles = add_nodes(api, self._model, poses)
            api.add_batched_axes("/poses", poses[:, [6, 3, 4, 5]], poses[:, :3], visible=False)
            self._view = bounds(self._model, poses) if self._model.frames != before else self._view
            set_view(self._server, *self._view, moves=self._model.frames != before)
            if self._tabs is not None:
                self._tabs.remove()
            self._tabs = self._server.gui.add_tab_group()
            self._panels = [make(self, self._tabs) for make in panels]
            document = {**rest_document(scene, self._q), **model_document(self._model), "caption": caption}
            if timeline is not None:
                document["timeline"] = timeline_document(timeline)
            self._send_update({"document": json.dumps({**document, "inbox": self._inbox._impl.uuid})})
            self._tell_panels()

    def set_state(self, scene: SceneGraph, q: NDArray[np.float64], *, sends: bool = True) -> None:
        """Show another state with the same frames: a moved object, other joint values.

        Args:
            scene: the version.
            q: (n_joints,) configuration.
            sends: whether the page is told; it is not where the change came from its time line.
        """
        with self._lock:
            self._scene, self._q = scene, np.array(q)
            if sends:
                self.send_poses(scene.at(q).poses)
            self._tell_panels()

    def send_poses(self, poses: NDArray[np.float64]) -> None:
        """Send the poses of all frames as one message.

        Args:
            poses: (n, 7) x, y, z, qx, qy, qz, qw relative to the root, in the order of the frames.
        """
        numbers = poses.astype(np.float32)
        self._send_update({"batched_positions": numbers[:, :3].copy(), "batched_wxyzs": numbers[:, [6, 3, 4, 5]]})

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
            if isinstance(last, tuple):
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

    # --- the page -----------------------------------------------------------------------------------------------------

    def pick(self, frame: str | None) -> None:
        """Pick a frame, as a click on it does.

        Args:
            frame: the frame; None for none.

        Raises:
            UnknownNameError: the scene has no such frame.
        """
        if frame is not None:
            self._scene.parent(frame)
        with self._lock:
            self._picked = frame
            self._tell_panels()

    def paint(self, colors: Mapping[str, Color]) -> None:
        """Colour frames; all others have their own colours again.

        Args:
            colors: red, green, blue, alpha from 0 to 1 by frame.
        """
        for number, handle in self.handles.items():
            piece = self.model.pieces[number]
            color = colors.get(piece.frame, piece.color)
            handle.color = np.rint(255.0 * np.array(color[:3])).astype(np.uint8)

    def notify(self, title: str, text: str, *, is_error: bool = False) -> None:
        """Show a message in the page of everyone who looks.

        Args:
            title: the title.
            text: the text.
            is_error: whether something failed.
        """
        color = (200, 40, 40) if is_error else (40, 110, 180)
        for client in self._server.get_clients().values():
            client.add_notification(title, text, auto_close_seconds=8.0, color=color)

    def _receive(self, message: str) -> None:
        """Act on a line of the page: a number that makes it unique, a word, and what follows."""
        _, word, rest = [*message.split(" ", 2), "", ""][:3]
        try:
            with self._lock:
                if word == "pick" and rest in self.model.frames:
                    self.pick(rest)
                elif word == "sample" and self._timeline is not None and rest.isdigit():
                    sample = min(int(rest), len(self._timeline.times) - 1)
                    self.set_state(self._timeline.scenes[sample], self._timeline.q[sample], sends=False)
                else:
                    for panel in self._panels:
                        panel.receive(word, rest)
        except TmkitError as error:
            self.notify("Not possible", str(error), is_error=True)

    def _tell_panels(self) -> None:
        for panel in self._panels:
            panel.update()

    def _send_update(self, updates: dict[str, Any]) -> None:
        """Send properties of the node ``/poses``, by which the page's script gets documents and poses.

        viser's handles send one message a property and refuse properties of one's own, so the message is made here.
        """
        from viser import _messages

        if self._closed.is_set():
            return
        message = _messages.SceneNodeUpdateMessage("/poses", updates)
        self._server.scene._queue_scene_message(message)

    def _run_script(self, source: str) -> None:
        from viser import _messages

        self._server.gui._websock_interface.queue_message(_messages.RunJavascriptMessage(source))
