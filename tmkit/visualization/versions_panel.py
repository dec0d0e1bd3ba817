"""Versions of a scene in the viewer: what differs between two, and a slider over those of a store."""

from __future__ import annotations

import html
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.errors import TmkitError
from tmkit.graph import SceneGraph, diff
from tmkit.graph.joint_histories import configuration
from tmkit.store import Store, Version
from tmkit.visualization.scene_model import Color
from tmkit.visualization.stage import Stage
from tmkit.visualization.viewer_panels import TreePanel, boxed

PALE = (0.88, 0.89, 0.90, 1.0)
_CHANGES = {"added": (0.16, 0.65, 0.30, 1.0), "removed": (0.86, 0.12, 0.12, 1.0), "changed": (0.95, 0.55, 0.10, 1.0)}
_WORDS = {"added": "Green (added)", "removed": "Red (removed)", "changed": "Orange (changed)"}
_MOST_NAMES = 20


def changes(before: SceneGraph, after: SceneGraph) -> tuple[tuple[dict[str, Color], dict[str, Color]], str]:
    """Return colours of the frames of two versions by what differs, and the differences in words."""
    paints: tuple[dict[str, Color], dict[str, Color]] = {}, {}
    names: dict[str, list[str]] = {kind: [] for kind in _CHANGES}
    for frame in diff(before, after).frames:
        kind = "added" if frame.before is None else "removed" if frame.after is None else "changed"
        text = f" ({', '.join(frame.fields)})" if kind == "changed" else ""
        for paint, scene, there in zip(paints, (before, after), (frame.before, frame.after), strict=True):
            if there is not None:
                paint.update(dict.fromkeys(scene.subtree(there.name), _CHANGES[kind]))
                shown = there.name
        names[kind].append(shown + text)
    told = "; ".join(f"{_WORDS[kind]}: {_listed(some)}" for kind, some in names.items() if some)
    return paints, told or "No difference"


def looks_differ(before: SceneGraph, after: SceneGraph) -> bool:
    """Return whether two versions differ in more than poses, so that they must be drawn anew."""
    return before.frame_names != after.frame_names or any("shapes" in one.fields for one in diff(before, after).frames)


def latest_configuration(scene: SceneGraph, q: ArrayLike | None = None) -> NDArray[np.float64]:
    """Return the configuration (n_joints,) of the newest stamped values; of other joints those of q, or zero."""
    is_fit = q is not None and np.size(np.asarray(q)) == len(scene.joint_names)  # versions may have other joints
    base = q if is_fit else scene.zero_configuration()
    return configuration(scene, math.inf, policy="clamped", q=base)


class VersionsPanel:
    """A slider over the versions of a store, above the tabs; it stays when another version is drawn.

    Args:
        viewer: the viewer.
        store: the store.
        log: the versions, the oldest first.
        q: (n_joints,) configuration; see :func:`latest_configuration`.
    """

    def __init__(self, viewer: Stage, store: Store, log: list[Version], q: ArrayLike | None) -> None:
        self._viewer, self._store, self._log, self._q = viewer, store, log, q
        self._drawn: tuple[SceneGraph, bool] | None = None
        gui: Any = viewer.server.gui
        self._folder, last = gui.add_folder("Versions", order=-1.0), len(log)
        with self._folder:
            self._number = gui.add_slider("Version", 1, max(2, last), 1, last, disabled=last == 1)
            self._marks = gui.add_checkbox("Mark changes", True, hint="what differs from the version before")
            self._about = gui.add_html("")
        self._number.on_update(lambda _: self._draw())
        self._marks.on_update(lambda _: self._draw())
        self._draw()

    def remove(self) -> None:
        """Remove the slider."""
        self._folder.remove()

    def _draw(self) -> None:
        """Draw the version that the slider is at."""
        number, is_marked = min(int(self._number.value), len(self._log)), bool(self._marks.value)
        version, told, colors = self._log[number - 1], "", dict[str, Color]()
        try:
            scene = self._store.get(version.id)
            if version.parents and is_marked:
                (_, colors), told = changes(self._store.get(version.parents[0]), scene)
        except TmkitError as error:
            self._viewer.notify("This version cannot be read", str(error), is_error=True)
            return
        q, drawn = latest_configuration(scene, self._q), self._drawn
        if drawn is None or drawn[1] != is_marked or looks_differ(drawn[0], scene):
            paint = dict.fromkeys(scene.frame_names, PALE) if is_marked else None
            self._viewer.draw(scene, q, panels=[TreePanel], paint=paint, keeps_view=True)
        else:
            self._viewer.set_state(scene, q)
        self._viewer.paint(colors)
        self._drawn = scene, is_marked
        words = [
            f"<b>{number} of {len(self._log)}</b> {version.id[:12]}",
            version.message and html.escape(version.message),
        ]
        self._about.content = boxed("<br>".join([*filter(None, words), html.escape(told)]), "20vh")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
