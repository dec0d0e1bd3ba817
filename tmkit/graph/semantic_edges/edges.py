"""Poses and twists that are put into a scene: as edges between two frames, and from a body to a frame of another.

A pose between points that are no frames' origins, or in the axes of a third frame, is converted by
the poses that the scene has, before the edge is made. A twist too, with its covariance: by the
means of these poses, since an error that a pose has by itself is not the twist's. :func:`add_edge`
takes edges between given nodes of any kind, as files and other programs may ask for, and refuses
them by their kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tmkit import relations as rel
from tmkit._core import Joint, SceneGraph, Unstated
from tmkit.errors import CycleError, SceneError, UnknownNameError
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
from tmkit.relations.violations import refusal
from tmkit.spatial import Pose
from tmkit.spatial.covariances import checked_covariance


def add_pose(
    scene: SceneGraph,
    pose: rel.SemanticPose,
    *,
    joint: Joint | None = None,
    q: ArrayLike | None = None,
    on_conflict: OnConflict = "reject",
) -> SceneGraph:
    """Return the scene with the pose of one frame relative to another as an edge.

    The frame must be the root of its tree, or a child of the same reference frame, whose pose is
    changed. A pose between two bodies does not state how they move: queries of motion across the
    new edge raise an error until a twist or a joint states it.

    Args:
        scene: the scene, which has both frames on the bodies that the pose names.
        pose: the pose, with its covariance; if not that of a frame relative to one, converted by
            poses of the scene.
        joint: how the frame moves relative to its reference, at value 0 in this pose; ``Fixed()``
            if it does not move. If omitted, a new edge between two bodies has no stated motion, and
            an existing edge keeps its own.
        q: (n_joints,) configuration for the conversion; required if a joint is on the path.
        on_conflict: whether the inverse of a refused pose is tried.

    Raises:
        UnknownNameError: if a frame or body is unknown.
        SemanticError: a frame is not on the body that the pose names; or the conversion is not
            possible.
        SceneError: the frame has another parent; a body would have two paths; or the pose would
            move inside a body. The attribute ``rule`` has the name of the rule, such as ``PE3``.
        CycleError: the reference frame is a child of the frame.
    """
    require_conflict_option(on_conflict)
    check_names(scene, coord_of(pose, rel.SemanticPose, "add_pose"))
    between = pose_between_frames(scene, pose, q)
    try:
        return _with_relation(scene, between, joint)
    except SceneError:
        if on_conflict != "invert":
            raise
    frame, turned = between.coord.ori, between.inverse2()
    if joint is not None and joint.type != "fixed":
        message = f"a pose with a joint cannot be inverted: frame '{frame}' has a parent already"
        raise SceneError(message, frame=frame)
    return _with_relation(scene, turned, joint)


def update_pose(
    scene: SceneGraph, pose: rel.SemanticPose, *, q: ArrayLike | None = None
) -> SceneGraph:
    """Return the scene in which the edge between two frames has another pose, and moves as before.

    Args:
        scene: the scene.
        pose: the pose of a frame relative to its parent, or of the parent relative to the frame.
        q: (n_joints,) configuration for the conversion; required if a joint is on the path.

    Raises:
        UnknownNameError: if a frame or body is unknown.
        SemanticError: a frame is not on the body that the pose names; or the conversion is not
            possible.
        SceneError: there is no such edge, or it is inside a body, where poses are constant.
    """
    check_names(scene, coord_of(pose, rel.SemanticPose, "update_pose"))
    between = pose_between_frames(scene, pose, q)
    if scene.parent(between.coord.ref_ori) == between.coord.ori:
        between = between.inverse2()
    frame, reference = between.coord.ori, between.coord.ref_ori
    if scene.parent(frame) != reference:
        message = (
            f"there is no edge between '{frame}' and '{reference}' whose pose could be set; add it"
            " with add_pose"
        )
        raise SceneError(message, frame=frame)
    return _with_relation(scene, between, None)


def _with_relation(scene: SceneGraph, between: rel.SemanticPose, joint: Joint | None) -> SceneGraph:
    """Return the scene with the pose between two frames as an edge, and its covariance."""
    frame = between.coord.ori
    pose = Pose.from_rotation_matrix(*between.numbers)
    made = _with_pose_edge(scene, frame, between.coord.ref_ori, pose, joint)
    return made if between.covariance is None else made.set_covariance(frame, between.covariance)


def _with_pose_edge(
    scene: SceneGraph, frame: str, reference: str, pose: Pose, joint: Joint | None
) -> SceneGraph:
    """Return the scene with a pose edge; the pose is that at joint value 0. Without a joint no motion is stated."""
    if frame == reference:
        raise CycleError(
            f"frame '{frame}' cannot be its own parent", frame=frame, parent=reference, rule="PE1"
        )
    if scene.parent(frame) == reference:
        made = scene.set_pose(frame, pose)
        return made if joint is None else made.set_joint(frame, joint)
    return scene.attach(frame, reference, pose=pose, joint=Unstated() if joint is None else joint)


def pose_between_frames(
    scene: SceneGraph, pose: rel.SemanticPose, q: ArrayLike | None
) -> rel.SemanticPose:
    """Return a pose, if poses join its points and axes, as that of its orientation frame in its reference."""
    c = pose.coord
    if c.coord != c.ref_ori:
        bodies = scene.body(c.coord), scene.body(c.ref_ori)
        axes = relate(
            scene,
            rel.OrientationCoord._of(c.coord, bodies[0], c.ref_ori, bodies[1], c.ref_ori),
            q=q,
        )
        position = pose.position.change_coordinate_frame(axes)
        orientation = pose.orientation.change_coordinate_frame(axes)
        made = rel.SemanticPose.of(position, orientation)
    else:
        made = pose.represented_by(representations.VectorAndMatrix)
    c = made.coord
    if c.ref_point != c.ref_ori:
        made = made.change_reference_point(_position(scene, c.ref_point, c.ref_ori, c.coord, q))
    # the way from the point to the frame's origin, in the axes of the reference frame
    if c.point != c.ori:
        way = _position(scene, c.ori, c.point, c.ori, q).numbers[0]
        coord = rel.PositionCoord._of(c.ori, c.body, c.point, c.body, c.coord)
        made = made.change_point(
            rel.SemanticPosition(coord, representations.PositionVector(made.numbers[1] @ way))
        )
    return made


def _position(
    scene: SceneGraph, point: str, ref_point: str, axes: str, q: ArrayLike | None
) -> rel.SemanticPosition:
    """Return the position of a frame's origin relative to that of another frame, in the axes of a third."""
    return relate(
        scene,
        rel.PositionCoord._of(point, scene.body(point), ref_point, scene.body(ref_point), axes),
        q=q,
    )


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
    scene: SceneGraph,
    kind: Literal["pose", "twist"],
    *,
    tail: Node,
    head: Node,
    value: Pose | ArrayLike,
) -> SceneGraph:
    """Return the scene with an edge between two nodes of any kind, where there may be one.

    The motion of a new pose edge between two bodies is not stated, as for :func:`add_pose`.

    Args:
        scene: the scene.
        kind: ``pose`` or ``twist``.
        tail: the reference: a frame for a pose, a body for a twist.
        head: the frame that stands, or moves, relative to it.
        value: tail_from_head; or (6,) the twist of the head's body relative to the tail, at the
            head, in its axes.

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
            raise refusal(f"add_edge({kind})", "an edge joins nodes", repr(node), repair=repair)
        if node.kind not in ("frame", "body"):
            raise UnknownNameError.of("kind of node", node.kind, ("frame", "body"))
    if (tail.kind, head.kind) != wanted:
        rules = {
            "pose": "a pose edge joins two frames",
            "twist": "a twist edge joins a body and a frame of another body",
        }
        raise refusal(f"add_edge({kind})", rules[kind], f"tail {tail}", f"head {head}")
    if isinstance(value, Pose):
        if kind == "twist":
            raise refusal("add_edge(twist)", "a twist edge holds six numbers", repr(value))
        return _with_pose_edge(scene, head.name, tail.name, value, None)
    if kind == "pose":
        raise refusal("add_edge(pose)", "a pose edge holds a pose", repr(value)[:80])
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

    The edge leads to a frame of the body. Where it is there already, its value is changed.

    Args:
        scene: the scene, which has the frame on the body that the twist names.
        twist: the twist, at any point and in any axes that the poses of the scene join to the
            frame. The point is a frame of the body, or of the reference body: the point that is
            there for the instant.
        covariance: (6, 6) of the linear velocity of that point and the angular velocity, in those
            axes, m/s and rad/s, symmetric positive semi-definite; it is brought to the frame like
            the twist. None or zero: exact.
        frame: the frame that the edge leads to; that of the twist's point by default.
        q: (n_joints,) configuration for the conversion; required if a joint is on the path.
        on_conflict: whether the inverse of a refused twist is tried, as that of a frame of the
            reference body.
        strict: whether to refuse a twist between two bodies that twist edges join in any way
            already, in any direction and through whichever frames (rule TE6 for all trees
            together). By default a second twist is refused where it leads back (TE5). It is refused
            where poses join its frame to another of the body that has a path from the same body
            (TE4). It is refused where twists of frames in the same tree join the two bodies already
            (TE6).

    Raises:
        UnknownNameError: if a frame or body is unknown.
        SemanticError: the frame is not on the body, or no poses lead to the point or axes in which
            the twist is given.
        SceneError: the rules of twist edges forbid it; see :meth:`SceneGraph.set_twist`. The
            attribute ``rule`` has the name of the rule, such as ``TE3``. Or the covariance is none;
            ``eigenvalues`` has its eigenvalues.
    """
    require_conflict_option(on_conflict)
    c = coord_of(twist, rel.SemanticTwist, "add_twist")
    check_names(scene, c)
    head = _head(scene, c, frame)
    if strict:
        _require_apart(scene, c, head)
    spread = twist.covariance
    if covariance is not None:
        what = f"the covariance of the twist of '{head}' relative to '{c.ref_body}'"
        spread = checked_covariance(covariance, 6, what=what)
    given = rel.SemanticTwist(
        c, representations.TwistVector(np.concatenate(twist.numbers)), covariance=spread
    )
    made = convert_frame(scene, given, point=head, axes=head, q=q)
    try:
        return scene.set_twist(
            head, made._value, relative_to_body=c.ref_body, covariance=made.covariance
        )
    except SceneError:
        if on_conflict != "invert":
            raise
        reason = (
            f"the twist of '{head}' relative to body '{c.ref_body}' is refused, and cannot be"
            " inverted"
        )
        other = frame_on(scene, c.ref_body, head)
        if other is None:
            raise SceneError(
                f"{reason}: no frame of that body is joined to '{head}' by poses"
            ) from None
    made = convert_frame(scene, made, point=other, axes=other, q=q)
    # the inverse has the same covariance
    return scene.set_twist(other, -made._value, relative_to_body=c.body, covariance=made.covariance)


