"""Panels of the live viewer: frames, joints, facts, and planning from the current state.

The constructor of a panel receives the viewer and viser's tab group. :meth:`Panel.update` shows the
viewer's state. Actions of a user change the state through
:meth:`~tmkit.visualization.Viewer.set_state`. Texts of a scene are escaped in HTML.
"""

from __future__ import annotations

import html
import math
import threading
from collections.abc import Collection
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
"""Colour of obstacles and contacts."""

PALE = (0.88, 0.89, 0.90, 1.0)
"""Colour of frames without differences."""

_MAX_ROWS = 1500
"""Largest number of rows of the tree."""

_MAX_JOINTS = 60
"""Largest number of sliders."""

_MAX_FACTS = 12
"""Largest number of facts of a predicate that are not folded."""

_UNLIMITED_RANGES = {"prismatic": 2.0}
"""Half of the range of a slider for a joint without limits, by type [m]. Others have pi [rad]."""

_CONTACT_DEPTH = 1e-3
"""Overlap up to which a pair is in contact, such as an object and its support [m]."""

_ELLIPSOID_SIGMAS = 2.0
"""Half axes of an ellipsoid in standard deviations."""

_SCROLL_BOX = (
    '<div style="max-height:{};overflow:auto;font:12px/1.5 ui-monospace,monospace;margin:4px'
    ' 8px">{}</div>'
)
"""HTML of a scroll box, with its CSS height and its content."""


def scroll_box(content: str, height: str = "40vh") -> str:
    """Return HTML in a box with a scroll bar from a CSS height on."""
    return _SCROLL_BOX.format(height, content)


