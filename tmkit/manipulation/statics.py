"""What gravity asks of the joints of an arm that stands still, against what their motors give.

An arm that is stretched out far, or with a load in its hand, may stand in a configuration that its motors cannot hold:
free of collision, and yet it sinks. The torque of gravity about a joint is that of everything which the joint carries,
as in "Rigid Body Dynamics Algorithms" (Featherstone 2008, section 6.6): with the total mass ``m`` and the first moment
``s`` of what it carries, the axis ``a`` and a point ``p`` on it, a turning joint has ``-a . ((s - m p) x g)`` to give
and a sliding one ``-m a . g``.

A limit that the empty arm exceeds already in its ready configuration says nothing of the arm, for which it was made up
or which has springs, and does not count. Acceleration is not part of it: the margin of planning stands for it.

Invariants: functions of the scene, the configurations and the arm alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tmkit.graph import SceneGraph
from tmkit.manipulation.grasps.holding import DENSITY, GRAVITY
from tmkit.manipulation.masses import lumped_inertia
from tmkit.robots import Manipulator, movable_frames

_STEP = 0.05  # radians or metres between the configurations of a path that are looked at


def gravity_torques(
    scene: SceneGraph, path: NDArray[np.float64], manipulator: Manipulator, *, is_loaded: bool = True
) -> NDArray[np.float64]:
    """Return what the motors of an arm give to hold it against gravity, which pulls along -z of the root.

    Frames without mass weigh nothing, but an object in the hand without mass weighs its volume times 500 kg/m^3.
    O(frames of the arm x configurations).

    Args:
        scene: the scene, with what the hand holds below the arm's tip.
        path: (k, n_joints) configurations.
        is_loaded: whether objects in the hand count.

    Returns:
        (k, n_arm) newton metres, or newtons of a sliding joint, in the order of ``manipulator.joints``.
    """
    rows = {frame: row for row, frame in enumerate(scene.frame_names)}
    masses, centres, frames, levels = _masses(scene, manipulator, is_loaded=is_loaded)
    movers = [scene.joint_frame(joint) for joint in manipulator.joints]
    joints = [scene.joint(mover) for mover in movers]
    poses = scene.poses_batch(path)[:, [rows[frame] for frame in (*frames, *movers)]]
    local = np.concatenate([centres, np.array([joint.axis for joint in joints]).reshape(-1, 3)])
    origins, vector, scalar = poses[..., :3], poses[..., 3:6], poses[..., 6:7]
    crossed = _cross(vector, local)
    world = local + 2.0 * (scalar * crossed + _cross(vector, crossed))  # turned by the quaternions
    axes, weighted = world[:, len(frames) :], masses[:, None] * (origins + world)[:, : len(frames)]
    result = np.zeros((len(path), len(movers)))
    for number, joint in enumerate(joints):
        carried, axis = levels > number, axes[:, number]
        mass, moment = float(masses[carried].sum()), weighted[:, carried].sum(axis=1)
        arm = moment - mass * origins[:, len(frames) + number]
        turning = axis[:, 0] * arm[:, 1] - axis[:, 1] * arm[:, 0]  # -a . (r x g), with g along -z
        result[:, number] = GRAVITY * (mass * axis[:, 2] if joint.type == "prismatic" else turning)
    return result


def _cross(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what np.cross does, in a third of its time."""
    parts = a[..., [1, 2, 0, 2, 0, 1]] * b[..., [2, 0, 1, 1, 2, 0]]
    return parts[..., :3] - parts[..., 3:]


def effort_fault(
    scene: SceneGraph, path: NDArray[np.float64], manipulator: Manipulator, *, share: float = 1.0
) -> str | None:
    """Return why an arm cannot hold itself and its load on a path (k, n_joints) with a share of its limits, or None."""
    counts = np.maximum(1, np.ceil(np.max(np.abs(np.diff(path, axis=0)), axis=1, initial=0.0) / _STEP)).astype(np.intp)
    rows = np.repeat(np.arange(len(counts)), counts)
    parts = (np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)) / counts[rows]
    dense = np.concatenate([path[rows] + parts[:, None] * (path[rows + 1] - path[rows]), path[-1:]])
    faults = effort_faults(scene, dense, manipulator, share=share)
    return next((fault for fault in faults if fault is not None), None)


def effort_faults(
    scene: SceneGraph, configurations: NDArray[np.float64], manipulator: Manipulator, *, share: float = 1.0
) -> list[str | None]:
    """Return for each configuration (k, n_joints) why an arm cannot hold itself and its load there, or None."""
    limits = manipulator.effort_limits(scene)
    fine: list[str | None] = [None] * len(configurations)
    if not np.isfinite(limits).any():
        return fine
    torques = np.abs(gravity_torques(scene, configurations, manipulator))
    if np.all(torques <= share * limits):
        return fine
    ready = manipulator.ready_configuration(scene, base=configurations[0])
    empty = np.abs(gravity_torques(scene, ready[None], manipulator, is_loaded=False)[0])
    limits = np.where(empty > limits, np.inf, limits)
    faults: list[str | None] = []
    for needed in torques:
        worst = int(np.argmax(needed / limits))
        said = f"gravity asks {needed[worst]:.3g} of joint '{manipulator.joints[worst]}'"
        is_too_much = needed[worst] > share * limits[worst]
        faults.append(f"{said}, whose effort limit is {limits[worst]:.3g}" if is_too_much else None)
    return faults


def _masses(
    scene: SceneGraph, manipulator: Manipulator, *, is_loaded: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str], NDArray[np.intp]]:
    """Return masses (m,), centres (m, 3) in the axes of frames, these frames, and how many of the joints carry each."""
    first, movable = scene.joint_frame(manipulator.joints[0]), {*movable_frames(scene)}
    movers = {scene.joint_frame(joint) for joint in manipulator.joints}
    levels: dict[str, int] = {}
    held: set[str] = set()
    bodies: set[str] = set()
    found: list[tuple[float, NDArray[np.float64], str, int]] = []
    for frame in scene.subtree(first):
        parent = str(scene.parent(frame))
        levels[frame] = levels.get(parent, 0) + (frame in movers)
        if parent in held:
            held.add(frame)
        elif frame in movable:
            held.add(frame)
            if is_loaded:
                inertia = lumped_inertia(scene, scene.subtree(frame), density=DENSITY)
                found.append((inertia.mass, inertia.center, frame, levels[frame]))
        elif (body := scene.body(frame)) not in bodies and (own := scene.inertia(frame)) is not None:
            bodies.add(body)
            found.append((own.mass, own.center, frame, levels[frame]))
    masses, centres = np.array([mass for mass, *_ in found]), np.array([centre for _, centre, *_ in found])
    levels_found = np.array([level for *_, level in found], dtype=np.intp)
    return masses, centres.reshape(-1, 3), [frame for _, _, frame, _ in found], levels_found
