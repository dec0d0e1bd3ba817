"""Pose edges between two frames, and twist edges from a body to a frame of another body.

A pose between other points than frame origins, or in the axes of a third frame, is converted by the
poses of the scene before the edge is made. So is a twist with its covariance. The conversion uses
the mean poses, since the error of a pose is not an error of the twist. :func:`add_edge` takes any
two nodes, as from a file or another program, and rejects edges between nodes of the wrong kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from tmkit import relations as rel
from tmkit._core import Joint, SceneGraph, Unstated
from tmkit.errors import CycleError, SceneError, TmkitError, UnknownNameError
from tmkit.graph.semantic_edges.queries import (
    OnConflict,
    check_names,
    coord_of,
    frame_on,
    is_on_reference,
    relate,
    require_conflict_option,
)
from tmkit.graph.semantic_edges.wrenches import convert_frame
from tmkit.relations import representations
from tmkit.relations.violations import rule_error
from tmkit.spatial import Pose
from tmkit.spatial.covariances import check_covariance


def add_pose(
    scene: SceneGraph,
    pose: rel.SemanticPose,
    *,
    joint: Joint | None = None,
    q: ArrayLike | None = None,
    on_conflict: OnConflict = "reject",
) -> SceneGraph:
    """Return the scene with the pose of one frame relative to another as an edge.

    The frame must be the root of its tree, or a child of the reference frame; then its pose
    changes. A pose between two bodies does not state their relative motion. Queries of motion
    across the new edge raise an error until a twist or a joint states it.

    Args:
        scene: the scene, which has both frames on the bodies of the pose.
        pose: the pose, with its covariance. Any pose that is not between two frame origins is
            converted by poses of the scene.
        joint: the joint between the frames, at value 0 in this pose; ``Fixed()`` for no motion. By
            default, a new edge between two bodies has no stated motion, and an existing edge keeps
            its joint.
        q: (n_joints,) configuration for the conversion; required if a joint is on the path.
        on_conflict: ``invert`` adds the inverse of a rejected pose; ``reject`` raises the error.

    Raises:
        UnknownNameError: if a frame or body is unknown.
        SemanticError: if a frame is not on the body of the pose, or the conversion is impossible.
        SceneError: if the frame has another parent, a body would have two paths, or the pose would
            move inside a body. The attribute ``rule`` has the name of the rule, such as ``PE3``. If
            the inverse of the pose fits, the message states it, and ``inverse`` is the inverse.
        CycleError: if the reference frame is a child of the frame.
    """
    require_conflict_option(on_conflict)
    check_names(scene, coord_of(pose, rel.SemanticPose, "add_pose"))
    frame_pose = pose_between_frames(scene, pose, q)
    try:
        return _set_relation(scene, frame_pose, joint)
    except SceneError as error:
        if on_conflict != "invert":
            raise _with_inverse(error, lambda: _inverse_pose(scene, frame_pose, joint)) from None
    return _inverse_pose(scene, frame_pose, joint)[1]


_Relation = TypeVar("_Relation", bound=rel.SemanticPose | rel.SemanticTwist)


def _with_inverse(
    error: SceneError, add_inverse: Callable[[], tuple[_Relation, SceneGraph]]
) -> SceneError:
    """Return the error of a rejected edge, with its inverse if that is accepted.

    Args:
        error: error of the edge.
        add_inverse: function that returns the inverse and the scene with it, or raises SceneError.
    """
    try:
        inverse, _ = add_inverse()
    except TmkitError:
        return error
    hint = f"its inverse {inverse.coord!r} fits: pass on_conflict='invert', or add error.inverse"
    return type(error)(f"{error}; {hint}", **{**error.data, "inverse": inverse})


def _inverse_pose(
    scene: SceneGraph, frame_pose: rel.SemanticPose, joint: Joint | None
) -> tuple[rel.SemanticPose, SceneGraph]:
    """Return the inverse of a pose between frames, and the scene with its edge."""
    frame = frame_pose.coord.ori
    if joint is not None and joint.type != "fixed":
        message = f"a pose with a joint cannot be inverted: frame '{frame}' has a parent already"
        raise SceneError(message, frame=frame)
    inverse = frame_pose.inverse2()
    return inverse, _set_relation(scene, inverse, joint)


def update_pose(
    scene: SceneGraph, pose: rel.SemanticPose, *, q: ArrayLike | None = None
) -> SceneGraph:
    """Return the scene with a changed pose of the edge between two frames, and the same joint.

    Args:
        scene: the scene.
        pose: the pose of a frame relative to its parent, or of the parent relative to the frame.
        q: (n_joints,) configuration for the conversion; required if a joint is on the path.

    Raises:
        UnknownNameError: if a frame or body is unknown.
        SemanticError: if a frame is not on the body of the pose, or the conversion is impossible.
        SceneError: if there is no such edge, or it is inside a body, where poses are constant.
    """
    check_names(scene, coord_of(pose, rel.SemanticPose, "update_pose"))
    frame_pose = pose_between_frames(scene, pose, q)
    if scene.parent(frame_pose.coord.ref_ori) == frame_pose.coord.ori:
        frame_pose = frame_pose.inverse2()
    frame, reference = frame_pose.coord.ori, frame_pose.coord.ref_ori
    if scene.parent(frame) != reference:
        message = (
            f"there is no edge between '{frame}' and '{reference}' whose pose could be set; add it"
            " with add_pose"
        )
        raise SceneError(message, frame=frame)
    return _set_relation(scene, frame_pose, None)


def _set_relation(
    scene: SceneGraph, frame_pose: rel.SemanticPose, joint: Joint | None
) -> SceneGraph:
    """Return the scene with the pose between two frames as an edge, and its covariance."""
    frame = frame_pose.coord.ori
    pose = Pose.from_rotation_matrix(*frame_pose.numbers)
    version = _set_pose_edge(scene, frame, frame_pose.coord.ref_ori, pose, joint)
    if frame_pose.covariance is None:
        return version
    return version.set_covariance(frame, frame_pose.covariance)


def _set_pose_edge(
    scene: SceneGraph, frame: str, reference: str, pose: Pose, joint: Joint | None
) -> SceneGraph:
    """Return the scene with a pose edge; without a joint, its motion is not stated.

    Args:
        scene: the scene.
        frame: the child frame.
        reference: the parent frame.
        pose: reference_from_frame at joint value 0.
        joint: the joint of the edge.
    """
    if frame == reference:
        raise CycleError(
            f"frame '{frame}' cannot be its own parent", frame=frame, parent=reference, rule="PE1"
        )
    if scene.parent(frame) == reference:
        version = scene.set_pose(frame, pose)
        return version if joint is None else version.set_joint(frame, joint)
    return scene.attach(frame, reference, pose=pose, joint=Unstated() if joint is None else joint)


def pose_between_frames(
    scene: SceneGraph, pose: rel.SemanticPose, q: ArrayLike | None
) -> rel.SemanticPose:
    """Return a pose as that of its orientation frame relative to its reference frame.

    It is converted by poses of the scene.

    Raises:
        SemanticError: if poses do not join its points and axes.
    """
    c = pose.coord
    if c.coord != c.ref_ori:
        bodies = scene.body(c.coord), scene.body(c.ref_ori)
        coord = rel.OrientationCoord._of(c.coord, bodies[0], c.ref_ori, bodies[1], c.ref_ori)
        axes = relate(scene, coord, q=q)
        position = pose.position.change_coordinate_frame(axes)
        orientation = pose.orientation.change_coordinate_frame(axes)
        result = rel.SemanticPose.of(position, orientation)
    else:
        result = pose.with_representation(representations.VectorAndMatrix)
    c = result.coord
    if c.ref_point != c.ref_ori:
        result = result.change_reference_point(_position(scene, c.ref_point, c.ref_ori, c.coord, q))
    if c.point != c.ori:
        offset = _position(scene, c.ori, c.point, c.ori, q).numbers[0]
        offset_coord = rel.PositionCoord._of(c.ori, c.body, c.point, c.body, c.coord)
        vector = representations.PositionVector(result.numbers[1] @ offset)
        result = result.change_point(rel.SemanticPosition(offset_coord, vector))
    return result


def _position(
    scene: SceneGraph, point: str, ref_point: str, axes: str, q: ArrayLike | None
) -> rel.SemanticPosition:
    """Return the position of a frame's origin relative to another, in the axes of a third frame."""
    bodies = scene.body(point), scene.body(ref_point)
    coord = rel.PositionCoord._of(point, bodies[0], ref_point, bodies[1], axes)
    return relate(scene, coord, q=q)