class TreePanel(Panel):
    """Tree of frames, properties of the picked frame, and controls that move it."""

    def _build(self, gui: Any, tabs: Any) -> None:
        scene = self._viewer.scene
        self._drawn: SceneGraph | None = None
        self._gizmo: Any = None
        self._is_updating = False  # while this panel changes the gizmo
        with tabs.add_tab("Scene"):
            self._tree, self._properties = gui.add_html(""), gui.add_html("")
            self._moves = gui.add_checkbox("Move it", False, hint="a gizmo at the picked frame")
            self._moves.on_update(lambda _: self.update())
            hint = "the frame keeps its pose in the world"
            self._parent = gui.add_dropdown("New parent", ("", *scene.frame_names), hint=hint)
            self._parent.on_update(lambda _: self._reparent())
            gui.add_button("Contacts in red").on_click(lambda _: self._show_contacts())
            if scene.noisy_frames:
                self._spread = gui.add_checkbox("Covariance (2 sigma)", True)
                self._spread.on_update(lambda _: self._draw_ellipsoids())

    def update(self) -> None:
        """Show the current state of the viewer."""
        viewer = self._viewer
        scene, q, frame = viewer.scene, viewer.q, viewer.picked
        if scene is not self._drawn:
            self._drawn = scene
            self._tree.content = scroll_box(_tree_html(scene), "46vh")
        hint = "Click a body or a row."
        self._properties.content = scroll_box(
            hint if frame is None else _properties_html(scene, q, frame)
        )
        has_gizmo = self._moves.value and frame is not None and scene.parent(frame) is not None
        if has_gizmo and frame is not None:
            self._place_gizmo(scene.pose(frame, q=q))
        elif self._gizmo is not None:
            self._gizmo.remove()
            self._gizmo = None
        if scene.noisy_frames:
            self._draw_ellipsoids()

    def _place_gizmo(self, pose: Pose) -> None:
        """Set the gizmo to the pose of the picked frame."""
        if self._gizmo is None:
            self._gizmo = self._viewer.server.scene.add_transform_controls(
                "/gizmo", scale=0.18, depth_test=False
            )
            self._gizmo.on_update(lambda _: self._follow_gizmo())
        if not self._is_updating:
            self._gizmo.position, self._gizmo.wxyz = pose.translation, pose.quat_xyzw[[3, 0, 1, 2]]

    def _follow_gizmo(self) -> None:
        """Move the picked frame to the pose of the gizmo."""
        viewer, frame = self._viewer, self._viewer.picked
        parent = viewer.scene.parent(frame) if frame is not None else None
        if self._gizmo is None or frame is None or parent is None:
            return
        w, x, y, z = self._gizmo.wxyz
        root_from_frame = Pose(np.asarray(self._gizmo.position, dtype=float), [x, y, z, w])
        scene = viewer.scene
        parent_pose = scene.pose(parent, q=viewer.q)
        joint_pose = scene.local_pose(frame).inverse() @ scene.pose(
            frame, relative_to=parent, q=viewer.q
        )
        # The joint keeps its value.
        local_pose = parent_pose.inverse() @ root_from_frame @ joint_pose.inverse()
        self._is_updating = True
        try:
            viewer.set_state(scene.set_pose(frame, local_pose), viewer.q)
        finally:
            self._is_updating = False

    def _reparent(self) -> None:
        """Set the parent of the picked frame to the selected one."""
        viewer, frame, parent = self._viewer, self._viewer.picked, self._parent.value
        if frame is None or not parent or viewer.scene.parent(frame) == parent:
            return
        try:
            viewer.set_state(viewer.scene.reparent(frame, parent, q=viewer.q), viewer.q)
        except TmkitError as error:
            viewer.notify("Not possible", str(error), is_error=True)
        self._parent.value = ""

    def _show_contacts(self) -> None:
        """Paint overlapping frames, and report their pairs."""
        from tmkit.motion import CollisionWorld

        viewer = self._viewer
        movable = viewer.scene.frames_of_class("movable")
        contacts = CollisionWorld(viewer.scene, movable=movable).contacts(viewer.q)
        deep = [contact for contact in contacts if contact.distance < -_CONTACT_DEPTH]
        viewer.paint(
            {frame: RED for contact in deep for frame in (contact.frame_a, contact.frame_b)}
        )
        texts = [f"{c.frame_a} and {c.frame_b} by {-1000.0 * c.distance:.1f} mm" for c in deep[:8]]
        count = len(contacts) - len(deep)
        text = f"{'; '.join(texts) or 'None'}. {count} other pairs touch."
        viewer.notify(f"{len(deep)} pairs overlap", text)

    def _draw_ellipsoids(self) -> None:
        """Draw the position covariances of noisy frames."""
        import trimesh

        viewer = self._viewer
        ball = trimesh.creation.icosphere(subdivisions=2)
        scales, quaternions, positions = [], [], []
        for frame in viewer.scene.noisy_frames:
            gaussian = viewer.scene.gaussian_pose(frame, q=viewer.q)
            variances, axes = np.linalg.eigh(gaussian.covariance[:3, :3])
            axes[:, 0] *= np.sign(np.linalg.det(axes))
            pose = gaussian.mean @ Pose.from_rotation_matrix(np.zeros(3), axes)
            half_axes = _ELLIPSOID_SIGMAS * np.sqrt(np.maximum(variances, 0.0))
            scales.append(np.maximum(half_axes, 1e-3))
            quaternions.append(pose.quat_xyzw[[3, 0, 1, 2]])
            positions.append(pose.translation)
        viewer.server.scene.add_batched_meshes_simple(
            "/covariance",
            ball.vertices,
            ball.faces,
            batched_wxyzs=np.array(quaternions),
            batched_positions=np.array(positions),
            batched_scales=np.array(scales),
            batched_colors=(70, 10, 140),
            opacity=0.75,
            cast_shadow=False,
            receive_shadow=False,
            visible=self._spread.value,
        )


def _tree_html(scene: SceneGraph) -> str:
    """Return the tree as rows of HTML, which the page's script picks by ``data-tmkit-frame``."""
    rows: list[str] = []
    stack = [(root, 0) for root in reversed(scene.root_names)]
    while stack and len(rows) < _MAX_ROWS:
        name, depth = stack.pop()
        joint, classes = scene.joint(name), scene.classes(name)
        kind = f" [{joint.type}]" if joint.type not in ("fixed", "free") else ""
        more = f" ({', '.join(classes)})" if classes else ""
        style = f"padding-left:{0.6 * min(depth, 20)}em;cursor:pointer;white-space:nowrap"
        text = html.escape(name)
        rows.append(
            f'<div data-tmkit-frame="{text}" style="{style}">{text}<span'
            f' style="opacity:.6">{kind}{html.escape(more)}</span></div>'
        )
        stack.extend((child, depth + 1) for child in reversed(scene.children(name)))
    hidden = len(scene) - len(rows)
    return "".join(rows) + (f"<div>and {hidden} more frames</div>" if hidden > 0 else "")


