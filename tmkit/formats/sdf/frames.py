"""Named frames and joints of SDF, as frames with one parent each and joints of one degree of freedom.

Each model is a scope; ``a::b`` names the frame ``b`` of the model ``a`` in it. A pose is relative
to the frame of its ``relative_to``, by default the model's, for a joint the child's, for a frame
the one it is attached to.

Joints of SDF are undirected edges between links. In the order of the file, each that does not close
a loop is part of the forest; one that does is omitted with a note. The root of a tree is the world,
a link of a static model, or the first link that is no joint's child. A joint whose child is then
the link above is reversed, and its value means the same. A joint that is not at the origin of the
link below it has a frame ``LINK/JOINT`` there. A ball joint is three revolute ones, as in URDF and
MJCF; a universal one (and revolute2) turns about ``axis`` and ``axis2``; a screw turns and slides,
and the slide mimics the turn. A gearbox is a revolute joint that its reference body does not drive.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tmkit._support.source_location import did_you_mean
from tmkit._support.xml import XmlElement
from tmkit.formats.spec.model import FrameSpec
from tmkit.formats.spec.parts import JointSpec, MimicSpec
from tmkit.formats.spec.values import JointEdge, frames_on_joint
from tmkit.formats.urdf.reader import UNIT_AXES, inverted_limits_reason
from tmkit.spatial import Pose

HOME = "__model__"
_FORMATS = ("euler_rpy", "quat_xyzw")


@dataclass(slots=True, eq=False)
class Node:
    """A named frame."""

    name: str  # in the scene
    kind: str  # link, joint, frame, model or world
    element: XmlElement
    scope: Scope  # in which relative_to is looked up
    inner: Scope  # in which attached_to is
    relative_to: str = ""
    pose: Pose = field(default_factory=Pose.identity)  # relative to the frame relative_to
    attached_to: str = ""  # the frame with which it moves, empty for a link and the world
    placed: Pose | None = None  # its pose in the world and its link, once they are known
    carrier: Node | None = None

    def link(self, world: Node) -> Node:
        """Return the link, or the world, with which the frame moves."""
        path: dict[Node, None] = {}
        node = self
        while node.carrier is None and node.attached_to:
            node = _next(path, node, node.inner.find(node.attached_to, node.element), "attached")
        carrier = node.carrier or (node if node.kind == "link" else world)
        for node in path:
            node.keep_carrier(carrier)
        return carrier

    def in_world(self) -> Pose:
        """Return the pose in the world."""
        path: dict[Node, None] = {}
        node = self
        while node.placed is None:
            node = _next(path, node, node.scope.find(node.relative_to, node.element), "placed")
        pose = node.placed
        for node in reversed(path):
            pose = pose @ node.pose
            node.keep_pose(pose)
        return pose

    def keep_carrier(self, carrier: Node) -> None:
        """Keep the link, or the world, with which the frame moves."""
        self.carrier = carrier

    def keep_pose(self, pose: Pose) -> None:
        """Keep the pose in the world."""
        self.placed = pose

    def complete(self, pose: Pose, attached_to: str) -> None:
        """Set the pose and the canonical link of a model, whose frames are now known."""
        self.pose, self.attached_to = pose, attached_to

    def in_model(self, model: Node) -> Pose:
        """Return the pose in the model of which the frame is part."""
        path: dict[Node, None] = {}
        node, pose = self, Pose.identity()
        while node is not model:
            pose = node.pose @ pose
            node = _next(path, node, node.scope.find(node.relative_to, node.element), "placed")
        return pose


def _next(path: dict[Node, None], node: Node, following: Node, word: str) -> Node:
    """Return the next frame of a path, which must not have been passed."""
    path[node] = None
    if following in path:
        passed = [*path]
        around = " -> ".join(one.name for one in [*passed[passed.index(following) :], following])
        raise node.element.place.error(f"frames are {word} in a cycle: {around}")
    return following


@dataclass(slots=True, eq=False)
class Scope:
    """The frames of a model or world by name, and the scopes of models in it; ``prefix`` is of names in the scene."""

    prefix: str
    nodes: dict[str, Node] = field(default_factory=dict)
    models: dict[str, Scope] = field(default_factory=dict)

    def add(self, name: str, node: Node, *, is_old: bool) -> None:
        """Add a frame under a new name; before version 1.7 a link and a joint may share one, then the link's."""
        earlier = self.nodes.get(name)
        if earlier is None or (is_old and node.kind == "link" != earlier.kind):
            self.nodes[name] = node
        elif not is_old or earlier.kind == node.kind:
            raise node.element.place.error(
                f"the name '{name}' is already declared at {earlier.element.place}"
            )

    def find(self, name: str, at: XmlElement) -> Node:
        """Return the frame of a name; ``at`` is for messages."""
        scope, rest = self, name
        while rest not in scope.nodes:
            head, _, tail = rest.partition("::")
            if head not in scope.models or not tail:
                raise at.place.error(
                    f"there is no frame '{name}' in this model{did_you_mean(name, self.names())}"
                )
            scope, rest = scope.models[head], tail
        return scope.nodes[rest]

    def names(self) -> list[str]:
        """Return all names by which frames are found from here."""
        inner = [f"{head}::{name}" for head, scope in self.models.items() for name in scope.names()]
        return [*self.nodes, *inner]


