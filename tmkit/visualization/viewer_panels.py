"""Panels of the live viewer: the tree of frames, joints, facts, and planning from the state that is shown.

A panel is made with the viewer and viser's tab group. :meth:`update` shows the viewer's state; what
a user does changes the state through :meth:`~tmkit.visualization.Viewer.set_state`. Texts of a
scene are escaped wherever they become HTML.
"""

from __future__ import annotations

import html
import math
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.errors import TmkitError
from tmkit.graph import SceneGraph, diff
from tmkit.graph.moments import configuration
from tmkit.spatial import Pose
from tmkit.visualization.scene_model import Color
from tmkit.visualization.stage import Panel, Stage

if TYPE_CHECKING:
    from tmkit.store import Store
    from tmkit.store.store import Version

RED = (0.86, 0.12, 0.12, 1.0)
_MOST_ROWS, _MOST_JOINTS, _MOST_FACTS = 1500, 60, 12
# half the range of a slider whose joint has no limits, metres; else radians
_ENDLESS = {"prismatic": 2.0}
_TOUCH = 1e-3  # metres of overlap up to which a pair only touches, as an object its support
_SIGMAS = 2.0  # of an ellipsoid's half axes
_BOX = (
    '<div style="max-height:{};overflow:auto;font:12px/1.5 ui-monospace,monospace;margin:4px'
    ' 8px">{}</div>'
)


def boxed(content: str, height: str = "40vh") -> str:
    """Return HTML in a box of its own, with a scroll bar where it is higher than ``height``, as CSS."""
    return _BOX.format(height, content)


