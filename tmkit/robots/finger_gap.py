"""Distance between the fingers of a hand, and the free depth behind the tool point.

A thin plate at the tool point, perpendicular to the closing direction, moves to either side until
it touches a finger. Its two positions are the surfaces that hold an object. The plate is as large
as a fingertip, so a slit or a screw hole is ignored. For the depth, a box of nearly the distance
between the fingers moves from the tool point back to the palm. In a hand of levers, it may meet the
knuckles before.

The plate advances by its distance to the finger, which never passes the surface ("conservative
advancement"; Mirtich, "Impulse-based dynamic simulation of rigid body systems", 1996).

Invariants: surfaces are those of the collision shapes, of meshes as their triangles. The depth is
that of a planner, for which meshes collide as their convex hulls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tmkit._core import CollisionWorld
from tmkit.graph import AttachedShape, Box, Prismatic, SceneGraph
from tmkit.spatial import Pose

_PLATE_SIZE = 0.01
"""Width of the plate, and height of the plate of a jaw [m], about those of a fingertip."""

_PLATE_DEPTH = 0.02
"""Length of the plate behind the tool point of two moving fingers [m].

The fingertips of levers move back by a centimetre or two when they open.
"""

_PLATE_THICKNESS = 2e-5
"""Thickness of the plate [m]."""

_MAX_DISTANCE = 0.25
"""Distance from the tool point at which the search for a surface ends [m]."""

_MAX_STEPS = 400
"""Maximum number of steps of an advancing plate."""

_FIXED_SEARCH_START = 0.05
"""Distance from the tool at which the search for a fixed finger starts [m]."""

_TOUCHING_WIDTH = 5e-5
"""Distance below which fingers touch [m]."""

_TOUCH_BISECTIONS = 14
"""Number of halvings of a step, to find where the fingers touch."""

_CONTACT_DISTANCE = 1e-5
"""Distance at which a plate touches a surface [m]."""

_BOX_CLEARANCE = 0.001
"""Distance of the box of a depth from either finger [m]."""

_MIN_BOX_WIDTH = 0.002
"""Width of the narrowest box [m]."""

_BOX_HEIGHT = 0.001
"""Height of the box along z [m]."""

MAX_JAW_ANGLE = math.radians(60.0)
"""Largest angle between an open and a closed jaw [rad]; an object slips out of a wider wedge."""

_JOINTS = ("finger_gap_z", "finger_gap_y")
"""Joints of a probe along the axes of the tool."""


class FingerGap:
    """Probe of the space between the fingers of a hand.

    Args:
        scene: scene with the hand.
        tip: frame of the hand.
        tool: tip_from_tool, with y along the closing direction.
        fingers: frames of both fingers, those at smaller y first.
        is_jaw: whether the first finger is fixed.
    """

    def __init__(
        self,
        scene: SceneGraph,
        *,
        tip: str,
        tool: Pose,
        fingers: Sequence[Sequence[str]],
        is_jaw: bool,
    ) -> None:
        self._hand = scene.extract(tip)
        self._tip, self._tool = tip, tool
        self._fingers, self._is_jaw = tuple(tuple(finger) for finger in fingers), is_jaw
        end = _PLATE_SIZE / 2.0
        behind = end if is_jaw else _PLATE_DEPTH
        plate = AttachedShape(
            Box((_PLATE_SIZE, _PLATE_THICKNESS, behind + end)), Pose([0.0, 0.0, (end - behind) / 2])
        )
        self._scene = self._with_probe(plate)
        self._worlds = tuple(
            _probe_world(self._scene, finger, level="exact") for finger in self._fingers
        )
        links = [link for finger in self._fingers for link in finger]
        self._solid_world = _probe_world(self._scene, links)

    def _with_probe(self, shape: AttachedShape) -> SceneGraph:
        """Return the hand with a probe of a shape at the tool point."""
        with self._hand.edit() as edit:
            z_joint, y_joint = _JOINTS
            z_axis = Prismatic([0.0, 0.0, 1.0], name=z_joint)
            edit.add_frame(z_joint, self._tip, pose=self._tool, joint=z_axis)
            y_axis = Prismatic([0.0, 1.0, 0.0], name=y_joint)
            edit.add_frame(y_joint, z_joint, joint=y_axis, shapes=[shape])
        return edit.finish()

    def widths(self, rows: Sequence[Mapping[str, float]]) -> list[float]:
        """Return the distances between the fingers from closed to open [m].

        Args:
            rows: joint values of the hand [rad or m].

        Returns:
            The distances: 0 where the fingers overlap, infinite where a plate passes a finger.
        """
        if self._is_jaw:
            return [self._advance(1, values, start=0.0, direction=1.0) for values in rows]
        widths: list[float] = []
        for values in reversed(rows):
            low, high = self.surfaces(values)
            width = max(0.0, high - low)
            # A plate within a finger finds its outer side.
            if widths and width > widths[-1] and self._is_inside(values):
                width = 0.0
            widths.append(width)
        return widths[::-1]

    def _is_inside(self, values: Mapping[str, float]) -> bool:
        """Return whether the plate at the tool point is within the hull of a finger."""
        return self._solid_world.distance(self._scene.configuration(values)) <= 0.0

    def surfaces(self, values: Mapping[str, float], *, start: float = 0.0) -> tuple[float, float]:
        """Return the y coordinates of both fingers' surfaces at the tool point [m].

        Args:
            values: joint values of the hand [rad or m].
            start: y coordinate between the fingers at which the search starts [m].

        Returns:
            The surfaces; infinite if a plate passes a finger.
        """
        low = self._advance(0, values, start=start, direction=-1.0)
        return low, self._advance(1, values, start=start, direction=1.0)

    def find_fixed_finger(self, values: Mapping[str, float]) -> float:
        """Return the y coordinate of the surface of a jaw's fixed finger at the tool point [m].

        Args:
            values: joint values of the hand [rad or m].

        Returns:
            The surface; infinite if the plate passes the finger.
        """
        return self._advance(0, values, start=_FIXED_SEARCH_START, direction=-1.0)

    def find_touch(
        self, closed: Mapping[str, float], opened: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the joint values at which the fingers touch, between two others [rad or m].

        Args:
            closed: values at which the fingers overlap or touch.
            opened: values at which they do not.
        """
        low, high = 0.0, 1.0
        for _ in range(_TOUCH_BISECTIONS):
            fraction = (low + high) / 2.0
            values = _interpolate(closed, opened, fraction)
            is_apart = self.widths([values, opened])[0] > _TOUCHING_WIDTH
            low, high = (low, fraction) if is_apart else (fraction, high)
        return _interpolate(closed, opened, low)

    def _advance(
        self, finger: int, values: Mapping[str, float], *, start: float, direction: float
    ) -> float:
        q = np.array(self._scene.configuration(values))
        column = self._scene.joint_names.index(_JOINTS[1])
        world, y = self._worlds[finger], start
        for _ in range(_MAX_STEPS):
            q[column] = y
            distance = world.distance(q)
            if distance <= _CONTACT_DISTANCE:
                return y + direction * _PLATE_THICKNESS / 2.0
            y += direction * distance
            if abs(y - start) > _MAX_DISTANCE:
                break
        return direction * math.inf

    def max_jaw_angle(self, joint: str) -> float:
        """Return the largest motion of a jaw's joint from closed to open [rad or m].

        Args:
            joint: joint of the hand.
        """
        frame = self._hand.joint_frame(joint)
        return math.inf if self._hand.joint(frame).type == "prismatic" else MAX_JAW_ANGLE

    def depth(self, values: Mapping[str, float], *, low: float, high: float, most: float) -> float:
        """Return the free depth between two surfaces, from the tool point back [m].

        Args:
            values: joint values of the hand [rad or m].
            low: y coordinate of the first finger's surface [m].
            high: y coordinate of the other finger's surface [m].
            most: largest depth [m].

        Returns:
            The depth, at most ``most``. ``nan`` if no object fits between the surfaces.
        """
        if high - low < _MIN_BOX_WIDTH + 2.0 * _BOX_CLEARANCE:
            return math.nan
        thickness = high - low - 2.0 * _BOX_CLEARANCE
        scene = self._with_probe(AttachedShape(Box((_PLATE_SIZE, thickness, _BOX_HEIGHT))))
        world = _probe_world(scene, scene.frame_names)
        q = np.array(scene.configuration(values))
        z_column, y_column = (scene.joint_names.index(name) for name in _JOINTS)
        q[y_column], z = (low + high) / 2.0, 0.0
        for _ in range(_MAX_STEPS):
            q[z_column] = z
            distance = world.distance(q)
            if distance <= _CONTACT_DISTANCE * 5.0 and z < 0.0:
                break
            # Fingers on both sides are near all along.
            z -= max(distance, _CONTACT_DISTANCE * 10.0)
            if -z > most:
                return most
        return min(most, max(0.0, -z - _BOX_HEIGHT / 2.0))