@dataclass(frozen=True)
class Node:
    """Node of the graph: a frame or a body.

    Attributes:
        kind: ``frame`` or ``body``.
        name: name of the frame or body.
    """

    kind: Literal["frame", "body"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}'"


def add_edge(
    scene: SceneGraph,
    kind: Literal["pose", "twist"],
    *,
    tail: Node,
    head: Node,
    value: Pose | ArrayLike,
) -> SceneGraph:
    """Return the scene with an edge between two nodes of suitable kinds.

    The motion of a new pose edge between two bodies is not stated, as for :func:`add_pose`.

    Args:
        scene: the scene.
        kind: ``pose`` or ``twist``.
        tail: the reference: a frame for a pose, a body for a twist.
        head: the frame whose pose or twist it is.
        value: tail_from_head; or the (6,) twist of the head's body relative to the tail, at the
            head and in its axes.

    Raises:
        UnknownNameError: if the kind of edge, a kind of node or a node is unknown.
        SemanticError: if an edge of this kind does not join nodes of these kinds.
        SceneError: if the rules of edges forbid it.
    """
    expected_kinds = {"pose": ("frame", "frame"), "twist": ("body", "frame")}.get(kind)
    if expected_kinds is None:
        raise UnknownNameError.of("kind of edge", kind, ("pose", "twist"))
    for node in (tail, head):
        if not isinstance(node, Node):
            repair = f"write Node('frame', {node!r}) or Node('body', {node!r})"
            raise rule_error(f"add_edge({kind})", "an edge joins nodes", repr(node), repair=repair)
        if node.kind not in ("frame", "body"):
            raise UnknownNameError.of("kind of node", node.kind, ("frame", "body"))
    if (tail.kind, head.kind) != expected_kinds:
        rules = {
            "pose": "a pose edge joins two frames",
            "twist": "a twist edge joins a body and a frame of another body",
        }
        raise rule_error(f"add_edge({kind})", rules[kind], f"tail {tail}", f"head {head}")
    if isinstance(value, Pose):
        if kind == "twist":
            raise rule_error("add_edge(twist)", "a twist edge holds six numbers", repr(value))
        return _set_pose_edge(scene, head.name, tail.name, value, None)
    if kind == "pose":
        raise rule_error("add_edge(pose)", "a pose edge holds a pose", repr(value)[:80])
    return scene.set_twist(head.name, value, relative_to_body=tail.name)