def pose_of(element: XmlElement) -> tuple[Pose, str]:
    """Return the pose of an element, and the frame that it is said to be relative to; empty if it is not."""
    pose = element.child("pose")
    if pose is None:
        return Pose.identity(), ""
    # the latter before version 1.7
    relative_to = pose.get("relative_to") or pose.get("frame") or ""
    if not pose.get("value"):
        return Pose.identity(), relative_to
    kind = pose.get("rotation_format") or _FORMATS[0]
    if kind not in _FORMATS:
        hint = did_you_mean(kind, _FORMATS)
        raise pose.place.error(
            f"unknown rotation format '{kind}'{hint} (known: {', '.join(_FORMATS)})"
        )
    x, y, z, *turn = pose.numbers("value", (6 if kind == _FORMATS[0] else 7,))
    if kind == _FORMATS[0]:
        angles = [math.radians(angle) for angle in turn] if is_true(pose, "degrees") else turn
        return Pose.from_rpy((x, y, z), angles), relative_to
    if math.hypot(*turn) < 1e-6:
        raise pose.place.error(f"the quaternion of <pose> is zero, received '{pose.get('value')}'")
    return Pose((x, y, z), turn), relative_to


def is_true(element: XmlElement, name: str) -> bool:
    """Return whether an attribute says yes; by default it says no."""
    word = (element.get(name) or "false").lower()
    if word not in ("true", "false", "1", "0"):
        raise element.place.error(
            f"'{name}' of <{element.tag}>: expected true or false, received '{word}'"
        )
    return word in ("true", "1")


_UNLIMITED = 1e16  # what SDF writes for no limit

# The suffixes of the joints that stand for one of each type, and the element that has the axis.
_ONE, _TWO = (("", "axis"),), (("/axis", "axis"), ("/axis2", "axis2"))
TYPES: Mapping[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(("revolute", "continuous", "prismatic", "gearbox"), _ONE),
    **dict.fromkeys(("universal", "revolute2"), _TWO),
    "ball": (),
    "fixed": (),
    "screw": (*_ONE, ("/slide", "axis")),
}


@dataclass(slots=True, eq=False)
class SdfJoint(JointEdge):
    """A joint between the links of its parent and its child."""

    node: Node  # its frame
    kind: str  # its type, fixed in a static model
    parent: str  # the name of its parent's frame
    home: str  # the name of the model's frame
    turned_axes: bool  # whether axes are in that by default

    def find_ends(self, world: Node) -> None:
        """Look up the links that the joint joins."""
        scope, at = self.node.scope, self.node.element
        names = (self.parent, self.node.attached_to)
        self.top, self.bottom = (
            (world if name == "world" else scope.find(name, at)).link(world) for name in names
        )


def frames_of(
    frame: FrameSpec, joint: SdfJoint, joints: Mapping[Node, SdfJoint]
) -> list[FrameSpec]:
    """Return the frame of the link below a joint, after the frames between that the joint needs."""
    above, below = (joint.bottom, joint.top) if joint.is_reversed else (joint.top, joint.bottom)
    at, place, prefix = joint.node.in_world(), joint.node.element.place, joint.node.scope.prefix
    pose, rest = above.in_world().inverse() @ at, at.inverse() @ below.in_world()
    steps = [(step.name.removeprefix(prefix), step) for step in _steps(joint, joints)]
    return frames_on_joint(
        frame, above.name, pose, rest, steps, is_reversed=joint.is_reversed, place=place
    )


