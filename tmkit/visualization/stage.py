"""Stage of a viewer: a state, drawn by a server of viser, with panels that read and change it.

A *state* is a scene version with a configuration. viser's client draws; tmkit's script in it
(``viewer.js``) computes plans by itself, so scrubbing needs no answer from Python. Python sends a
*document* (frames, boxes, time line) once for what is shown, and then the poses of all frames as
one message. What a user does in the page comes back as lines of text through an invisible field:
``pick FRAME``, ``sample N``, and others that panels understand.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import TmkitError
from tmkit.graph import SceneGraph
from tmkit.robots.robot_files import find_manipulators, home_configuration
from tmkit.tamp import PlanningProblem
from tmkit.visualization.page import (
    CELL,
    PlanTimeline,
    rest_document,
    script_text,
    start_server,
    stop_server,
    timeline_document,
)
from tmkit.visualization.scene_model import (
    Color,
    SceneModel,
    add_nodes,
    bounds,
    model_document,
    scene_model,
    set_view,
)


class Stage:
    """A state in the browser, and the panels beside it; :class:`tmkit.visualization.Viewer` says what is shown.

    Args:
        host: the address that the server listens at.
        port: the port; 0 for any free one.

    Raises:
        ConfigurationError: if the port is outside 0 to 65535.
        OutputError: if the port is in use.
        MissingExtraError: viser is not installed.
    """

    show: Callable[..., None]  # of the viewer
    compare: Callable[..., None]

    def __init__(self, *, host: str, port: int) -> None:
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._panels: list[Panel] = []
        self.tabs: Any = None
        self._picked: str | None = None
        self._view = (np.zeros(3), np.ones(3))
        self._timeline: PlanTimeline | None = None
        self._model: SceneModel | None = None
        self.handles: dict[int, Any] = {}
        self.problem: PlanningProblem | None = None
        self._server = start_server(host, port)
        self._server.gui.configure_theme(show_logo=False, show_share_button=False)
        self._server.gui.main_panel.dock_right()
        self._server.request_share_url = lambda **_: None  # type: ignore[method-assign]  # no page goes public
        self._inbox = self._server.gui.add_text("inbox", "", visible=False)
        self._inbox.on_update(lambda event: self._receive(event.target.value))
        self._run_script(f"{script_text()}\nwindow.tmkit.follow();")

    @property
    def server(self) -> Any:
        """Viser's server, for what this class does not offer."""
        return self._server

    def close(self) -> None:
        """End the server; once is enough, twice does no harm."""
        with self._lock:  # nobody draws meanwhile
            is_closed = self._closed.is_set()
            self._closed.set()
        if not is_closed:
            stop_server(self._server)

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

    def home(
        self, scene: SceneGraph, base: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return the configuration (n_joints,) in which the arms of the problem are ready.

        Args:
            scene: the version.
            base: (n_joints,) of all other joints; zero by default.
        """
        arms = find_manipulators(self.problem.robots, scene) if self.problem is not None else ()
        return home_configuration(arms, scene, base=base)

    def draw(
        self,
        scene: SceneGraph,
        q: NDArray[np.float64],
        *,
        panels: Sequence[PanelMaker],
        timeline: PlanTimeline | None = None,
        paint: Mapping[str, Color] | None = None,
        caption: str = "",
        keeps_view: bool = False,
    ) -> None:
        """Draw a state anew, with its panels; what :meth:`show` is made of.

        Args:
            scene: the version.
            q: (n_joints,) configuration.
            panels: makers of panels, called with the viewer and viser's tab group.
            timeline: the plan that the state belongs to.
            paint: colours of frames, instead of their own.
            caption: text below the picture of a scene without a time line.
            keeps_view: whether cameras stay where something was shown before.
        """
        with self._lock, self._server.atomic():
            before, has_view = (
                ((), False)
                if self._model is None
                else (self._model.frames, bool(self._model.pieces))
            )
            self._scene, self._q, self._timeline, self._picked = scene, np.array(q), timeline, None
            self._model = scene_model(scene, cell=CELL, paint=paint)
            poses = scene.at(q).poses
            api = self._server.scene
            api.reset()
            self.handles = add_nodes(api, self._model, poses)
            api.add_batched_axes("/poses", poses[:, [6, 3, 4, 5]], poses[:, :3], visible=False)
            moves = self._model.frames != before and not (keeps_view and has_view)
            self._view = bounds(self._model, poses) if moves else self._view
            set_view(self._server, *self._view, moves=moves)
            if self.tabs is not None:
                self.tabs.remove()
            self.tabs = self._server.gui.add_tab_group()
            self._panels = [make(self, self.tabs) for make in panels]
            document = {
                **rest_document(scene, self._q),
                **model_document(self._model),
                "caption": caption,
            }
            if timeline is not None:
                document["timeline"] = timeline_document(timeline)
            self._send_update(
                {"document": json.dumps({**document, "inbox": self._inbox._impl.uuid})}
            )
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
        """Send the poses (n, 7) x, y, z, qx, qy, qz, qw of all frames relative to the root, as one message."""
        numbers = poses.astype(np.float32)
        self._send_update(
            {"batched_positions": numbers[:, :3].copy(), "batched_wxyzs": numbers[:, [6, 3, 4, 5]]}
        )

    def pick(self, frame: str | None) -> None:
        """Pick a frame, as a click on it does; None for none.

        Raises:
            UnknownNameError: the scene has no such frame.
        """
        if frame is not None:
            self._scene.parent(frame)
        with self._lock:
            self._picked = frame
            self._tell_panels()

    def paint(self, colors: Mapping[str, Color]) -> None:
        """Colour frames: red, green, blue, alpha from 0 to 1 by frame; all others have their own colours again."""
        for number, handle in self.handles.items():
            piece = self.model.pieces[number]
            color = colors.get(piece.frame, piece.color)
            handle.color = np.rint(255.0 * np.array(color[:3])).astype(np.uint8)

    def notify(self, title: str, text: str, *, is_error: bool = False) -> None:
        """Show a message in all open pages.

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
                    self.set_state(
                        self._timeline.scenes[sample], self._timeline.q[sample], sends=False
                    )
                else:
                    for panel in self._panels:
                        panel.receive(word, rest)
        except TmkitError as error:
            self.notify("Not possible", str(error), is_error=True)

    def _tell_panels(self) -> None:
        for panel in self._panels:
            panel.update()

    def _send_update(self, updates: dict[str, Any]) -> None:
        """Send properties of ``/poses``, where the script reads them, as one message, unlike viser's handles."""
        from viser import _messages

        if self._closed.is_set():
            return
        message = _messages.SceneNodeUpdateMessage("/poses", updates)
        self._server.scene._queue_scene_message(message)

    def _run_script(self, source: str) -> None:
        from viser import _messages

        self._server.gui._websock_interface.queue_message(_messages.RunJavascriptMessage(source))


class Panel:
    """A part of the viewer's control panel. It shows the viewer's state; what a user does in it changes the state."""

    def __init__(self, viewer: Stage, tabs: Any) -> None:
        self._viewer = viewer
        self._build(viewer.server.gui, tabs)

    def _build(self, gui: Any, tabs: Any) -> None:
        """Add the panel's tab."""
        raise NotImplementedError  # pragma: no cover - each panel has one

    def update(self) -> None:
        """Show the viewer's state."""

    def receive(self, word: str, rest: str) -> None:
        """Act on a line of the page: its first word, and the rest."""


PanelMaker = Callable[[Stage, Any], Panel]
"""Makes a panel of a viewer in viser's tab group."""