class TreePanel(Panel):
    """The tree of the graph, what is known of the frame that is picked, and ways to move it."""

    def _build(self, gui: Any, tabs: Any) -> None:
        scene = self._viewer.scene
        self._drawn: SceneGraph | None = None
        self._gizmo: Any = None
        self._is_own = False  # a change of the gizmo's is this panel's own
        with tabs.add_tab("Scene"):
            self._tree, self._about = gui.add_html(""), gui.add_html("")
            self._moves = gui.add_checkbox(
                "Move it", False, hint="a gizmo at the frame that is picked"
            )
            self._moves.on_update(lambda _: self.update())
            hint = "the frame keeps its place in the world"
            self._parent = gui.add_dropdown("New parent", ("", *scene.frame_names), hint=hint)
            self._parent.on_update(lambda _: self._reparent())
            gui.add_button("Contacts in red").on_click(lambda _: self._show_contacts())
            if scene.noisy_frames:
                self._spread = gui.add_checkbox("Covariance (2 sigma)", True)
                self._spread.on_update(lambda _: self._draw_ellipsoids())

    def update(self) -> None:
        """Show the viewer's state."""
        viewer = self._viewer
        scene, q, frame = viewer.scene, viewer.q, viewer.picked
        if scene is not self._drawn:
            self._drawn = scene
            self._tree.content = boxed(_tree_html(scene), "46vh")
        about = "Click a body or a row." if frame is None else _about_html(scene, q, frame)
        self._about.content = boxed(about)
        wanted = (
            frame
            if self._moves.value and frame is not None and scene.parent(frame) is not None
            else None
        )
        if wanted is None and self._gizmo is not None:
            self._gizmo.remove()
            self._gizmo = None
        if wanted is not None:
            self._place_gizmo(scene.pose(wanted, q=q))
        if scene.noisy_frames:
            self._draw_ellipsoids()

    def _place_gizmo(self, pose: Pose) -> None:
        if self._gizmo is None:
            self._gizmo = self._viewer.server.scene.add_transform_controls(
                "/gizmo", scale=0.18, depth_test=False
            )
            self._gizmo.on_update(lambda _: self._follow_gizmo())
        if not self._is_own:
            self._gizmo.position, self._gizmo.wxyz = pose.translation, pose.quat_xyzw[[3, 0, 1, 2]]

    def _follow_gizmo(self) -> None:
        """Move the frame that is picked to where the gizmo is."""
        viewer, frame = self._viewer, self._viewer.picked
        parent = viewer.scene.parent(frame) if frame is not None else None
        if self._gizmo is None or frame is None or parent is None:
            return
        w, x, y, z = self._gizmo.wxyz
        root_from_frame = Pose(np.asarray(self._gizmo.position, dtype=float), [x, y, z, w])
        base = viewer.scene.pose(parent, q=viewer.q)
        zero = viewer.scene.local_pose(frame).inverse() @ viewer.scene.pose(
            frame, relative_to=parent, q=viewer.q
        )
        self._is_own = True
        try:  # the edge keeps its joint at its value
            viewer.set_state(
                viewer.scene.set_pose(frame, base.inverse() @ root_from_frame @ zero.inverse()),
                viewer.q,
            )
        finally:
            self._is_own = False

    def _reparent(self) -> None:
        viewer, frame, parent = self._viewer, self._viewer.picked, self._parent.value
        if frame is None or not parent or viewer.scene.parent(frame) == parent:
            return
        try:
            viewer.set_state(viewer.scene.reparent(frame, parent, q=viewer.q), viewer.q)
        except TmkitError as error:
            viewer.notify("Not possible", str(error), is_error=True)
        self._parent.value = ""

    def _show_contacts(self) -> None:
        from tmkit.motion import CollisionWorld

        viewer = self._viewer
        movable = viewer.scene.frames_of_class("movable")
        contacts = CollisionWorld(viewer.scene, movable=movable).contacts(viewer.q)
        deep = [contact for contact in contacts if contact.distance < -_TOUCH]
        viewer.paint(
            {frame: RED for contact in deep for frame in (contact.frame_a, contact.frame_b)}
        )
        texts = [f"{c.frame_a} and {c.frame_b} by {-1000.0 * c.distance:.1f} mm" for c in deep[:8]]
        touching = f"{len(contacts) - len(deep)} other pairs touch."
        viewer.notify(f"{len(deep)} pairs overlap", f"{'; '.join(texts) or 'None'}. {touching}")

    def _draw_ellipsoids(self) -> None:
        import trimesh

        viewer = self._viewer
        ball = trimesh.creation.icosphere(subdivisions=2)
        scales, turns, places = [], [], []
        for frame in viewer.scene.noisy_frames:
            spread = viewer.scene.gaussian_pose(frame, q=viewer.q)
            sizes, axes = np.linalg.eigh(spread.covariance[:3, :3])  # for the picture only
            axes[:, 0] *= np.sign(np.linalg.det(axes))
            turn = spread.mean @ Pose.from_rotation_matrix(np.zeros(3), axes)
            scales.append(np.maximum(_SIGMAS * np.sqrt(np.maximum(sizes, 0.0)), 1e-3))
            turns.append(turn.quat_xyzw[[3, 0, 1, 2]])
            places.append(turn.translation)
        viewer.server.scene.add_batched_meshes_simple(
            "/covariance",
            ball.vertices,
            ball.faces,
            batched_wxyzs=np.array(turns),
            batched_positions=np.array(places),
            batched_scales=np.array(scales),
            batched_colors=(70, 10, 140),
            opacity=0.75,
            cast_shadow=False,
            receive_shadow=False,
            visible=self._spread.value,
        )


def _tree_html(scene: SceneGraph) -> str:
    """Return the tree as rows of HTML; the page's script highlights and picks them by ``data-tmkit-frame``."""
    rows: list[str] = []
    waiting = [(root, 0) for root in reversed(scene.root_names)]
    while waiting and len(rows) < _MOST_ROWS:
        name, depth = waiting.pop()
        joint, classes = scene.joint(name), scene.classes(name)
        kind = f" [{joint.type}]" if joint.type not in ("fixed", "free") else ""
        more = f" ({', '.join(classes)})" if classes else ""
        rows.append(
            f'<div data-tmkit-frame="{html.escape(name)}"'
            f' style="padding-left:{0.6 * min(depth, 20)}em;cursor:pointer;white-space:nowrap">{html.escape(name)}<span'
            f' style="opacity:.6">{kind}{html.escape(more)}</span></div>'
        )
        waiting.extend((child, depth + 1) for child in reversed(scene.children(name)))
    hidden = len(scene) - len(rows)
    return "".join(rows) + (f"<div>and {hidden} more frames</div>" if hidden > 0 else "")