def _steps(joint: SdfJoint, joints: Mapping[Node, SdfJoint]) -> Iterator[JointSpec]:
    """Yield the joints of one degree of freedom, with axes in the frame of the joint."""
    element, name = joint.node.element, joint.node.name
    if joint.kind == "fixed":
        yield JointSpec(place=element.place)
    elif joint.kind == "ball":
        element.note(f"the ball joint '{name}' is read as three turns, '{name}/x', '/y' and '/z'")
        for letter, direction in UNIT_AXES.items():
            yield JointSpec("continuous", f"{name}/{letter}", direction, place=element.place)
    elif joint.kind == "gearbox":
        element.note(
            f"the gearbox '{name}' is read as a turn; its reference body does not drive it"
        )
    for suffix, tag in TYPES[joint.kind]:
        axis = element.child(tag)
        if axis is None:
            element.note(f"the joint '{name}' has no <{tag}>; it is taken as z")
        spec = _axis_spec(joint, axis or element, f"{name}{suffix}", joints)
        if suffix == "/slide":
            rule = MimicSpec(name, _pitch(element) / (2.0 * math.pi), 0.0, element.place)
            spec = JointSpec("prismatic", spec.name, spec.axis, mimic=rule, place=element.place)
        yield spec


def _pitch(element: XmlElement) -> float:
    """Return the metres a revolution of a screw; the older element has radians a metre, and turns the other way."""
    old = element.number("thread_pitch", -2.0 * math.pi)
    if old == 0.0:
        raise element.place.error(
            "'thread_pitch' of <joint>: expected a number other than 0, received 0"
        )
    return element.number("screw_thread_pitch", -2.0 * math.pi / old)


def _axis_spec(
    joint: SdfJoint, axis: XmlElement, name: str, joints: Mapping[Node, SdfJoint]
) -> JointSpec:
    """Return the joint about or along an axis."""
    direction = axis.triple("xyz", (0.0, 0.0, 1.0))
    if math.hypot(*direction) < 1e-9:
        raise axis.place.error("'xyz' of <axis>: expected a direction, received zeros")
    xyz = axis.child("xyz")
    frame = xyz.get("expressed_in") if xyz is not None else None
    if joint.turned_axes or is_true(axis, "use_parent_model_frame"):
        frame = HOME
    if frame:
        other = joint.node.scope.find(joint.home if frame == HOME else frame, axis)
        x, y, z = (
            joint.node.in_world().inverse().rotate(other.in_world().rotate(direction)).tolist()
        )
        direction = (x, y, z)
    kind = joint.kind if joint.kind in ("prismatic", "continuous") else "revolute"
    spec = JointSpec(kind, name, direction, mimic=_mimic(axis, joint, joints), place=axis.place)
    limit, dynamics = axis.child("limit"), axis.child("dynamics")
    if limit is not None:
        spec = _limited(spec, limit)
    if kind == "revolute" and math.isinf(spec.lower) and math.isinf(spec.upper):
        spec = replace(spec, type="continuous")
    if dynamics is not None:
        damping, friction = (
            dynamics.not_negative("damping", 0.0),
            dynamics.not_negative("friction", 0.0),
        )
        spec = replace(spec, damping=damping, friction=friction)
        if dynamics.number("spring_stiffness", 0.0):
            dynamics.note(f"the spring of the joint '{name}' is omitted")
    return spec


def _limited(spec: JointSpec, limit: XmlElement) -> JointSpec:
    """Return the joint with its limits; those that mean none are infinite."""
    given = (
        limit.number(name, math.inf, infinite=True) for name in ("upper", "velocity", "effort")
    )
    lower, (upper, *most) = limit.number("lower", -math.inf, infinite=True), given
    velocity, effort = (math.inf if one < 0.0 or one >= _UNLIMITED else one for one in most)
    lower, upper = (
        math.copysign(math.inf, one) if abs(one) >= _UNLIMITED else one for one in (lower, upper)
    )
    if lower > upper and spec.type != "continuous":
        raise limit.place.error(
            inverted_limits_reason(f"the {spec.type} joint '{spec.name}'", lower, upper)
        )
    if spec.type == "continuous":
        lower, upper = -math.inf, math.inf
    return replace(spec, lower=lower, upper=upper, velocity=velocity, effort=effort)


def _mimic(axis: XmlElement, joint: SdfJoint, joints: Mapping[Node, SdfJoint]) -> MimicSpec | None:
    mimic = axis.child("mimic")
    if mimic is None:
        return None
    name, which = mimic.text("joint"), mimic.get("axis") or "axis"
    nodes = {
        key: node
        for key, node in joint.node.scope.nodes.items()
        if node in joints and node is not joint.node
    }
    steps = TYPES[joints[nodes[name]].kind] if name in nodes else ()
    suffix = next((end for end, tag in steps if tag == which), None)
    if suffix is None:
        hint = did_you_mean(name, nodes)
        mimic.note(
            f"the joint to mimic, '{name}', is not a joint that moves{hint}; '{joint.node.name}'"
            " moves by itself"
        )
        return None
    multiplier = mimic.number("multiplier", 1.0)
    offset = mimic.number("offset", 0.0) - multiplier * mimic.number("reference", 0.0)
    return MimicSpec(f"{nodes[name].name}{suffix}", multiplier, offset, mimic.place)
