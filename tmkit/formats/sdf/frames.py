"""Named frames and joints of SDF.

Each model is a scope; ``a::b`` names the frame ``b`` of the model ``a``. A pose is relative to the
frame of its ``relative_to``. The default is the frame of the model, for a joint that of its child,
and for a frame that to which it is attached.

Joints of SDF are undirected edges between links. They become edges of a forest, in the order of the
file. A joint that closes a loop is omitted with a note. The root of a tree is the world, a link of
a static model, or the first link that is not a child of a joint. A joint whose child is nearer to
the root is reversed, and its value keeps its meaning. A joint away from the origin of the link
below it has a frame ``LINK/JOINT``.

* A ball joint becomes three revolute joints, as in URDF and MJCF.
* A universal joint (or revolute2) becomes revolute joints about ``axis`` and ``axis2``.
* A screw becomes a revolute joint, and a prismatic joint that mimics it.
* A gearbox becomes a revolute joint, which its reference body does not drive.
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
from tmkit.formats.urdf.reader import MIN_AXIS_LENGTH, UNIT_AXES, inverted_limits_reason
from tmkit.spatial import Pose

MODEL_FRAME = "__model__"
"""Name of the frame of the enclosing model."""

_ROTATION_FORMATS = ("euler_rpy", "quat_xyzw")
"""Representations of a rotation in ``<pose>``; the first is the default."""

_MIN_QUATERNION_NORM = 1e-6
"""Norm below which a quaternion is rejected as zero."""


@dataclass(slots=True, eq=False)
class Node:
    """A named frame.

    Attributes:
        name: name in the scene.
        kind: link, joint, frame, model or world.
        element: element of the frame.
        scope: scope in which ``relative_to`` is resolved.
        content_scope: scope in which ``attached_to`` is resolved.
        relative_to: name of the frame to which ``pose`` is relative.
        pose: pose relative to that frame.
        attached_to: name of the frame with which this one moves, or "" for a link and the world.
        cached_pose: pose in the world, or None if it is not yet computed.
        cached_link: link or world with which the frame moves, or None if it is not yet computed.
    """

    name: str
    kind: str
    element: XmlElement
    scope: Scope
    content_scope: Scope
    relative_to: str = ""
    pose: Pose = field(default_factory=Pose.identity)
    attached_to: str = ""
    cached_pose: Pose | None = None
    cached_link: Node | None = None

    def link(self, world: Node) -> Node:
        """Return the link, or the world, with which the frame moves.

        Raises:
            FileFormatError: if a name is unknown, or frames are attached in a cycle.
        """
        path: dict[Node, None] = {}
        node = self
        while node.cached_link is None and node.attached_to:
            target = node.content_scope.find(node.attached_to, node.element)
            node = _extend_path(path, node, target, "attached")
        link = node.cached_link or (node if node.kind == "link" else world)
        for node in path:
            node.set_link(link)
        return link

    def world_pose(self) -> Pose:
        """Return the pose in the world.

        Raises:
            FileFormatError: if a name is unknown, or poses are relative in a cycle.
        """
        path: dict[Node, None] = {}
        node = self
        while node.cached_pose is None:
            reference = node.scope.find(node.relative_to, node.element)
            node = _extend_path(path, node, reference, "placed")
        pose = node.cached_pose
        for node in reversed(path):
            pose = pose @ node.pose
            node.set_world_pose(pose)
        return pose

    def set_link(self, link: Node) -> None:
        """Set the link, or the world, with which the frame moves."""
        self.cached_link = link

    def set_world_pose(self, pose: Pose) -> None:
        """Set the pose in the world."""
        self.cached_pose = pose

    def set_placement(self, pose: Pose, attached_to: str) -> None:
        """Set the pose and the canonical link of a model, after its frames are read."""
        self.pose, self.attached_to = pose, attached_to

    def pose_in_model(self, model: Node) -> Pose:
        """Return the pose of a frame of a model in that model.

        Raises:
            FileFormatError: if a name is unknown, or poses are relative in a cycle.
        """
        path: dict[Node, None] = {}
        node, pose = self, Pose.identity()
        while node is not model:
            pose = node.pose @ pose
            reference = node.scope.find(node.relative_to, node.element)
            node = _extend_path(path, node, reference, "placed")
        return pose


def _extend_path(path: dict[Node, None], node: Node, following: Node, relation: str) -> Node:
    """Add a frame to a path and return the frame that follows it.

    Args:
        path: frames before, as an ordered set.
        node: the frame.
        following: the frame that follows.
        relation: relation between the two, for the message.

    Raises:
        FileFormatError: if the following frame is already in the path.
    """
    path[node] = None
    if following in path:
        nodes = [*path]
        cycle = " -> ".join(item.name for item in [*nodes[nodes.index(following) :], following])
        raise node.element.place.error(f"frames are {relation} in a cycle: {cycle}")
    return following


@dataclass(slots=True, eq=False)
class Scope:
    """The frames and models of a model or world.

    Attributes:
        prefix: prefix of the names in the scene.
        nodes: frames by name.
        models: scopes of the models by name.
    """

    prefix: str
    nodes: dict[str, Node] = field(default_factory=dict)
    models: dict[str, Scope] = field(default_factory=dict)

    def add(self, name: str, node: Node, *, is_old: bool) -> None:
        """Add a frame.

        Args:
            name: name of the frame.
            node: the frame.
            is_old: whether the version is below 1.7. A link and a joint may then have the same
                name, which names the link.

        Raises:
            FileFormatError: if another frame has the name.
        """
        earlier = self.nodes.get(name)
        if earlier is None or (is_old and node.kind == "link" != earlier.kind):
            self.nodes[name] = node
        elif not is_old or earlier.kind == node.kind:
            raise node.element.place.error(
                f"the name '{name}' is already declared at {earlier.element.place}"
            )

    def find(self, name: str, element: XmlElement) -> Node:
        """Return the frame of a name in an element.

        Raises:
            FileFormatError: if there is no such frame, at the element.
        """
        scope, inner_name = self, name
        while inner_name not in scope.nodes:
            model, _, suffix = inner_name.partition("::")
            if model not in scope.models or not suffix:
                hint = did_you_mean(name, self.names())
                raise element.place.error(f"there is no frame '{name}' in this model{hint}")
            scope, inner_name = scope.models[model], suffix
        return scope.nodes[inner_name]

    def names(self) -> list[str]:
        """Return the names of all frames in the scope, including those of its models."""
        inner_names = [
            f"{model}::{name}" for model, scope in self.models.items() for name in scope.names()
        ]
        return [*self.nodes, *inner_names]


def pose_of(element: XmlElement) -> tuple[Pose, str]:
    """Return the pose of an element, and the name of its reference frame or "".

    Raises:
        FileFormatError: if the pose is invalid.
    """
    pose = element.child("pose")
    if pose is None:
        return Pose.identity(), ""
    # The attribute was called frame before version 1.7.
    relative_to = pose.get("relative_to") or pose.get("frame") or ""
    if not pose.get("value"):
        return Pose.identity(), relative_to
    rotation_format = pose.get("rotation_format") or _ROTATION_FORMATS[0]
    if rotation_format not in _ROTATION_FORMATS:
        hint = did_you_mean(rotation_format, _ROTATION_FORMATS)
        hint += f" (known: {', '.join(_ROTATION_FORMATS)})"
        raise pose.place.error(f"unknown rotation format '{rotation_format}'{hint}")
    has_angles = rotation_format == _ROTATION_FORMATS[0]
    x, y, z, *rotation = pose.numbers("value", (6 if has_angles else 7,))
    if has_angles:
        is_in_degrees = is_true(pose, "degrees")
        rpy = [math.radians(angle) for angle in rotation] if is_in_degrees else rotation
        return Pose.from_rpy((x, y, z), rpy), relative_to
    if math.hypot(*rotation) < _MIN_QUATERNION_NORM:
        raise pose.place.error(f"the quaternion of <pose> is zero, received '{pose.get('value')}'")
    return Pose((x, y, z), rotation), relative_to


def is_true(element: XmlElement, name: str) -> bool:
    """Return the value of a boolean attribute, by default False."""
    word = (element.get(name) or "false").lower()
    if word not in ("true", "false", "1", "0"):
        raise element.place.error(
            f"'{name}' of <{element.tag}>: expected true or false, received '{word}'"
        )
    return word in ("true", "1")


_MIN_UNLIMITED = 1e16
"""Smallest limit that means no limit in SDF [rad, m, rad/s, m/s, N or N m]."""

_SINGLE = (("", "axis"),)
_DOUBLE = (("/axis", "axis"), ("/axis2", "axis2"))

TYPES: Mapping[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(("revolute", "continuous", "prismatic", "gearbox"), _SINGLE),
    **dict.fromkeys(("universal", "revolute2"), _DOUBLE),
    "ball": (),
    "fixed": (),
    "screw": (*_SINGLE, ("/slide", "axis")),
}
"""Joints of the scene by joint type of SDF: suffix of the name, and tag of the axis element."""


@dataclass(slots=True, eq=False)
class SdfJoint(JointEdge):
    """A joint between the links of its parent and its child.

    Attributes:
        node: frame of the joint.
        kind: type of the joint, which is fixed in a static model.
        parent: name of the parent frame.
        model_frame: name of the model's frame.
        has_model_axes: whether axes are expressed in the model's frame by default.
    """

    node: Node
    kind: str
    parent: str
    model_frame: str
    has_model_axes: bool

    def find_ends(self, world: Node) -> None:
        """Set the links that the joint connects.

        Raises:
            FileFormatError: if a frame is unknown.
        """
        self.top = self._end(self.parent, world)
        self.bottom = self._end(self.node.attached_to, world)

    def _end(self, name: str, world: Node) -> Node:
        """Return the link of the parent or child frame, or the world."""
        frame = world if name == "world" else self.node.scope.find(name, self.node.element)
        return frame.link(world)


def frames_of(
    frame: FrameSpec, joint: SdfJoint, joints: Mapping[Node, SdfJoint]
) -> list[FrameSpec]:
    """Return the intermediate frames of a joint, and the frame of the link below it.

    Args:
        frame: frame of the link.
        joint: the joint above the link.
        joints: all joints of the scene by their frames.
    """
    above, below = (joint.bottom, joint.top) if joint.is_reversed else (joint.top, joint.bottom)
    joint_pose = joint.node.world_pose()
    above_from_joint = above.world_pose().inverse() @ joint_pose
    joint_from_frame = joint_pose.inverse() @ below.world_pose()
    prefix = joint.node.scope.prefix
    steps = [(step.name.removeprefix(prefix), step) for step in _steps(joint, joints)]
    return frames_on_joint(
        frame,
        above.name,
        above_from_joint,
        joint_from_frame,
        steps,
        is_reversed=joint.is_reversed,
        place=joint.node.element.place,
    )


def _steps(joint: SdfJoint, joints: Mapping[Node, SdfJoint]) -> Iterator[JointSpec]:
    """Yield the joints with at most one degree of freedom, with axes in the frame of the joint."""
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
            element.note(f"the joint '{name}' has no <{tag}>; its axis defaults to z")
        spec = _axis_spec(joint, axis or element, f"{name}{suffix}", joints)
        if suffix == "/slide":
            rule = MimicSpec(name, _pitch(element) / (2.0 * math.pi), 0.0, element.place)
            spec = JointSpec("prismatic", spec.name, spec.axis, mimic=rule, place=element.place)
        yield spec


def _pitch(element: XmlElement) -> float:
    """Return the pitch of a screw [m per revolution].

    The older element ``thread_pitch`` has [rad/m] and the opposite direction.
    """
    thread_pitch = element.number("thread_pitch", -2.0 * math.pi)
    if thread_pitch == 0.0:
        raise element.place.error(
            "'thread_pitch' of <joint>: expected a number other than 0, received 0"
        )
    return element.number("screw_thread_pitch", -2.0 * math.pi / thread_pitch)


def _axis_spec(
    joint: SdfJoint, axis: XmlElement, name: str, joints: Mapping[Node, SdfJoint]
) -> JointSpec:
    """Return the joint about or along an axis.

    Args:
        joint: joint of the file.
        axis: ``<axis>`` or ``<axis2>``, or the joint element if there is none.
        name: name of the returned joint.
        joints: all joints of the scene by their frames, which it may mimic.
    """
    kind = joint.kind if joint.kind in ("prismatic", "continuous") else "revolute"
    direction = _axis_direction(joint, axis)
    spec = JointSpec(kind, name, direction, mimic=_mimic(axis, joint, joints), place=axis.place)
    limit, dynamics = axis.child("limit"), axis.child("dynamics")
    if limit is not None:
        spec = _add_limits(spec, limit)
    if kind == "revolute" and math.isinf(spec.lower) and math.isinf(spec.upper):
        spec = replace(spec, type="continuous")
    if dynamics is not None:
        damping = dynamics.not_negative("damping", 0.0)
        friction = dynamics.not_negative("friction", 0.0)
        spec = replace(spec, damping=damping, friction=friction)
        if dynamics.number("spring_stiffness", 0.0):
            dynamics.note(f"the spring of the joint '{name}' is omitted")
    return spec


def _axis_direction(joint: SdfJoint, axis: XmlElement) -> tuple[float, float, float]:
    """Return the direction of an axis in the frame of the joint.

    Raises:
        FileFormatError: if the axis has the length 0, or its frame is unknown.
    """
    direction = axis.triple("xyz", (0.0, 0.0, 1.0))
    if math.hypot(*direction) < MIN_AXIS_LENGTH:
        raise axis.place.error("'xyz' of <axis>: expected a direction, received zeros")
    xyz = axis.child("xyz")
    frame = xyz.get("expressed_in") if xyz is not None else None
    if joint.has_model_axes or is_true(axis, "use_parent_model_frame"):
        frame = MODEL_FRAME
    if not frame:
        return direction
    reference = joint.node.scope.find(joint.model_frame if frame == MODEL_FRAME else frame, axis)
    world_direction = reference.world_pose().rotate(direction)
    x, y, z = joint.node.world_pose().inverse().rotate(world_direction).tolist()
    return x, y, z


def _add_limits(spec: JointSpec, limit: XmlElement) -> JointSpec:
    """Return the joint with its limits, which are infinite where SDF means no limit.

    Raises:
        FileFormatError: if the lower limit is above the upper limit.
    """
    lower = _position_limit(limit.number("lower", -math.inf, infinite=True))
    upper = _position_limit(limit.number("upper", math.inf, infinite=True))
    velocity = _magnitude_limit(limit.number("velocity", math.inf, infinite=True))
    effort = _magnitude_limit(limit.number("effort", math.inf, infinite=True))
    if spec.type == "continuous":
        lower, upper = -math.inf, math.inf
    elif lower > upper:
        name = f"the {spec.type} joint '{spec.name}'"
        raise limit.place.error(inverted_limits_reason(name, lower, upper))
    return replace(spec, lower=lower, upper=upper, velocity=velocity, effort=effort)


def _position_limit(value: float) -> float:
    """Return a position limit, infinite where SDF means no limit [rad or m]."""
    return math.copysign(math.inf, value) if abs(value) >= _MIN_UNLIMITED else value


def _magnitude_limit(value: float) -> float:
    """Return a limit of velocity or effort, infinite where SDF means no limit."""
    return math.inf if value < 0.0 or value >= _MIN_UNLIMITED else value


def _mimic(axis: XmlElement, joint: SdfJoint, joints: Mapping[Node, SdfJoint]) -> MimicSpec | None:
    """Return the mimic rule of an axis, or None if it has no other leader in the scope.

    Args:
        axis: ``<axis>`` or ``<axis2>``.
        joint: joint of the axis.
        joints: all joints of the scene by their frames.
    """
    mimic = axis.child("mimic")
    if mimic is None:
        return None
    leader, tag = mimic.text("joint"), mimic.get("axis") or "axis"
    leaders = {
        name: node
        for name, node in joint.node.scope.nodes.items()
        if node in joints and node is not joint.node
    }
    steps = TYPES[joints[leaders[leader]].kind] if leader in leaders else ()
    suffix = next((suffix for suffix, step_tag in steps if step_tag == tag), None)
    if suffix is None:
        reason = f"the joint to mimic, '{leader}', is not a joint that moves"
        hint = did_you_mean(leader, leaders)
        mimic.note(f"{reason}{hint}; '{joint.node.name}' moves independently")
        return None
    multiplier = mimic.number("multiplier", 1.0)
    offset = mimic.number("offset", 0.0) - multiplier * mimic.number("reference", 0.0)
    return MimicSpec(f"{leaders[leader].name}{suffix}", multiplier, offset, mimic.place)
