"""Association of detections with objects, agreement of detections, and supports of detected objects."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit._core import SceneGraph
from tmkit.estimation.policies import associate
from tmkit.motion.regions.surfaces import support_surfaces
from tmkit.robots import movable_frames
from tmkit.simulation import Detection
from tmkit.spatial import GaussianPose, Pose, chi_square_quantile, fuse
from tmkit.tamp.domains.tabletop import shape_bounds

TOLERANCE = 0.004  # metres and, in radians, ten times that, by which execution may be off
# squared distance up to which a detection of what is where it should be agrees
_GATE = chi_square_quantile(0.9999, 6)
_MARGIN = np.diag([TOLERANCE**2] * 3 + [(10.0 * TOLERANCE) ** 2] * 3)
_UPRIGHT = 0.2  # radians from a rest on a side up to which a tilt is taken for noise of the look
_RESTING = 0.02  # metres between an object's bottom and a surface within which it rests there


def associated(
    found: Sequence[Detection], scene: SceneGraph, q: NDArray[np.float64]
) -> dict[str, Detection]:
    """Return the detections of one look by object: by name, else the nearest of the kind, all together, by errors."""
    objects = movable_frames(scene)
    named = {
        one.frame: one
        for one in found
        if one.frame in objects or (one.frame and one.frame not in scene and one.shapes)
    }
    rest = [one for one in found if one.frame is None]
    free = [name for name in objects if name not in named]
    if rest and free:
        at = scene.at(q)
        costs = [
            [
                (
                    distance(at.pose(name), one)
                    if {*one.classes} <= {*scene.classes(name)}
                    else math.inf
                )
                for name in free
            ]
            for one in rest
        ]
        named |= {free[c]: rest[r] for r, c in associate(costs)}
    return named


def distance(
    expected: Pose, detection: Detection, covariance: NDArray[np.float64] = _MARGIN
) -> float:
    """Return the squared Mahalanobis distance of a detection from a pose with a covariance, that of execution."""
    error = (expected.inverse() @ detection.pose).log()
    return float(error @ np.linalg.solve(detection.covariance + covariance, error))


def agrees(expected: Pose, detection: Detection, covariance: NDArray[np.float64] = _MARGIN) -> bool:
    """Return whether covariances explain the difference of a detection from a pose."""
    return distance(expected, detection, covariance) <= _GATE


def largest_agreement(found: Sequence[Detection]) -> list[Detection]:
    """Return the most detections that agree with one of them."""
    groups = (
        [other for other in found if agrees(one.pose, other, one.covariance + _MARGIN)]
        for one in found
    )
    return max(groups, key=len)


def fused(found: Sequence[Detection]) -> Pose:
    """Return where several detections together put an object."""
    return fuse([GaussianPose(one.pose, one.covariance) for one in found]).pose.mean


def resting(scene: SceneGraph, name: str, pose: Pose, q: NDArray[np.float64]) -> SceneGraph:
    """Return the scene in which an object is at a pose, root_from_object: level on the surface on which it rests."""
    turn = pose.rotation
    side = int(np.argmax(np.abs(turn[2])))  # the object's axis that is most upright
    up = np.sign(turn[2, side]) * turn[:, side]
    tilt = float(np.arccos(np.clip(up[2], -1.0, 1.0)))
    if tilt <= _UPRIGHT:
        axis = np.cross(up, [0.0, 0.0, 1.0])
        length = float(np.linalg.norm(axis))
        if length > 0.0:
            level = Pose.exp([0, 0, 0, *(tilt * axis / length)])
            pose = Pose(pose.translation) @ level @ Pose([0, 0, 0], pose.quat_xyzw)
    low = float(_corners(scene, name, pose)[:, 2].min())
    best: tuple[float, str] | None = None
    inside = {name, *scene.subtree(name)}
    for support in scene.frame_names:
        if support in inside or not _may_support(scene, support, q, pose.translation, low):
            continue
        for surface in support_surfaces(scene, support, q=q):
            root_from_surface = scene.pose(support, q=q) @ surface.support_from_surface
            height = float(root_from_surface.translation[2])
            x, y, _ = root_from_surface.inverse().apply(pose.translation)
            gap = abs(low - height)
            if (
                gap <= _RESTING
                and surface.polygon.depth([[x, y]])[0] >= 0.0
                and (best is None or gap < best[0])
            ):
                best = gap, support
                pose_on = Pose([0.0, 0.0, height - low]) @ pose
    parent = scene.root(name) if best is None else best[1]  # the root: on nothing that is known
    pose = pose if best is None else scene.pose(parent, q=q).inverse() @ pose_on
    return (
        scene.reparent(name, parent, pose=pose)
        if scene.parent(name) != parent
        else scene.set_pose(name, pose)
    )


def _corners(scene: SceneGraph, frame: str, pose: Pose) -> NDArray[np.float64]:
    """Return the corners (8, 3) of the box around the solid shapes of a frame at a pose."""
    return np.asarray(
        pose.apply(np.array([*itertools.product(*zip(*shape_bounds(scene, frame), strict=True))]))
    )


def _may_support(
    scene: SceneGraph, frame: str, q: NDArray[np.float64], point: NDArray[np.float64], height: float
) -> bool:
    """Return whether the box around a frame's shapes has a point above it, and reaches a height."""
    kinds = {part.shape.kind for part in scene.shapes(frame) if part.collision}
    if not kinds or "plane" in kinds:  # which has no box
        return bool(kinds)
    corners = _corners(scene, frame, scene.pose(frame, q=q))
    low, high = corners.min(axis=0), corners.max(axis=0)
    return bool(
        np.all(low[:2] <= point[:2])
        and np.all(point[:2] <= high[:2])
        and high[2] >= height - _RESTING
    )
