"""Detections of objects: association, agreement and fusion, and supports of detected objects."""

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

TOLERANCE = 0.004
"""Position error of execution [m]. The orientation error is ten times as large [rad]."""

_MAX_SQUARED_DISTANCE = chi_square_quantile(0.9999, 6)
"""Squared Mahalanobis distance up to which a detection is consistent with a pose."""

_EXECUTION_COVARIANCE = np.diag([TOLERANCE**2] * 3 + [(10.0 * TOLERANCE) ** 2] * 3)
"""(6, 6) covariance of execution, ordered [rho, theta] [m, rad]."""

_MAX_TILT = 0.2
"""Tilt of a resting object up to which it counts as noise of the detection [rad]."""

_MAX_REST_GAP = 0.02
"""Distance between an object's bottom and a surface within which it rests there [m]."""


def associate_detections(
    detections: Sequence[Detection], scene: SceneGraph, q: NDArray[np.float64]
) -> dict[str, Detection]:
    """Return the detections of one look by object.

    Detections with a name belong to that object. The others are assigned jointly to the nearest
    remaining objects with their classes, by squared Mahalanobis distance.
    """
    objects = movable_frames(scene)
    assignment = {
        detection.frame: detection
        for detection in detections
        if detection.frame in objects
        or (detection.frame and detection.frame not in scene and detection.shapes)
    }
    unnamed = [detection for detection in detections if detection.frame is None]
    free = [name for name in objects if name not in assignment]
    if unnamed and free:
        kinematics = scene.at(q)

        def cost(name: str, detection: Detection) -> float:
            has_classes = {*detection.classes} <= {*scene.classes(name)}
            return distance(kinematics.pose(name), detection) if has_classes else math.inf

        costs = [[cost(name, detection) for name in free] for detection in unnamed]
        assignment |= {free[column]: unnamed[row] for row, column in associate(costs)}
    return assignment


def distance(
    expected: Pose, detection: Detection, covariance: NDArray[np.float64] = _EXECUTION_COVARIANCE
) -> float:
    """Return the squared Mahalanobis distance of a detection from a pose.

    Args:
        expected: root_from_object.
        detection: detection of the object.
        covariance: (6, 6) covariance of the pose. Defaults to that of execution.
    """
    error = (expected.inverse() @ detection.pose).log()
    return float(error @ np.linalg.solve(detection.covariance + covariance, error))


def is_consistent(
    expected: Pose, detection: Detection, covariance: NDArray[np.float64] = _EXECUTION_COVARIANCE
) -> bool:
    """Return whether the covariances explain the difference of a detection from a pose."""
    return distance(expected, detection, covariance) <= _MAX_SQUARED_DISTANCE


def largest_agreement(detections: Sequence[Detection]) -> list[Detection]:
    """Return the largest group of detections that are consistent with one of them."""
    groups: list[list[Detection]] = []
    for center in detections:
        covariance = center.covariance + _EXECUTION_COVARIANCE
        groups.append(
            [
                detection
                for detection in detections
                if is_consistent(center.pose, detection, covariance)
            ]
        )
    return max(groups, key=len)


def fuse_detections(detections: Sequence[Detection]) -> Pose:
    """Return the mean pose of an object from several detections."""
    poses = [GaussianPose(detection.pose, detection.covariance) for detection in detections]
    return fuse(poses).pose.mean


def rest_on_support(scene: SceneGraph, name: str, pose: Pose, q: NDArray[np.float64]) -> SceneGraph:
    """Return the scene with an object at a pose, level on its supporting surface.

    Args:
        scene: scene with the object.
        name: frame of the object.
        pose: root_from_object.
        q: (n_joints,) configuration.
    """
    rotation = pose.rotation
    side = int(np.argmax(np.abs(rotation[2])))  # the object's axis that is most upright
    up = np.sign(rotation[2, side]) * rotation[:, side]
    tilt = float(np.arccos(np.clip(up[2], -1.0, 1.0)))
    if tilt <= _MAX_TILT:
        axis = np.cross(up, [0.0, 0.0, 1.0])
        length = float(np.linalg.norm(axis))
        if length > 0.0:
            level = Pose.exp([0, 0, 0, *(tilt * axis / length)])
            pose = Pose(pose.translation) @ level @ Pose([0, 0, 0], pose.quat_xyzw)
    bottom = float(_corners(scene, name, pose)[:, 2].min())
    best: tuple[float, str] | None = None
    inside = {name, *scene.subtree(name)}
    for support in scene.frame_names:
        if support in inside or not _may_support(scene, support, q, pose.translation, bottom):
            continue
        for surface in support_surfaces(scene, support, q=q):
            root_from_surface = scene.pose(support, q=q) @ surface.support_from_surface
            height = float(root_from_surface.translation[2])
            x, y, _ = root_from_surface.inverse().apply(pose.translation)
            gap = abs(bottom - height)
            is_on_surface = gap <= _MAX_REST_GAP and surface.polygon.depth([[x, y]])[0] >= 0.0
            if is_on_surface and (best is None or gap < best[0]):
                best = gap, support
                root_from_object = Pose([0.0, 0.0, height - bottom]) @ pose
    parent = scene.root(name)  # without a support
    if best is not None:
        parent = best[1]
        pose = scene.pose(parent, q=q).inverse() @ root_from_object
    if scene.parent(name) != parent:
        return scene.reparent(name, parent, pose=pose)
    return scene.set_pose(name, pose)


def _corners(scene: SceneGraph, frame: str, pose: Pose) -> NDArray[np.float64]:
    """Return the corners (8, 3) of the box around the solid shapes of a frame at a pose."""
    intervals = zip(*shape_bounds(scene, frame), strict=True)
    return np.asarray(pose.apply(np.array([*itertools.product(*intervals)])))


def _may_support(
    scene: SceneGraph, frame: str, q: NDArray[np.float64], point: NDArray[np.float64], height: float
) -> bool:
    """Return whether the box around a frame's shapes is below a point and reaches a height."""
    kinds = {part.shape.kind for part in scene.shapes(frame) if part.collision}
    if not kinds or "plane" in kinds:  # a plane has no box
        return bool(kinds)
    corners = _corners(scene, frame, scene.pose(frame, q=q))
    low, high = corners.min(axis=0), corners.max(axis=0)
    return bool(
        np.all(low[:2] <= point[:2])
        and np.all(point[:2] <= high[:2])
        and high[2] >= height - _MAX_REST_GAP
    )
