"""Poses that are put into a scene: as edges between two frames, expressed in the reference frame.

A pose between points that are no frames' origins, or in the axes of a third frame, is converted by the poses that the
scene has, before the edge is made. :func:`add_edge` takes edges between given nodes of any kind, as files and other
programs may ask for, and refuses them by their kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from numpy.typing import ArrayLike

from tmkit._core import Fixed, Joint, SceneGraph
from tmkit.errors import CycleError, SceneError, UnknownNameError
from tmkit.graph.semantic_edges.names import OnConflict, check_names, coord_of, require_conflict_option
from tmkit.graph.semantic_edges.queries import relate
from tmkit.relations import (
    OrientationCoord,
    PositionCoord,
    PositionVector,
    SemanticPose,
    SemanticPosition,
    VectorAndMatrix,
)
from tmkit.relations.violations import SemanticError, Violation
from tmkit.spatial import Pose


def add_pose(
    scene: SceneGraph,
    pose: SemanticPose,
    *,
    joint: Joint = Fixed(),  # noqa: B008 - a value
    q: ArrayLike | None = None,
    on_conflict: OnConflict = "refuse",
) -> SceneGraph:
    """Return the scene with the pose of one frame relative to another as an edge.

    The frame must be the root of its tree; where it is a child of the same reference frame already, its pose is
    changed.

    Args:
        scene: the scene, which has both frames on the bodies that the pose names.
        pose: the pose, with its covariance if it has one; where it does not relate a frame to a frame, it is converted
            by the poses of the scene.
        joint: how the frame moves relative to its reference, at value 0 in this pose.
        q: (n_joints,) configuration for the conversion, where a joint is on the way.
        on_conflict: whether a pose that is refused is to be tried the other way round.

    Raises:
        UnknownNameError: a frame or body that is not there.
        SemanticError: a frame is not on the body that the pose names; or the conversion is not possible.
        SceneError: the frame has another parent; a body would have two paths; or the pose would move inside a body.
            The attribute ``rule`` has the name of the rule, such as ``PE3``.
        CycleError: the reference frame is a child of the frame.
    """
    require_conflict_option(on_conflict)
    check_names(scene, coord_of(pose, SemanticPose, "add_pose"))
    between = pose_between_frames(scene, pose, q)
    try:
        return _with_relation(scene, between, joint)
    except SceneError:
        if on_conflict != "invert":
            raise
    frame, turned = between.coord.ori, between.inverse2()
    if joint.type != "fixed":
        message = f"a pose with a joint cannot be turned round: frame '{frame}' has a parent already"
        raise SceneError(message, frame=frame)
    return _with_relation(scene, turned, joint)


def update_pose(scene: SceneGraph, pose: SemanticPose, *, q: ArrayLike | None = None) -> SceneGraph:
    """Return the scene in which the edge between two frames has another pose.

    Args:
        scene: the scene.
        pose: the pose of a frame relative to its parent, or of the parent relative to the frame.
        q: (n_joints,) configuration for the conversion, where a joint is on the way.

    Raises:
        UnknownNameError: a frame or body that is not there.
        SemanticError: a frame is not on the body that the pose names; or the conversion is not possible.
        SceneError: there is no such edge, or it is inside a body, where poses are constant.
    """
    check_names(scene, coord_of(pose, SemanticPose, "update_pose"))
    between = pose_between_frames(scene, pose, q)
    if scene.parent(between.coord.ref_ori) == between.coord.ori:
        between = between.inverse2()
    frame, reference = between.coord.ori, between.coord.ref_ori
    if scene.parent(frame) != reference:
        message = f"there is no edge between '{frame}' and '{reference}' whose pose could be set; add it with add_pose"
        raise SceneError(message, frame=frame)
    return _with_relation(scene, between, Fixed())


def _with_relation(scene: SceneGraph, between: SemanticPose, joint: Joint) -> SceneGraph:
    """Return the scene with the pose between two frames as an edge, and its covariance."""
    frame = between.coord.ori
    made = _with_pose_edge(scene, frame, between.coord.ref_ori, _pose_of(between), joint)
    return made if between.covariance is None else made.set_covariance(frame, between.covariance)


def _with_pose_edge(scene: SceneGraph, frame: str, reference: str, pose: Pose, joint: Joint) -> SceneGraph:
    """Return the scene with a pose edge; the pose is that at joint value 0."""
    if frame == reference:
        raise CycleError(f"frame '{frame}' cannot be its own parent", frame=frame, parent=reference, rule="PE1")
    if scene.parent(frame) == reference:
        return scene.set_pose(frame, pose)
    return scene.attach(frame, reference, pose=pose, joint=joint)


def pose_between_frames(scene: SceneGraph, pose: SemanticPose, q: ArrayLike | None) -> SemanticPose:
    """Return a pose as that of its orientation frame relative to its reference orientation frame, expressed there.

    Its points and axes are any that the poses of the scene join, others are a SemanticError.
    """
    c = pose.coord
    if c.coord != c.ref_ori:
        bodies = scene.body(c.coord), scene.body(c.ref_ori)
        axes = relate(scene, OrientationCoord._of(c.coord, bodies[0], c.ref_ori, bodies[1], c.ref_ori), q=q)
        position = pose.position.change_coordinate_frame(axes)
        orientation = pose.orientation.change_coordinate_frame(axes)
        made = SemanticPose.of(position, orientation)
    else:
        made = pose.represented_by(VectorAndMatrix)
    c = made.coord
    if c.ref_point != c.ref_ori:
        made = made.change_reference_point(_position(scene, c.ref_point, c.ref_ori, c.coord, q))
    if c.point != c.ori:  # the way from the point to the frame's origin, in the axes of the reference frame
        way = _position(scene, c.ori, c.point, c.ori, q).numbers[0]
        coord = PositionCoord._of(c.ori, c.body, c.point, c.body, c.coord)
        made = made.change_point(SemanticPosition(coord, PositionVector(made.numbers[1] @ way)))
    return made


def _pose_of(pose: SemanticPose) -> Pose:
    return Pose.from_rotation_matrix(*pose.numbers)


def _position(scene: SceneGraph, point: str, ref_point: str, axes: str, q: ArrayLike | None) -> SemanticPosition:
    """Return the position of a frame's origin relative to that of another frame, in the axes of a third."""
    return relate(scene, PositionCoord._of(point, scene.body(point), ref_point, scene.body(ref_point), axes), q=q)