def _about_html(scene: SceneGraph, q: Any, frame: str) -> str:
    parent, pose = scene.parent(frame), scene.pose(frame, q=q)
    rows = [
        ("frame", frame),
        ("parent", parent or "none"),
        ("position", _numbers(pose.translation, "m")),
    ]
    if parent is not None:
        rows.append(
            ("in parent", _numbers(scene.pose(frame, relative_to=parent, q=q).translation, "m"))
        )
    rows.append(("xyzw", _numbers(pose.quat_xyzw, "")))
    if attributes := scene.attributes(frame):
        rows.append(
            ("attributes", ", ".join(f"{key}={attributes[key]}" for key in sorted(attributes)))
        )
    if frame in scene.noisy_frames:
        spread = np.sqrt(np.diag(scene.gaussian_pose(frame, q=q).covariance)[:3])
        rows.append(("sigma", _numbers(1000.0 * spread, "mm", 1)))
    return "".join(f"<div><b>{name}</b> {html.escape(text)}</div>" for name, text in rows)


def _numbers(values: Any, unit: str, digits: int = 3) -> str:
    return " ".join(f"{value:.{digits}f}" for value in values) + f" {unit}"


class JointsPanel(Panel):
    """A slider for each joint, and the ready configuration of the arms."""

    def _build(self, gui: Any, tabs: Any) -> None:
        viewer, scene = self._viewer, self._viewer.scene
        self._is_own = False
        self._sliders = []
        with tabs.add_tab("Joints"):
            if viewer.problem is not None:
                ready = gui.add_button("Go to the ready configuration")
                ready.on_click(
                    lambda _: viewer.set_state(viewer.scene, viewer.home(viewer.scene, viewer.q))
                )
            gui.add_button("Show as [ready]", hint="for a robot's description").on_click(
                lambda _: self._write()
            )
            self._text = gui.add_html("")
            for entry, name in enumerate(scene.joint_names[:_MOST_JOINTS]):
                low, high = self._range(scene, entry)
                value = float(np.clip(viewer.q[entry], low, high))
                slider = gui.add_slider(
                    name, min=low, max=high, step=(high - low) / 1000.0, initial_value=value
                )
                slider.on_update(lambda _, entry=entry: self._move(entry))
                self._sliders.append(slider)

    @staticmethod
    def _range(scene: SceneGraph, entry: int) -> tuple[float, float]:
        low, high = (float(value) for value in scene.joint_limits[entry])
        half = _ENDLESS.get(scene.joint(scene.joint_frames[entry]).type, np.pi)
        return (low if np.isfinite(low) else -half), (high if np.isfinite(high) else half)

    def update(self) -> None:
        """Show the viewer's state."""
        self._is_own = True
        try:
            for slider, value in zip(self._sliders, self._viewer.q, strict=False):
                slider.value = float(np.clip(value, slider.min, slider.max))
        finally:
            self._is_own = False

    def _move(self, entry: int) -> None:
        if not self._is_own and abs(self._viewer.q[entry] - self._sliders[entry].value) > 1e-12:
            q = np.array(self._viewer.q)
            q[entry] = self._sliders[entry].value
            self._viewer.set_state(self._viewer.scene, q)

    def _write(self) -> None:
        values = zip(self._viewer.scene.joint_names, self._viewer.q, strict=True)
        lines = ["[ready]", *(f'"{name}" = {value:.4f}' for name, value in values)]
        self._text.content = boxed(f"<pre>{html.escape(chr(10).join(lines))}</pre>")