def _properties_html(scene: SceneGraph, q: ArrayLike, frame: str) -> str:
    """Return the properties of a frame as rows of HTML."""
    parent, pose = scene.parent(frame), scene.pose(frame, q=q)
    rows = [
        ("frame", frame),
        ("parent", parent or "none"),
        ("position", _format_numbers(pose.translation, "m")),
    ]
    if parent is not None:
        in_parent = scene.pose(frame, relative_to=parent, q=q).translation
        rows.append(("in parent", _format_numbers(in_parent, "m")))
    rows.append(("xyzw", _format_numbers(pose.quat_xyzw, "")))
    if attributes := scene.attributes(frame):
        text = ", ".join(f"{key}={attributes[key]}" for key in sorted(attributes))
        rows.append(("attributes", text))
    if frame in scene.noisy_frames:
        sigma = scene.standard_deviation(frame, q=q)[:3]
        rows.append(("sigma", _format_numbers(1000.0 * sigma, "mm", 1)))
    return "".join(f"<div><b>{name}</b> {html.escape(text)}</div>" for name, text in rows)


def _format_numbers(values: NDArray[np.float64], unit: str, digits: int = 3) -> str:
    """Return numbers with a unit."""
    return " ".join(f"{value:.{digits}f}" for value in values) + f" {unit}"


class JointsPanel(Panel):
    """Sliders of the joints, and the ready configuration of the arms."""

    def _build(self, gui: Any, tabs: Any) -> None:
        viewer, scene = self._viewer, self._viewer.scene
        self._is_updating = False  # while this panel changes the sliders
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
            for entry, name in enumerate(scene.joint_names[:_MAX_JOINTS]):
                low, high = self._range(scene, entry)
                value = float(np.clip(viewer.q[entry], low, high))
                slider = gui.add_slider(
                    name, min=low, max=high, step=(high - low) / 1000.0, initial_value=value
                )
                slider.on_update(lambda _, entry=entry: self._move(entry))
                self._sliders.append(slider)

    @staticmethod
    def _range(scene: SceneGraph, entry: int) -> tuple[float, float]:
        """Return the range of the slider of a joint [rad or m]."""
        low, high = (float(value) for value in scene.joint_limits[entry])
        half = _UNLIMITED_RANGES.get(scene.joint(scene.joint_frames[entry]).type, np.pi)
        return (low if np.isfinite(low) else -half), (high if np.isfinite(high) else half)

    def update(self) -> None:
        """Show the current state of the viewer."""
        self._is_updating = True
        try:
            for slider, value in zip(self._sliders, self._viewer.q, strict=False):
                slider.value = float(np.clip(value, slider.min, slider.max))
        finally:
            self._is_updating = False

    def _move(self, entry: int) -> None:
        """Set a joint to the value of its slider."""
        change = abs(self._viewer.q[entry] - self._sliders[entry].value)
        if not self._is_updating and change > 1e-12:
            q = np.array(self._viewer.q)
            q[entry] = self._sliders[entry].value
            self._viewer.set_state(self._viewer.scene, q)

    def _write(self) -> None:
        """Show the current configuration as text of a robot description."""
        values = zip(self._viewer.scene.joint_names, self._viewer.q, strict=True)
        lines = ["[ready]", *(f'"{name}" = {value:.4f}' for name, value in values)]
        self._text.content = scroll_box(f"<pre>{html.escape(chr(10).join(lines))}</pre>")


