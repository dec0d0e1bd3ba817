"""Stage of a viewer: a state, drawn by a server of viser, with panels that read and change it.

A *state* is a scene version with a configuration. viser's client draws it. tmkit's script in the
client (``viewer.js``) computes plans, so that scrubbing needs no message from Python. Python sends
a *document* (frames, boxes, time line) once for each content, then the poses of all frames in a
single message. Actions of a user in the page return as lines of text through an invisible field:
``pick FRAME``, ``sample N``, and others for panels.
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
    model_document,
    scene_model,
    set_view,
)


class Stage:
    """State in the browser with its panels, the base of :class:`tmkit.visualization.Viewer`.

    Args:
        host: address of the server.
        port: port of the server, or 0 for any free one.

    Raises:
        ConfigurationError: if the port is outside 0 to 65535.
        OutputError: if the port is in use.
        MissingExtraError: if viser is not installed.
    """

    show: Callable[..., None]  # of the viewer
    compare: Callable[..., None]

    def __init__(self, *, host: str, port: int) -> None:
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._panels: list[Panel] = []
        self.tabs: Any = None
        self._picked: str | None = None
        self._view: tuple[SceneModel, NDArray[np.float64]] | None = None
        self._timeline: PlanTimeline | None = None
        self._model: SceneModel | None = None
        self.handles: dict[int, Any] = {}
        self.problem: PlanningProblem | None = None
        self._server = start_server(host, port)
        self._server.gui.configure_theme(show_logo=False, show_share_button=False)
        self._server.gui.main_panel.dock_right()
        # Disable public addresses of pages.
        self._server.request_share_url = lambda **_: None  # type: ignore[method-assign]
        self._inbox = self._server.gui.add_text("inbox", "", visible=False)
        self._inbox.on_update(lambda event: self._receive(event.target.value))
        self._run_script(f"{script_text()}\nwindow.tmkit.follow();")

    @property
    def server(self) -> Any:
        """Server of viser, for functions that this class does not offer."""
        return self._server

    def close(self) -> None:
        """End the server. A second call has no effect."""
        with self._lock:  # Wait for the end of a drawing.
            is_closed = self._closed.is_set()
            self._closed.set()
        if not is_closed:
            stop_server(self._server)

    @property
    def scene(self) -> SceneGraph:
        """Current version of the scene."""
        return self._scene

    @property
    def q(self) -> NDArray[np.float64]:
        """(n_joints,) configuration of the current version [rad or m]."""
        return self._q

    @property
    def model(self) -> SceneModel:
        """Visual model of the current version."""
        assert self._model is not None, "nothing is drawn yet"
        return self._model

    @property
    def timeline(self) -> PlanTimeline | None:
        """Time line of the plan in the browser, if any."""
        return self._timeline

    @property
    def picked(self) -> str | None:
        """Frame that was clicked last."""
        return self._picked

    def home(
        self, scene: SceneGraph, base: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return the configuration (n_joints,) in which the arms of the problem are ready.

        Args:
            scene: version of the scene.
            base: (n_joints,) values of all other joints. Defaults to zeros.
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
        """Draw a state with its panels, instead of the previous one.

        Args:
            scene: version of the scene.
            q: (n_joints,) configuration.
            panels: makers of panels, called with the viewer and viser's tab group.
            timeline: time line of the plan with this state.
            paint: colours by frame, instead of those of the scene.
            caption: text below the picture of a scene without a time line.
            keeps_view: whether cameras keep their poses if a state was drawn before.
        """
        with self._lock, self._server.atomic():
            previous = self._model
            self._scene, self._q = scene, np.array(q)
            self._timeline, self._picked = timeline, None
            self._model = scene_model(scene, cell=CELL, paint=paint)
            poses = scene.at(q).poses
            api = self._server.scene
            api.reset()
            self.handles = add_nodes(api, self._model, poses)
            api.add_batched_axes("/poses", poses[:, [6, 3, 4, 5]], poses[:, :3], visible=False)
            has_new_frames = previous is None or self._model.frames != previous.frames
            has_view = previous is not None and bool(previous.pieces)
            moves = has_new_frames and not (keeps_view and has_view)
            if moves or self._view is None:
                self._view = (self._model, poses)
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
            self._update_panels()

    def set_state(self, scene: SceneGraph, q: NDArray[np.float64], *, sends: bool = True) -> None:
        """Draw another state with the same frames: a moved object or other joint values.

        Args:
            scene: version of the scene.
            q: (n_joints,) configuration.
            sends: whether to send the poses to the page. False for a state of its time line.
        """
        with self._lock:
            self._scene, self._q = scene, np.array(q)
            if sends:
                self.send_poses(scene.at(q).poses)
            self._update_panels()

    def send_poses(self, poses: NDArray[np.float64]) -> None:
        """Send the poses (n, 7) of all frames relative to the root, in a single message.

        Args:
            poses: rows x, y, z, qx, qy, qz, qw.
        """
        numbers = poses.astype(np.float32)
        self._send_update(
            {"batched_positions": numbers[:, :3].copy(), "batched_wxyzs": numbers[:, [6, 3, 4, 5]]}
        )

    def pick(self, frame: str | None) -> None:
        """Pick a frame, as a click on it does, or none.

        Raises:
            UnknownNameError: if the scene has no such frame.
        """
        if frame is not None:
            self._scene.parent(frame)
        with self._lock:
            self._picked = frame
            self._update_panels()

    def paint(self, colors: Mapping[str, Color]) -> None:
        """Set the colours of some frames, and restore those of all others.

        Args:
            colors: red, green, blue and opacity by frame, in [0, 1].
        """
        for number, handle in self.handles.items():
            piece = self.model.pieces[number]
            color = colors.get(piece.frame, piece.color)
            handle.color = np.rint(255.0 * np.array(color[:3])).astype(np.uint8)

    def notify(self, title: str, text: str, *, is_error: bool = False) -> None:
        """Show a message in all open pages.

        Args:
            title: title of the message.
            text: text of the message.
            is_error: whether the message reports an error.
        """
        color = (200, 40, 40) if is_error else (40, 110, 180)
        for client in self._server.get_clients().values():
            client.add_notification(title, text, auto_close_seconds=8.0, color=color)

    def _receive(self, message: str) -> None:
        """Process a line of the page: a unique number, a word and its arguments."""
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

    def _update_panels(self) -> None:
        """Update all panels after a change of the state."""
        for panel in self._panels:
            panel.update()

    def _send_update(self, updates: dict[str, Any]) -> None:
        """Send properties of the node ``/poses``, which the script reads, in a single message."""
        from viser import _messages

        if self._closed.is_set():
            return
        message = _messages.SceneNodeUpdateMessage("/poses", updates)
        self._server.scene._queue_scene_message(message)

    def _run_script(self, source: str) -> None:
        """Run JavaScript in all pages."""
        from viser import _messages

        self._server.gui._websock_interface.queue_message(_messages.RunJavascriptMessage(source))


class Panel:
    """Part of the viewer's control panel, which shows the viewer's state and changes it."""

    def __init__(self, viewer: Stage, tabs: Any) -> None:
        self._viewer = viewer
        self._build(viewer.server.gui, tabs)

    def _build(self, gui: Any, tabs: Any) -> None:
        """Add the panel's tab."""
        raise NotImplementedError  # pragma: no cover - each panel has one

    def update(self) -> None:
        """Show the current state of the viewer."""

    def receive(self, word: str, rest: str) -> None:
        """Process a line of the page: its first word, and the rest."""


PanelMaker = Callable[[Stage, Any], Panel]
"""Maker of a panel of a viewer in viser's tab group."""
