"""Twists that are put into a scene: as edges from a body to a frame of another, body-fixed.

What is given at another point of the body or in other axes is brought there by the poses of the scene, with its
covariance: by their means, since an error that a pose has by itself is not the twist's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tmkit._core import SceneGraph
from tmkit.errors import SceneError
from tmkit.graph.semantic_edges.names import (
    OnConflict,
    check_names,
    coord_of,
    frame_on,
    is_on_reference,
    require_conflict_option,
)
from tmkit.graph.semantic_edges.wrenches import brought
from tmkit.relations import SemanticError, SemanticTwist, TwistCoord, TwistVector, Violation
from tmkit.spatial import checked_covariance


def add_twist(
    scene: SceneGraph, twist: SemanticTwist, *, covariance: ArrayLike | None = None, frame: str | None = None,
    q: ArrayLike | None = None, on_conflict: OnConflict = "refuse", strict: bool = False,
) -> SceneGraph:  # fmt: skip
    """Return the scene with the twist of a frame's body relative to another body as an edge.

    The edge leads to a frame of the body. Where it is there already, its value is changed.

    Args:
        scene: the scene, which has the frame on the body that the twist names.
        twist: the twist, at any point and in any axes that the poses of the scene join to the frame. The point is a
            frame of the body, or of the reference body: the point that is there for the instant.
        covariance: (6, 6) of the linear velocity of that point and the angular velocity, in those axes, m/s and rad/s,
            symmetric positive semi-definite; it is brought to the frame like the twist. None or zero: exact.
        frame: the frame that the edge leads to; that of the twist's point by default.
        q: (n_joints,) configuration for the conversion, where a joint is on the way.
        on_conflict: whether a twist that is refused is to be tried the other way round: as that of a frame of the
            reference body.
        strict: whether to refuse a twist between two bodies that twist edges join in any way already, in any direction
            and through whichever frames (rule TE6 for all trees together). By default a second twist is refused where
            it leads back (TE5), where poses join its frame to another of the body that has a path from the same body
            (TE4), or where twists of frames in the same tree join the two bodies already (TE6).

    Raises:
        UnknownNameError: a frame or body that is not there.
        SemanticError: the frame is not on the body, or no poses lead to the point or axes in which the twist is given.
        SceneError: the rules of twist edges forbid it; see :meth:`SceneGraph.set_twist`. The attribute ``rule`` has the
            name of the rule, such as ``TE3``. Or the covariance is none; ``eigenvalues`` has its eigenvalues.
    """
    require_conflict_option(on_conflict)
    c = coord_of(twist, SemanticTwist, "add_twist")
    check_names(scene, c)
    head = _head(scene, c, frame)
    if strict:
        _require_apart(scene, c, head)
    spread = twist.covariance
    if covariance is not None:
        what = f"the covariance of the twist of '{head}' relative to '{c.ref_body}'"
        spread = checked_covariance(covariance, 6, what=what)
    given = SemanticTwist(c, TwistVector(np.concatenate(twist.numbers)), covariance=spread)
    made = brought(scene, given, point=head, axes=head, q=q)
    try:
        return scene.set_twist(head, made._value, relative_to_body=c.ref_body, covariance=made.covariance)
    except SceneError:
        if on_conflict != "invert":
            raise
        reason = f"the twist of '{head}' relative to body '{c.ref_body}' is refused, and cannot be turned round"
        other = frame_on(scene, c.ref_body, head)
        if other is None:
            raise SceneError(f"{reason}: no frame of that body is joined to '{head}' by poses") from None
    made = brought(scene, made, point=other, axes=other, q=q)
    # the covariance of the twist turned round is the same
    return scene.set_twist(other, -made._value, relative_to_body=c.body, covariance=made.covariance)


def update_twist(
    scene: SceneGraph, twist: SemanticTwist, *, covariance: ArrayLike | None = None, frame: str | None = None,
    q: ArrayLike | None = None,
) -> SceneGraph:  # fmt: skip
    """Return the scene in which a twist edge that is there has another value.

    Args:
        scene: the scene.
        twist: the twist, as for :func:`add_twist`.
        covariance: as for :func:`add_twist`; what was known of the error of the old value is gone.
        frame: the frame that the edge leads to; that of the twist's point by default.
        q: (n_joints,) configuration for the conversion, where a joint is on the way.

    Raises:
        SceneError: there is no such edge.
        SemanticError: as for :func:`add_twist`.
    """
    c = coord_of(twist, SemanticTwist, "update_twist")
    check_names(scene, c)
    head = _head(scene, c, frame)
    edge = scene.twist_edge(head)
    if edge is None or edge[0] != c.ref_body:
        known = f"it is relative to '{edge[0]}'" if edge else "it has none; add it with add_twist"
        raise SceneError(f"frame '{head}' has no twist relative to body '{c.ref_body}' to set: {known}", frame=head)
    return add_twist(scene, twist, covariance=covariance, frame=head, q=q)


def _head(scene: SceneGraph, c: TwistCoord, frame: str | None) -> str:
    """Return the frame that an edge leads to."""
    head = c.point if frame is None else frame
    if frame is not None and scene.body(head) != c.body:
        rule = "a twist edge leads to a frame of the body that moves"
        sides = f"frame '{head}' is on body '{scene.body(head)}'", f"body '{c.body}' moves"
        raise SemanticError.of(f"add_twist({c!r})", [Violation(rule, *sides)])
    if frame is None and is_on_reference(scene, c):
        rule = "a twist edge leads to a frame of the body that moves"
        side = f"the point {c.point} is that of a frame of the reference body '{c.ref_body}'"
        raise SemanticError.of(f"add_twist({c!r})", [Violation(rule, side, repair="name the frame with frame=")])
    return head


def _require_apart(scene: SceneGraph, c: TwistCoord, head: str) -> None:
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
        message = f"bodies '{c.body}' and '{c.ref_body}' are joined by twists already, and may be only once"
        raise SceneError(message, frame=head, rule="TE6")