def add_twist(
    scene: SceneGraph,
    twist: rel.SemanticTwist,
    *,
    covariance: ArrayLike | None = None,
    frame: str | None = None,
    q: ArrayLike | None = None,
    on_conflict: OnConflict = "reject",
    strict: bool = False,
) -> SceneGraph:
    """Return the scene with the twist of a frame's body relative to another body as an edge.

    The edge leads to a frame of the body. The value of an existing edge is replaced.

    Args:
        scene: the scene, which has the frame on the body of the twist.
        twist: the twist, at any point and in any axes that poses of the scene join to the frame.
            The point is a frame of the body or of the reference body; the latter names the
            coincident point of the body.
        covariance: (6, 6) covariance of the twist, at its point and in its axes [m/s, rad/s],
            symmetric positive semi-definite. It is converted to the frame like the twist. None or
            zero for an exact twist.
        frame: the frame of the edge; that of the twist's point by default.
        q: (n_joints,) configuration for the conversion; required if a joint is on the path.
        on_conflict: ``invert`` adds the inverse of a rejected twist to a frame of the reference
            body; ``reject`` raises the error.
        strict: whether to reject a twist between two bodies that any twist edges join already (rule
            TE6 for all trees together). By default, a twist is rejected in three cases. The first
            is a twist edge in the opposite direction (TE5). In the second, poses join its frame to
            another frame of the body with a path from the same reference body (TE4). In the third,
            twists of frames in the same tree join the two bodies (TE6).

    Raises:
        UnknownNameError: if a frame or body is unknown.
        SemanticError: if the frame is not on the body, or no path of poses leads to the point or
            axes of the twist.
        SceneError: if the rules of twist edges forbid it; see :meth:`SceneGraph.set_twist`. The
            attribute ``rule`` has the name of the rule, such as ``TE3``. If the inverse of the
            twist fits, the message states it, and ``inverse`` is the inverse. Also if the
            covariance is invalid; then ``eigenvalues`` has its eigenvalues.
    """
    require_conflict_option(on_conflict)
    c = coord_of(twist, rel.SemanticTwist, "add_twist")
    check_names(scene, c)
    head = _head(scene, c, frame)
    if strict:
        _require_no_twist_path(scene, c, head)
    twist_covariance = twist.covariance
    if covariance is not None:
        what = f"the covariance of the twist of '{head}' relative to '{c.ref_body}'"
        twist_covariance = check_covariance(covariance, 6, what=what)
    numbers = representations.TwistVector(np.concatenate(twist.numbers))
    uncertain_twist = rel.SemanticTwist(c, numbers, covariance=twist_covariance)
    head_twist = convert_frame(scene, uncertain_twist, point=head, axes=head, q=q)
    try:
        return scene.set_twist(
            head, head_twist._value, relative_to_body=c.ref_body, covariance=head_twist.covariance
        )
    except SceneError as error:
        if on_conflict != "invert":
            raise _with_inverse(error, lambda: _inverse_twist(scene, head_twist, q)) from None
    return _inverse_twist(scene, head_twist, q)[1]


