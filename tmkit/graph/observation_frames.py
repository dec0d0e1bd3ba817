"""Observations of frames, stored in the scene beside the pose of their edge.

An *observation* is a frame of the class ``observation`` below the observer, at the observed pose
and with the error of the observation. An observation of a twist (``add_fact``) is a frame below the
observed frame, with a twist edge. See ``docs/concepts/uncertainty.md``.

Its stamp, kind and tags are its attribute ``observation``. A group of the same name, which follows
a rename, contains the observed frame first and then the observation. If the observed frame is
removed, the group loses its first member, and the observation is no longer listed.

The error of an observation is a separate noise source: used for two frames, it is the same in both.

The idea is that of the Robot Scene Graph: Blumenthal, Bruyninckx, Nowak and Prassler, "A scene
graph based shared 3D world model for robotic applications", 2013.

Invariants: functions of one version.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast

from numpy.typing import ArrayLike

from tmkit._core import Measurement, SceneGraph
from tmkit.errors import SceneError, UnknownNameError
from tmkit.graph.traversal import twist_covariance
from tmkit.spatial import GaussianPose, Pose
from tmkit.spatial.plain import plain_number

CLASS = "observation"
"""Class of the frames that are observations, and name of their attribute."""

Kind = Literal["pose", "position", "orientation", "twist"]

_KINDS = ("pose", "position", "orientation")
"""Kinds of observation that :func:`add_observation` adds."""


@dataclass(frozen=True)
class Observation:
    """Observation of one frame from another. Immutable.

    Attributes:
        name: frame of the scene that stores the observation.
        frame: the observed frame.
        pose: relative_to_from_frame and its covariance, in the axes of the frame. The orientation
            of a position and the position of an orientation are undefined. A twist has its
            covariance here.
        relative_to: the observer. For a twist, a frame of the reference body, or the body.
        kind: the observed quantity: ``pose``, ``position``, ``orientation`` or ``twist``. A twist
            is a twist edge of ``name``, which takes effect once poses join the trees.
        stamp: time of the observation [s]; None if unknown.
        tags: categories of the observation.
    """

    name: str
    frame: str
    pose: GaussianPose
    relative_to: str
    kind: Kind
    stamp: float | None
    tags: frozenset[str]

    def measurement(self) -> Measurement:
        """Return the measurement that ``scene.condition`` and ``innovation`` take.

        Raises:
            SceneError: if it is of an orientation alone, or of a twist.
        """
        if self.kind in ("orientation", "twist"):
            raise SceneError(
                f"{self} is of its {self.kind} alone, which is not a measurement", frame=self.frame
            )
        mean, covariance = self.pose.mean, self.pose.covariance
        if self.kind == "pose":
            return Measurement.of_pose(
                self.frame, mean, relative_to=self.relative_to, covariance=covariance
            )
        return Measurement.of_position(
            self.frame,
            mean.translation,
            relative_to=self.relative_to,
            covariance=covariance[:3, :3],
        )

    def __str__(self) -> str:
        kind = "" if self.kind == "pose" else f" ({self.kind})"
        stamp = "" if self.stamp is None else f" at {self.stamp:g} s"
        tags = f" ({', '.join(sorted(self.tags))})" if self.tags else ""
        return f"'{self.frame}'{kind} seen from '{self.relative_to}'{stamp}{tags}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Uncertainty and origin of an observation or a fact.

    Args:
        covariance: covariance of the error; None if exact.
        stamp: time of the observation [s]; None if it has none.
        tags: kinds of the observation, for policies that resolve observations.
    """

    covariance: ArrayLike | None = None
    stamp: float | None = None
    tags: Iterable[str] = ()