def update_twist(
    scene: SceneGraph,
    twist: rel.SemanticTwist,
    *,
    covariance: ArrayLike | None = None,
    frame: str | None = None,
    q: ArrayLike | None = None,
) -> SceneGraph:
    """Return the scene in which a twist edge that is there has another value.

    Args:
        scene: the scene.
        twist: the twist, as for :func:`add_twist`.
        covariance: as for :func:`add_twist`; what was known of the error of the old value is gone.
        frame: the frame that the edge leads to; that of the twist's point by default.
        q: (n_joints,) configuration for the conversion; required if a joint is on the path.

    Raises:
        SceneError: there is no such edge.
        SemanticError: as for :func:`add_twist`.
    """
    c = coord_of(twist, rel.SemanticTwist, "update_twist")
    check_names(scene, c)
    head = _head(scene, c, frame)
    edge = scene.twist_edge(head)
    if edge is None or edge[0] != c.ref_body:
        known = f"it is relative to '{edge[0]}'" if edge else "it has none; add it with add_twist"
        raise SceneError(
            f"frame '{head}' has no twist relative to body '{c.ref_body}' to set: {known}",
            frame=head,
        )
    return add_twist(scene, twist, covariance=covariance, frame=head, q=q)


def _head(scene: SceneGraph, c: rel.TwistCoord, frame: str | None) -> str:
    """Return the frame that an edge leads to."""
    head = c.point if frame is None else frame
    if frame is not None and scene.body(head) != c.body:
        rule = "a twist edge leads to a frame of the body that moves"
        sides = f"frame '{head}' is on body '{scene.body(head)}'", f"body '{c.body}' moves"
        raise refusal(f"add_twist({c!r})", rule, *sides)
    if frame is None and is_on_reference(scene, c):
        rule = "a twist edge leads to a frame of the body that moves"
        side = f"the point {c.point} is that of a frame of the reference body '{c.ref_body}'"
        raise refusal(f"add_twist({c!r})", rule, side, repair="name the frame with frame=")
    return head


def _require_apart(scene: SceneGraph, c: rel.TwistCoord, head: str) -> None:
    """Refuse a second way by twists, of any kind, between two bodies."""
    near: dict[str, set[str]] = {}
    for frame in scene.twist_frames:
        edge = scene.twist_edge(frame)
        if edge is None or (frame == head and edge[0] == c.ref_body):
            continue
        body = scene.body(frame)
        near.setdefault(body, set()).add(edge[0])
        near.setdefault(edge[0], set()).add(body)
    reached, waiting = {c.ref_body}, [c.ref_body]
    while waiting:
        for body in near.get(waiting.pop(), set()) - reached:
            reached.add(body)
            waiting.append(body)
    if c.body in reached and c.body != c.ref_body:
        message = (
            f"bodies '{c.body}' and '{c.ref_body}' are joined by twists already, and may be only"
            " once"
        )
        raise SceneError(message, frame=head, rule="TE6")