def _inverse_twist(
    scene: SceneGraph, twist: rel.SemanticTwist, q: ArrayLike | None
) -> tuple[rel.SemanticTwist, SceneGraph]:
    """Return the inverse of a twist at a frame of its reference body, and the scene with it."""
    c = twist.coord
    reference = frame_on(scene, c.ref_body, c.point)
    if reference is None:
        message = (
            f"the twist of '{c.point}' relative to body '{c.ref_body}' is rejected, and cannot be"
            f" inverted: no frame of that body is joined to '{c.point}' by poses"
        )
        raise SceneError(message)
    inverse = convert_frame(scene, twist, point=reference, axes=reference, q=q).inverse()
    version = scene.set_twist(
        reference, inverse._value, relative_to_body=c.body, covariance=inverse.covariance
    )
    return inverse, version


def update_twist(
    scene: SceneGraph,
    twist: rel.SemanticTwist,
    *,
    covariance: ArrayLike | None = None,
    frame: str | None = None,
    q: ArrayLike | None = None,
) -> SceneGraph:
    """Return the scene with a changed value of an existing twist edge.

    Args:
        scene: the scene.
        twist: the twist, as for :func:`add_twist`.
        covariance: as for :func:`add_twist`; the previous covariance is discarded.
        frame: the frame of the edge; that of the twist's point by default.
        q: (n_joints,) configuration for the conversion; required if a joint is on the path.

    Raises:
        SceneError: if there is no such edge.
        SemanticError: if :func:`add_twist` raises it.
    """
    c = coord_of(twist, rel.SemanticTwist, "update_twist")
    check_names(scene, c)
    head = _head(scene, c, frame)
    edge = scene.twist_edge(head)
    if edge is None or edge[0] != c.ref_body:
        cause = f"it is relative to '{edge[0]}'" if edge else "it has none; add it with add_twist"
        raise SceneError(
            f"frame '{head}' has no twist relative to body '{c.ref_body}' to set: {cause}",
            frame=head,
        )
    return add_twist(scene, twist, covariance=covariance, frame=head, q=q)


def _head(scene: SceneGraph, c: rel.TwistCoord, frame: str | None) -> str:
    """Return the frame of a twist edge, or raise SemanticError."""
    head = c.point if frame is None else frame
    if frame is not None and scene.body(head) != c.body:
        rule = "a twist edge leads to a frame of the body that moves"
        sides = f"frame '{head}' is on body '{scene.body(head)}'", f"body '{c.body}' moves"
        raise rule_error(f"add_twist({c!r})", rule, *sides)
    if frame is None and is_on_reference(scene, c):
        rule = "a twist edge leads to a frame of the body that moves"
        side = f"the point '{c.point}' is a frame of the reference body '{c.ref_body}'"
        raise rule_error(f"add_twist({c!r})", rule, side, repair="name the frame with frame=")
    return head


def _require_no_twist_path(scene: SceneGraph, c: rel.TwistCoord, head: str) -> None:
    """Raise SceneError if other twist edges join two bodies already."""
    neighbours: dict[str, set[str]] = {}
    for frame in scene.twist_frames:
        edge = scene.twist_edge(frame)
        if edge is None or (frame == head and edge[0] == c.ref_body):
            continue
        body = scene.body(frame)
        neighbours.setdefault(body, set()).add(edge[0])
        neighbours.setdefault(edge[0], set()).add(body)
    reached_bodies, stack = {c.ref_body}, [c.ref_body]
    while stack:
        for body in neighbours.get(stack.pop(), set()) - reached_bodies:
            reached_bodies.add(body)
            stack.append(body)
    if c.body in reached_bodies and c.body != c.ref_body:
        message = (
            f"bodies '{c.body}' and '{c.ref_body}' are joined by twists already; a second path"
            " is not allowed"
        )
        raise SceneError(message, frame=head, rule="TE6")