class FactsPanel(Panel):
    """Facts that the problem's semantics derive from the state, with changes since the start."""

    def _build(self, gui: Any, tabs: Any) -> None:
        from tmkit.robots.robot_files import find_manipulators
        from tmkit.tamp import load_planning_domain
        from tmkit.tamp.domains.state_derivation import StateDeriver

        viewer, problem = self._viewer, self._viewer.problem
        assert problem is not None, "only viewers with a problem have this panel"
        arms = find_manipulators(problem.robots, viewer.scene)
        domain = load_planning_domain(problem.domain, robot=arms, semantics=problem.semantics)
        self._deriver = StateDeriver(domain, domain.semantics.objects(viewer.scene))
        self._first = self._last = self._deriver.derive(viewer.scene, viewer.q)
        with tabs.add_tab("Facts"):
            self._text = gui.add_html("")

    def update(self) -> None:
        """Show the current state of the viewer."""
        viewer = self._viewer
        try:
            self._last = self._deriver.derive(viewer.scene, viewer.q, self._last)
        except TmkitError as error:
            self._text.content = scroll_box(
                f'<div style="color:#c53030">{html.escape(str(error))}</div>'
            )
            return
        first, last = self._first.state.facts, self._last.state.facts
        strike = "#c53030;text-decoration:line-through"
        parts = [_fact_rows("Added since the start", last - first, "#2f855a")]
        parts += [_fact_rows("Deleted since the start", first - last, strike)]
        parts += ["<b>Unchanged</b>"]
        groups: dict[str, list[str]] = {}
        for fact in sorted(map(str, last & first)):
            groups.setdefault(fact[1:].split(" ")[0].rstrip(")"), []).append(fact)
        for name, facts in sorted(groups.items(), key=lambda item: len(item[1])):
            rows = _fact_rows("", facts, "inherit")
            summary = f"{html.escape(name)}: {len(facts)} facts"
            details = f"<details><summary>{summary}</summary>{rows}</details>"
            parts.append(rows if len(facts) <= _MAX_FACTS else details)
        self._text.content = scroll_box("".join(parts), "60vh")


def _fact_rows(title: str, facts: Collection[object], style: str) -> str:
    """Return a title and sorted facts as rows of HTML."""
    rows = (
        f'<div style="color:{style}">{html.escape(fact)}</div>' for fact in sorted(map(str, facts))
    )
    return (f"<b>{title}</b>" if title and facts else "") + "".join(rows)


class PlanPanel(Panel):
    """Planning from the current state, and comparison of versions of a plan."""

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
        """Compare the current state with a version of the plan, of which 0 is the start."""
        viewer, timeline = self._viewer, self._viewer.timeline
        if timeline is not None:
            steps = timeline.plan.steps
            before = timeline.plan.scene if number == 0 else steps[number - 1].scene
            viewer.compare(before, viewer.scene, q=viewer.q)
            with viewer.tabs.add_tab("Plan"):
                back = viewer.server.gui.add_button("Back to the plan")
            back.on_click(lambda _: viewer.show(timeline.plan, problem=viewer.problem))

    def _start(self) -> None:
        """Start planning in a thread."""
        self._button.disabled = True
        threading.Thread(target=self._plan, name="tmkit planning", daemon=True).start()

    def _plan(self) -> None:
        """Plan from the current state, and show the result."""
        from tmkit.tamp import PlanningOptions, solve

        viewer = self._viewer
        assert viewer.problem is not None, "only viewers with a problem have this button"
        try:
            problem = replace(viewer.problem, scene=viewer.scene, q=viewer.q, goal=self._goal.value)
            viewer.notify("Planning", self._goal.value)
            options = PlanningOptions(time_limit=float(self._seconds.value), record_tree=True)
            result = solve(problem, options)
            viewer.show(result, problem=problem)
            viewer.notify(result.status.value, result.explanation, is_error=result.plan is None)
        except TmkitError as error:
            viewer.notify("Not planned", str(error), is_error=True)
            self._button.disabled = False


_CHANGES = {
    "added": (0.16, 0.65, 0.30, 1.0),
    "removed": (0.86, 0.12, 0.12, 1.0),
    "changed": (0.95, 0.55, 0.10, 1.0),
}
"""Colour by kind of difference."""

_CHANGE_TITLES = {
    "added": "Green (added)",
    "removed": "Red (removed)",
    "changed": "Orange (changed)",
}
"""Title of the frames of a kind of difference."""

_MAX_NAMES = 20
"""Largest number of frames that are listed for a kind of difference."""


