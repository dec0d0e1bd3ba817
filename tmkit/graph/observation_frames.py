"""Observations: what was seen of a frame beside what its edge says, as part of the version.

An *observation* is a frame of the class ``observation`` that hangs under the observer where the
observed frame was seen, with the error of the look. An observation of a twist (``add_fact``) hangs
under the observed frame, with a twist edge. See ``docs/concepts/uncertainty.md``. Its stamp, kind
and tags are its attribute ``observation``; a group of its name, which follows a rename, holds the
observed frame and it. A frame that goes takes the group's first member with it: what was seen of it
is no observation any more.

The error of an observation is a noise source of its own: used for two frames, it is the same in
both.

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

CLASS = "observation"  # of the frames that are observations, and the name of their attribute
Kind = Literal["pose", "position", "orientation", "twist"]
_KINDS = ("pose", "position", "orientation")  # that are added here


@dataclass(frozen=True)
class Observation:
    """What was seen of one frame from another. Immutable.

    Attributes:
        name: the frame of the scene that stands where the observed frame was seen.
        frame: the frame that was seen.
        pose: relative_to_from_frame and its covariance, in the axes of the frame. Of a position
            alone, the orientation means nothing, and of an orientation alone the position.
        relative_to: the frame from which it was seen.
        kind: ``pose``, ``position`` or ``orientation``: what was seen; or ``twist``, of which
            ``name`` has a twist edge that waits for poses, ``pose`` its covariance, and
            ``relative_to`` is a frame of the other body, or that.
        stamp: when, in seconds; None when it is unknown.
        tags: what kind of observation it is.
    """

    name: str
    frame: str
    pose: GaussianPose
    relative_to: str
    kind: Kind
    stamp: float | None
    tags: frozenset[str]

    def measurement(self) -> Measurement:
        """Return it as ``scene.condition`` and ``innovation`` take it.

        Raises:
            SceneError: it is of an orientation alone, or of a twist.
        """
        if self.kind in ("orientation", "twist"):
            raise SceneError(
                f"{self} is of its {self.kind} alone, which is no measurement", frame=self.frame
            )
        frame, to, mean, covariance = (
            self.frame,
            self.relative_to,
            self.pose.mean,
            self.pose.covariance,
        )
        if self.kind == "pose":
            return Measurement.of_pose(frame, mean, relative_to=to, covariance=covariance)
        return Measurement.of_position(
            frame, mean.translation, relative_to=to, covariance=covariance[:3, :3]
        )

    def __str__(self) -> str:
        what = "" if self.kind == "pose" else f" ({self.kind})"
        when = "" if self.stamp is None else f" at {self.stamp:g} s"
        tags = f" ({', '.join(sorted(self.tags))})" if self.tags else ""
        return f"'{self.frame}'{what} seen from '{self.relative_to}'{when}{tags}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Uncertainty and origin of an observation or a fact.

    Args:
        covariance: covariance of its error; None if it is exact.
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
    """Return the version with one more observation of a frame; the frame stays where its edge says. O(log n).

    Args:
        scene: the scene.
        frame: the frame that was seen.
        pose: relative_to_from_frame.
        relative_to: the frame from which it was seen, in any tree.
        kind: what was seen: the whole pose, its position or orientation alone.
        evidence: covariance (6, 6) of [rho, theta] in the axes of the frame [m, rad], stamp and
            tags. Of a position alone the rotations of the covariance are zero, of an orientation
            alone its translations.

    Raises:
        UnknownNameError: no such frame, or kind.
        SceneError: a frame seen from itself, a stamp that is not finite, or no covariance.
    """
    for name in (frame, relative_to):
        if name not in scene:
            raise UnknownNameError.of("frame", name, scene.frame_names)
    if frame == relative_to:
        raise SceneError(f"frame '{frame}' cannot be observed from itself", frame=frame)
    if kind not in _KINDS:
        raise UnknownNameError.of("kind of observation", kind, _KINDS)
    evidence = Evidence() if evidence is None else evidence
    stamp = None if evidence.stamp is None else plain_number(evidence.stamp, "stamp")
    if stamp is not None and not math.isfinite(stamp):
        raise SceneError(
            f"the stamp of an observation must be a finite number or None, not {stamp}"
        )
    given = {"kind": kind, "stamp": stamp, "tags": sorted(set(checked_tags(evidence.tags)))}
    with scene.edit() as edit:
        name = free_name(scene, f"{frame} seen from {relative_to}")
        edit.add_frame(
            name, relative_to, pose=GaussianPose(pose, evidence.covariance), classes=[CLASS]
        )
        edit.set_attribute(name, CLASS, given)
        edit.set_group(name, frames=[frame, name])
    return edit.finish()


def checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags; a text is refused, of which each letter would be one."""
    if isinstance(tags, str):
        raise SceneError(f"tags are a set of texts, not the text '{tags}'")
    return tuple(tags)


def free_name(scene: SceneGraph, wanted: str) -> str:
    """Return a name that no frame and no group has."""
    core: Any = scene
    number, name = 1, wanted
    while name in scene or core._has_group(name):
        number += 1
        name = f"{wanted} ({number})"
    return name


def observations(scene: SceneGraph, frame: str | None = None) -> tuple[Observation, ...]:
    """Return the observations in a version, in the order in which they came. O(log n) for each in it.

    Args:
        scene: the scene.
        frame: the frame that was seen; of all frames if omitted.

    Raises:
        UnknownNameError: if a frame is unknown.
    """
    if frame is not None and frame not in scene:
        raise UnknownNameError.of("frame", frame, scene.frame_names)
    found, core = list[Observation](), cast("Any", scene)
    for name in scene.frames_of_class(CLASS):
        seen = next(iter(scene.group(name).frames if core._has_group(name) else ()), name)
        if seen == name or frame not in (None, seen):  # a frame that went is observed no more
            continue
        given = scene.attributes(name)[CLASS]
        pose = GaussianPose(scene.local_pose(name), scene.edge_covariance(name))
        observer = scene.parent(name)
        assert observer is not None, "it hangs under its observer"
        if given["kind"] == "twist":
            edge = scene.twist_edge(name)
            if edge is None:  # another motion is in its place
                continue
            pose = GaussianPose(Pose(), twist_covariance(scene, name))
            observer = next(iter(scene.frames_of_body(edge[0])), edge[0])
        tags = frozenset(given["tags"])
        found.append(Observation(name, seen, pose, observer, given["kind"], given["stamp"], tags))
    return tuple(found)


def remove_observations(scene: SceneGraph, gone: Iterable[Observation] | None = None) -> SceneGraph:
    """Return the version without some observations, such as those too old.

    Args:
        scene: the scene.
        gone: those that go; all if omitted.

    Raises:
        UnknownNameError: one that is not in the version.
    """
    with scene.edit() as edit:
        for name in scene.frames_of_class(CLASS) if gone is None else [one.name for one in gone]:
            edit.remove_frame(name, subtree=True)
            edit.remove_group(name)
    return edit.finish()