def _probe_world(
    scene: SceneGraph, frames: Sequence[str], *, level: str = "hull"
) -> CollisionWorld:
    """Return the collision world of a probe and some frames of the hand.

    Args:
        scene: hand with the probe.
        frames: frames of the hand.
        level: detail of meshes without a level of their own.
    """
    probe, links = _JOINTS[1], set(frames)
    pairs = ((a, b) for a, b, _ in CollisionWorld(scene, level=level).pairs)
    ignored = {pair: -math.inf for pair in pairs if probe not in pair or not links & {*pair}}
    return CollisionWorld(scene, pair_margins=ignored, level=level)


def values_between(
    closed: Mapping[str, float], opened: Mapping[str, float], *, steps: int
) -> list[dict[str, float]]:
    """Return joint values at equal steps from closed to open [rad or m].

    Args:
        closed: values by joint of the closed hand.
        opened: values by joint of the open hand.
        steps: number of steps, one less than that of the values.
    """
    fractions = np.linspace(0.0, 1.0, steps + 1).tolist()
    return [_interpolate(closed, opened, fraction) for fraction in fractions]


def _interpolate(
    closed: Mapping[str, float], opened: Mapping[str, float], fraction: float
) -> dict[str, float]:
    """Return joint values at a fraction of the way from closed to open [rad or m]."""
    return {joint: closed[joint] + fraction * (opened[joint] - closed[joint]) for joint in closed}