@dataclass(frozen=True)
class Node:
    """A node of the graph: a frame or a body.

    Attributes:
        kind: ``frame`` or ``body``.
        name: its name.
    """

    kind: Literal["frame", "body"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}'"


def add_edge(
    scene: SceneGraph, kind: Literal["pose", "twist"], *, tail: Node, head: Node, value: Pose | ArrayLike
) -> SceneGraph:
    """Return the scene with an edge between two nodes of any kind, where there may be one.

    Args:
        scene: the scene.
        kind: ``pose`` or ``twist``.
        tail: the reference: a frame for a pose, a body for a twist.
        head: the frame that stands, or moves, relative to it.
        value: tail_from_head; or (6,) the twist of the head's body relative to the tail, at the head's origin, in its
            axes.

    Raises:
        UnknownNameError: no such kind of edge or of node, or no such node.
        SemanticError: an edge of this kind does not join nodes of these kinds.
        SceneError: the rules forbid it.
    """
    wanted = {"pose": ("frame", "frame"), "twist": ("body", "frame")}.get(kind)
    if wanted is None:
        raise UnknownNameError.of("kind of edge", kind, ("pose", "twist"))
    for node in (tail, head):
        if not isinstance(node, Node):
            repair = f"write Node('frame', {node!r}) or Node('body', {node!r})"
            raise SemanticError.of(f"add_edge({kind})", [Violation("an edge joins nodes", repr(node), repair=repair)])
        if node.kind not in ("frame", "body"):
            raise UnknownNameError.of("kind of node", node.kind, ("frame", "body"))
    if (tail.kind, head.kind) != wanted:
        rules = {
            "pose": "a pose edge joins two frames",
            "twist": "a twist edge joins a body and a frame of another body",
        }
        raise SemanticError.of(f"add_edge({kind})", [Violation(rules[kind], f"tail {tail}", f"head {head}")])
    if isinstance(value, Pose):
        if kind == "twist":
            raise SemanticError.of("add_edge(twist)", [Violation("a twist edge holds six numbers", repr(value))])
        return _with_pose_edge(scene, head.name, tail.name, value, Fixed())
    if kind == "pose":
        raise SemanticError.of("add_edge(pose)", [Violation("a pose edge holds a pose", repr(value)[:80])])
    return scene.set_twist(head.name, value, relative_to_body=tail.name)
