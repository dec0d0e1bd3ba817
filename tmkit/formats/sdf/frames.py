"""Named frames of SDF: scopes, poses relative to other frames, and the links that frames are attached to.

Each model is a scope; ``a::b`` names the frame ``b`` of the model ``a`` in it. A pose is relative to the frame of its
``relative_to``, by default the model's, for a joint the child's, for a frame the one it is attached to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tmkit._support.source_location import did_you_mean
from tmkit._support.xml import XmlElement
from tmkit.spatial import Pose

HOME = "__model__"
_FORMATS = ("euler_rpy", "quat_xyzw")


@dataclass(slots=True, eq=False)
class Node:
    """A named frame.

    Attributes:
        name: in the scene; ``kind``: link, joint, frame, model or world.
        scope: in which ``relative_to`` is looked up; ``inner``: in which ``attached_to`` is.
        pose: relative to the frame ``relative_to``.
        attached_to: the frame with which it moves, empty for a link and the world.
        placed, carrier: its pose in the world and its link, once they are known.
    """

    name: str
    kind: str
    element: XmlElement
    scope: Scope
    inner: Scope
    relative_to: str = ""
    pose: Pose = field(default_factory=Pose.identity)
    attached_to: str = ""
    placed: Pose | None = None
    carrier: Node | None = None

    def link(self, world: Node) -> Node:
        """Return the link, or the world, with which the frame moves."""
        path: dict[Node, None] = {}
        node = self
        while node.carrier is None and node.attached_to:
            node = _next(path, node, node.inner.find(node.attached_to, node.element), "attached")
        carrier = node.carrier or (node if node.kind == "link" else world)
        for node in path:
            node.carrier = carrier
        return carrier

    def in_world(self) -> Pose:
        """Return the pose in the world."""
        path: dict[Node, None] = {}
        node = self
        while node.placed is None:
            node = _next(path, node, node.scope.find(node.relative_to, node.element), "placed")
        pose = node.placed
        for node in reversed(path):
            pose = node.placed = pose @ node.pose
        return pose

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
            raise node.element.place.error(f"the name '{name}' is already declared at {earlier.element.place}")

    def find(self, name: str, at: XmlElement) -> Node:
        """Return the frame of a name; ``at`` is for messages."""
        scope, rest = self, name
        while rest not in scope.nodes:
            head, _, tail = rest.partition("::")
            if head not in scope.models or not tail:
                raise at.place.error(f"there is no frame '{name}' in this model{did_you_mean(name, self.names())}")
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
    relative_to = pose.get("relative_to") or pose.get("frame") or ""  # the latter before version 1.7
    if not pose.get("value"):
        return Pose.identity(), relative_to
    kind = pose.get("rotation_format") or _FORMATS[0]
    if kind not in _FORMATS:
        hint = did_you_mean(kind, _FORMATS)
        raise pose.place.error(f"unknown rotation format '{kind}'{hint} (known: {', '.join(_FORMATS)})")
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
        raise element.place.error(f"'{name}' of <{element.tag}>: expected true or false, received '{word}'")
    return word in ("true", "1")
