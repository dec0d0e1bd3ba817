"""Accelerations and momenta of what moves in a scene, by joints and by twist edges.

The way from one frame to another is walked edge by edge: each adds its motion to what the frames before it do
(Featherstone, *Rigid Body Dynamics Algorithms*, 2008, chapter 5). The twist of a joint is constant in the axes of
either of its frames, and so is that of a twist edge.

Invariants: functions of their arguments.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import SceneGraph
from tmkit.graph.moments import twists_between
from tmkit.graph.rigid import joint_values
from tmkit.graph.semantic_edges.twist_queries import twist
from tmkit.spatial import Pose, adjoint

Vector = NDArray[np.float64]


def acceleration(
    scene: SceneGraph, frame: str, *, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, relative_to: str | None = None,
    at: str | None = None, axes: str | None = None, is_classical: bool = False,
) -> Vector:  # fmt: skip
    """Return the acceleration (6,) of a frame's body relative to another body: linear (m/s^2), then angular (rad/s^2).

    The names are those of :func:`tmkit.graph.twist`. Twist edges are constant. O(depth) poses, and O(t depth) for t
    twist edges.

    Args:
        scene: the scene.
        frame: a frame of the body that moves.
        q: (n_joints,) configuration, radians or metres.
        qd: (n_joints,) velocities.
        qdd: (n_joints,) accelerations.
        relative_to: a frame of the body relative to which it moves; the root of its tree if omitted.
        at: the frame at whose origin the linear part is; ``frame`` if omitted.
        axes: the frame of expression; ``relative_to`` if omitted.
        is_classical: whether the linear part is that of the point that is fixed to the body. By default the
            acceleration is spatial: how the velocity at the place where the point is changes.

    Raises:
        UnknownNameError: no such frame.
        SemanticError: nothing says how a frame on the way moves.
    """
    reference = scene.root(frame) if relative_to is None else relative_to
    point, turned = frame if at is None else at, reference if axes is None else axes
    speeds, rates = joint_values(scene, qd, "qd"), joint_values(scene, qdd, "qdd")
    velocity, change = np.zeros(6), np.zeros(6)
    at, hops = reference, list[tuple[str, str, bool]]()
    for step in twists_between(scene, scene.body(reference), scene.body(frame)) if scene.twist_frames else []:
        hops += [(*edge, False) for edge in itertools.pairwise(scene.path(at, step[0]))] + [(*step, True)]
        at = step[1]
    hops += [(*edge, False) for edge in itertools.pairwise(scene.path(at, frame))]
    for before, after, is_constant in hops:
        back = adjoint(scene.pose(before, relative_to=after, q=q))
        own, gain = (
            np.concatenate(twist(scene, after, relative_to=before, axes=after, q=q, qd=rate).numbers)
            for rate in (speeds, rates)
        )
        velocity = back @ velocity + own
        change = back @ change + (0.0 if is_constant else gain) + _bracket(velocity, own)
    to_point = adjoint(Pose(-scene.pose(point, relative_to=frame, q=q).translation))
    velocity, change = to_point @ velocity, to_point @ change
    if is_classical:
        change = change + np.concatenate([np.cross(velocity[3:], velocity[:3]), np.zeros(3)])
    turn = scene.pose(frame, relative_to=turned, q=q)
    return np.concatenate([turn.rotate(change[:3]), turn.rotate(change[3:])])


def momentum(
    scene: SceneGraph, frame: str, *, q: ArrayLike, qd: ArrayLike, about: str | None = None
) -> tuple[Vector, float]:
    """Return the momentum (6,) and the kinetic energy (J) of all bodies at and below a frame, relative to the root.

    Linear momentum (kg m/s), then angular momentum (kg m^2/s). O(n depth) for n frames below.

    Args:
        scene: the scene; bodies without inertia count for nothing.
        frame: the topmost frame, such as the base of a robot.
        q: (n_joints,) configuration, radians or metres.
        qd: (n_joints,) velocities.
        about: the frame about whose origin the angular part is, and in whose axes both are; the root if omitted.

    Raises:
        UnknownNameError: no such frame.
        SemanticError: nothing says how a body moves.
    """
    root, qd = scene.root(frame), joint_values(scene, qd, "qd")
    firsts = {scene.body(name): name for name in reversed(scene.subtree(frame))}
    total, energy = np.zeros(6), 0.0
    for name in firsts.values():
        inertia = scene.inertia(name)
        if inertia is None:
            continue
        vector = np.concatenate(twist(scene, name, relative_to=root, axes=name, q=q, qd=qd).numbers)
        linear = inertia.mass * (vector[:3] + np.cross(vector[3:], inertia.center))
        own = np.concatenate([linear, inertia.matrix @ vector[3:] + np.cross(inertia.center, linear)])
        energy += 0.5 * float(own @ vector)
        total += adjoint(scene.pose(root if about is None else about, relative_to=name, q=q)).T @ own
    return total, energy


def _bracket(a: Vector, b: Vector) -> Vector:
    """Return the rate of change of one twist that moves with another: ad(a) b."""
    return np.concatenate([np.cross(a[3:], b[:3]) + np.cross(a[:3], b[3:]), np.cross(a[3:], b[3:])])