class FactsPanel(Panel):
    """The facts that the semantics of the problem's domain derive from the state; those that changed are marked."""

    def _build(self, gui: Any, tabs: Any) -> None:
        from tmkit.robots.robot_files import find_manipulators
        from tmkit.tamp import StateDeriver, load_planning_domain

        viewer, problem = self._viewer, self._viewer.problem
        assert problem is not None, "the viewer makes this panel for problems"
        arms = find_manipulators(problem.robots, viewer.scene)
        domain = load_planning_domain(problem.domain, manipulator=arms, semantics=problem.semantics)
        self._deriver = StateDeriver(domain, domain.semantics.objects(viewer.scene))
        self._first = self._last = self._deriver.derive(viewer.scene, viewer.q)
        with tabs.add_tab("Facts"):
            self._text = gui.add_html("")

    def update(self) -> None:
        """Show the viewer's state."""
        viewer = self._viewer
        try:
            self._last = self._deriver.derive(viewer.scene, viewer.q, self._last)
        except TmkitError as error:
            self._text.content = boxed(
                f'<div style="color:#c53030">{html.escape(str(error))}</div>'
            )
            return
        before, now = self._first.state.facts, self._last.state.facts
        gone = "#c53030;text-decoration:line-through"
        parts = [_fact_rows("Added since the start", now - before, "#2f855a")]
        parts += [_fact_rows("Deleted since the start", before - now, gone), "<b>All that hold</b>"]
        groups: dict[str, list[str]] = {}
        for fact in sorted(map(str, now)):
            groups.setdefault(fact[1:].split(" ")[0].rstrip(")"), []).append(fact)
        for name, facts in sorted(groups.items(), key=lambda item: len(item[1])):
            rows = _fact_rows("", facts, "inherit")
            folded = (
                f"<details><summary>{html.escape(name)}: {len(facts)}"
                f" facts</summary>{rows}</details>"
            )
            parts.append(rows if len(facts) <= _MOST_FACTS else folded)
        self._text.content = boxed("".join(parts), "60vh")


def _fact_rows(title: str, facts: Any, style: str) -> str:
    rows = (
        f'<div style="color:{style}">{html.escape(fact)}</div>' for fact in sorted(map(str, facts))
    )
    return (f"<b>{title}</b>" if title and facts else "") + "".join(rows)


class PlanPanel(Panel):
    """Planning from the state that is shown, and comparing versions of a plan."""

    def _build(self, gui: Any, tabs: Any) -> None:
        problem, timeline = self._viewer.problem, self._viewer.timeline
        if problem is None and timeline is None:
            return
        with tabs.add_tab("Plan"):
            if problem is not None:
                goal = " ".join(str(goal) for goal in problem.goals)
                self._goal = gui.add_text("Goal", goal, hint="PDDL, such as (on a b)")
                self._seconds = gui.add_number("Time limit, s", 30.0, min=1.0, max=600.0)
                self._button = gui.add_button("Plan from here")
                self._button.on_click(lambda _: self._start())
            if timeline is not None:
                names = [
                    "the start",
                    *(f"{i}. {step.action}" for i, step in enumerate(timeline.plan.steps, start=1)),
                ]
                self._version = gui.add_dropdown("Compare with", names)
                gui.add_button("Side by side").on_click(
                    lambda _: self._compare(names.index(self._version.value))
                )

    def _compare(self, number: int) -> None:
        viewer, timeline = self._viewer, self._viewer.timeline
        if timeline is not None:
            steps = timeline.plan.steps
            viewer.compare(
                timeline.plan.scene if number == 0 else steps[number - 1].scene,
                viewer.scene,
                q=viewer.q,
            )
            with viewer.tabs.add_tab("Plan"):
                back = viewer.server.gui.add_button("Back to the plan")
            back.on_click(lambda _: viewer.show(timeline.plan, problem=viewer.problem))

    def _start(self) -> None:
        self._button.disabled = True
        threading.Thread(target=self._plan, name="tmkit planning", daemon=True).start()

    def _plan(self) -> None:
        from tmkit.tamp import PlanningOptions, solve

        viewer = self._viewer
        assert viewer.problem is not None, "the button is there with a problem only"
        try:
            problem = replace(viewer.problem, scene=viewer.scene, q=viewer.q, goal=self._goal.value)
            viewer.notify("Planning", self._goal.value)
            result = solve(
                problem, PlanningOptions(time_limit=float(self._seconds.value), record_tree=True)
            )
            viewer.show(result, problem=problem)
            viewer.notify(result.status.value, result.explanation, is_error=result.plan is None)
        except TmkitError as error:
            viewer.notify("Not planned", str(error), is_error=True)
            self._button.disabled = False