def compare_versions(
    before: SceneGraph, after: SceneGraph
) -> tuple[tuple[dict[str, Color], dict[str, Color]], str]:
    """Return the colours of differing frames in both versions, and a list of the differences."""
    paints: tuple[dict[str, Color], dict[str, Color]] = {}, {}
    names: dict[str, list[str]] = {kind: [] for kind in _CHANGES}
    for frame in diff(before, after).frames:
        kind = "added" if frame.before is None else "removed" if frame.after is None else "changed"
        fields = f" ({', '.join(frame.fields)})" if kind == "changed" else ""
        for paint, scene, version in zip(
            paints, (before, after), (frame.before, frame.after), strict=True
        ):
            if version is not None:
                paint.update(dict.fromkeys(scene.subtree(version.name), _CHANGES[kind]))
                name = version.name
        names[kind].append(name + fields)
    texts = []
    for kind, frames in names.items():
        more = f" and {len(frames) - _MAX_NAMES} more" if len(frames) > _MAX_NAMES else ""
        if frames:
            texts.append(f"{_CHANGE_TITLES[kind]}: {', '.join(frames[:_MAX_NAMES])}{more}")
    return paints, "; ".join(texts) or "No difference"


def are_drawn_differently(before: SceneGraph, after: SceneGraph) -> bool:
    """Return whether two versions differ in more than poses, so that a redraw is needed."""
    return before.frame_names != after.frame_names or any(
        "shapes" in frame.fields for frame in diff(before, after).frames
    )


def latest_configuration(scene: SceneGraph, q: ArrayLike | None = None) -> NDArray[np.float64]:
    """Return the latest stamped joint values (n_joints,), with values of q or zero elsewhere."""
    # The joints of versions can differ.
    has_size = q is not None and np.size(np.asarray(q)) == len(scene.joint_names)
    base = q if has_size else scene.zero_configuration()
    return configuration(scene, math.inf, policy="clamped", q=base)


class VersionsPanel:
    """Slider over the versions of a store, the oldest first. It remains after a redraw."""

    def __init__(
        self, viewer: Stage, store: Store, log: list[Version], q: ArrayLike | None
    ) -> None:
        self._viewer, self._store = viewer, store
        self._log, self._q = log, q
        self._drawn: tuple[SceneGraph, bool] | None = None
        gui: Any = viewer.server.gui
        self._folder, last = gui.add_folder("Versions", order=-1.0), len(log)
        with self._folder:
            self._number = gui.add_slider("Version", 1, max(2, last), 1, last, disabled=last == 1)
            self._marks = gui.add_checkbox(
                "Mark changes", True, hint="differences from the previous version"
            )
            self._about = gui.add_html("")
        self._number.on_update(lambda _: self._draw())
        self._marks.on_update(lambda _: self._draw())
        self._draw()

    def remove(self) -> None:
        """Remove the slider."""
        self._folder.remove()

    def _draw(self) -> None:
        """Draw the version of the slider, with its differences from the previous version."""
        number, is_marked = min(int(self._number.value), len(self._log)), bool(self._marks.value)
        version, description, colors = self._log[number - 1], "", dict[str, Color]()
        try:
            scene = self._store.get(version.id)
            if version.parents and is_marked:
                parent = self._store.get(version.parents[0])
                (_, colors), description = compare_versions(parent, scene)
        except TmkitError as error:
            self._viewer.notify("This version cannot be read", str(error), is_error=True)
            return
        q, drawn = latest_configuration(scene, self._q), self._drawn
        if drawn is None or drawn[1] != is_marked or are_drawn_differently(drawn[0], scene):
            paint = dict.fromkeys(scene.frame_names, PALE) if is_marked else None
            self._viewer.draw(scene, q, panels=[TreePanel], paint=paint, keeps_view=True)
        else:
            self._viewer.set_state(scene, q)
        self._viewer.paint(colors)
        self._drawn = scene, is_marked
        title = f"<b>{number} of {len(self._log)}</b> {version.id[:12]}"
        lines = [title, html.escape(version.message or ""), html.escape(description)]
        if not lines[1]:
            del lines[1]
        self._about.content = scroll_box("<br>".join(lines), "20vh")