def add_observation(
    scene: SceneGraph,
    frame: str,
    pose: Pose,
    *,
    relative_to: str,
    kind: Kind = "pose",
    evidence: Evidence | None = None,
) -> SceneGraph:
    """Return the version with a further observation of a frame, whose own pose is unchanged.

    O(log n).

    Args:
        scene: the scene.
        frame: the observed frame.
        pose: relative_to_from_frame.
        relative_to: the observer, in any tree.
        kind: the observed quantity: the whole pose, its position or its orientation.
        evidence: (6, 6) covariance of [rho, theta] in the axes of the frame [m, rad], stamp and
            tags. The rotational part of a position's covariance is zero, and so is the
            translational part of an orientation's.

    Raises:
        UnknownNameError: if a frame or the kind is unknown.
        SceneError: if the frame is its own observer, the stamp is not finite, or the covariance is
            invalid.
    """
    for name in (frame, relative_to):
        if name not in scene:
            raise UnknownNameError.of("frame", name, scene.frame_names)
    if frame == relative_to:
        raise SceneError(f"frame '{frame}' cannot be observed from itself", frame=frame)
    if kind not in _KINDS:
        raise UnknownNameError.of("kind of observation", kind, _KINDS)
    evidence = Evidence() if evidence is None else evidence
    stamp = None if evidence.stamp is None else plain_number(evidence.stamp, "stamp", "s")
    if stamp is not None and not math.isfinite(stamp):
        raise SceneError(
            f"the stamp of an observation must be a finite number or None, not {stamp}"
        )
    details = {"kind": kind, "stamp": stamp, "tags": sorted(set(require_tags(evidence.tags)))}
    with scene.edit() as edit:
        name = free_name(scene, f"{frame} seen from {relative_to}")
        edit.add_frame(
            name, relative_to, pose=GaussianPose(pose, evidence.covariance), classes=[CLASS]
        )
        edit.set_attribute(name, CLASS, details)
        edit.set_group(name, frames=[frame, name])
    return edit.finish()


def require_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags as a tuple, or raise SceneError for a single text, which would be split."""
    if isinstance(tags, str):
        raise SceneError(f"tags must be a set of texts, not the text '{tags}'")
    return tuple(tags)


def free_name(scene: SceneGraph, base: str) -> str:
    """Return an unused name of a frame or group, made from a base name."""
    core: Any = scene
    number, name = 1, base
    while name in scene or core._has_group(name):
        number += 1
        name = f"{base} ({number})"
    return name


def observations(scene: SceneGraph, frame: str | None = None) -> tuple[Observation, ...]:
    """Return the observations in a version, in the order of their addition. O(log n) for each.

    Args:
        scene: the scene.
        frame: the observed frame; all frames if omitted.

    Raises:
        UnknownNameError: if a frame is unknown.
    """
    if frame is not None and frame not in scene:
        raise UnknownNameError.of("frame", frame, scene.frame_names)
    result, core = list[Observation](), cast("Any", scene)
    for name in scene.frames_of_class(CLASS):
        target = next(iter(scene.group(name).frames if core._has_group(name) else ()), name)
        if target == name or frame not in (None, target):  # also if the observed frame was removed
            continue
        details = scene.attributes(name)[CLASS]
        pose = GaussianPose(scene.local_pose(name), scene.edge_covariance(name))
        observer = scene.parent(name)
        assert observer is not None, "the parent of an observation is its observer"
        if details["kind"] == "twist":
            edge = scene.twist_edge(name)
            if edge is None:  # the twist edge was removed
                continue
            pose = GaussianPose(Pose(), twist_covariance(scene, name))
            observer = next(iter(scene.frames_of_body(edge[0])), edge[0])
        kind, stamp, tags = details["kind"], details["stamp"], frozenset(details["tags"])
        result.append(Observation(name, target, pose, observer, kind, stamp, tags))
    return tuple(result)


def remove_observations(
    scene: SceneGraph, selection: Iterable[Observation] | None = None
) -> SceneGraph:
    """Return the version without some observations, such as outdated ones.

    Args:
        scene: the scene.
        selection: the observations to remove; all if omitted.

    Raises:
        UnknownNameError: if an observation is not in the version.
    """
    names: Iterable[str] = scene.frames_of_class(CLASS)
    if selection is not None:
        names = [observation.name for observation in selection]
    with scene.edit() as edit:
        for name in names:
            edit.remove_frame(name, subtree=True)
            edit.remove_group(name)
    return edit.finish()