PALE = (0.88, 0.89, 0.90, 1.0)
_CHANGES = {
    "added": (0.16, 0.65, 0.30, 1.0),
    "removed": (0.86, 0.12, 0.12, 1.0),
    "changed": (0.95, 0.55, 0.10, 1.0),
}
_WORDS = {"added": "Green (added)", "removed": "Red (removed)", "changed": "Orange (changed)"}
_MOST_NAMES = 20


def changes(
    before: SceneGraph, after: SceneGraph
) -> tuple[tuple[dict[str, Color], dict[str, Color]], str]:
    """Return colours of the frames of two versions by what differs, and the differences in words."""
    paints: tuple[dict[str, Color], dict[str, Color]] = {}, {}
    names: dict[str, list[str]] = {kind: [] for kind in _CHANGES}
    for frame in diff(before, after).frames:
        kind = "added" if frame.before is None else "removed" if frame.after is None else "changed"
        text = f" ({', '.join(frame.fields)})" if kind == "changed" else ""
        for paint, scene, there in zip(
            paints, (before, after), (frame.before, frame.after), strict=True
        ):
            if there is not None:
                paint.update(dict.fromkeys(scene.subtree(there.name), _CHANGES[kind]))
                shown = there.name
        names[kind].append(shown + text)
    told = []
    for kind, some in names.items():
        more = f" and {len(some) - _MOST_NAMES} more" if len(some) > _MOST_NAMES else ""
        told += [f"{_WORDS[kind]}: {', '.join(some[:_MOST_NAMES])}{more}"] if some else []
    return paints, "; ".join(told) or "No difference"


def looks_differ(before: SceneGraph, after: SceneGraph) -> bool:
    """Return whether two versions differ in more than poses, so that they must be drawn anew."""
    return before.frame_names != after.frame_names or any(
        "shapes" in one.fields for one in diff(before, after).frames
    )


def latest_configuration(scene: SceneGraph, q: ArrayLike | None = None) -> NDArray[np.float64]:
    """Return the configuration (n_joints,) of the newest stamped values; of other joints those of q, or zero."""
    # versions may have other joints
    is_fit = q is not None and np.size(np.asarray(q)) == len(scene.joint_names)
    base = q if is_fit else scene.zero_configuration()
    return configuration(scene, math.inf, policy="clamped", q=base)


class VersionsPanel:
    """A slider over the versions of a store, the oldest first, which stays when another version is drawn."""

    def __init__(
        self, viewer: Stage, store: Store, log: list[Version], q: ArrayLike | None
    ) -> None:
        self._viewer, self._store, self._log, self._q = viewer, store, log, q
        self._drawn: tuple[SceneGraph, bool] | None = None
        gui: Any = viewer.server.gui
        self._folder, last = gui.add_folder("Versions", order=-1.0), len(log)
        with self._folder:
            self._number = gui.add_slider("Version", 1, max(2, last), 1, last, disabled=last == 1)
            self._marks = gui.add_checkbox(
                "Mark changes", True, hint="what differs from the version before"
            )
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
            html.escape(version.message or ""),
        ]
        self._about.content = boxed("<br>".join([*filter(None, words), html.escape(told)]), "20vh")
