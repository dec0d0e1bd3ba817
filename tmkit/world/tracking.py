"""Function blocks that follow the world: predictions, tracks of objects, outdated data, and the PDDL state."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tmkit._core import AttachedShape, Free, SceneGraph, StampedPoses
from tmkit.errors import SceneError
from tmkit.estimation.policies import associate
from tmkit.graph import Stamped, When, at_stamp, observations
from tmkit.graph.observation_frames import remove_observations
from tmkit.graph.patterns import Part, Pattern
from tmkit.graph.traversal import stamped_attributes
from tmkit.spatial import GaussianPose, chi_square_quantile, fuse
from tmkit.spatial.consistency import mahalanobis_distance
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.problems import scene_objects
from tmkit.world.blocks import Edit, Found, FunctionBlock, OutputFrame, newest_configuration

_Spread = tuple[float, float]  # of translations and of rotations
_Patterns = Mapping[str, Pattern]


def newest_stamp(scene: SceneGraph, frame: str) -> float | None:
    """Return the newest stamp of a frame's poses, shapes, attributes and observation, in seconds; None without any."""
    known = scene.stamped_poses(frame)
    stamps: list[float] = [] if known is None else known.stamps.tolist()
    stamps += list(scene.attribute_stamps(frame).values())
    stamps += [attached.stamp for attached in scene.shapes(frame) if attached.stamp is not None]
    if "observation" in scene.classes(frame):
        stamps += [
            stamp
            for stamp in [scene.attributes(frame)["observation"]["stamp"]]
            if stamp is not None
        ]
    return max(stamps, default=None)


def _has_two_poses(scene: SceneGraph, frame: str) -> bool:
    known = scene.stamped_poses(frame)
    return known is not None and len(known.stamps) > 1


@dataclass(frozen=True)
class Predictor(FunctionBlock):
    """Predicts where moving frames will be, a time after their newest stamped poses, with the covariance of then.

    A frame goes on by its twist edge, or else at the velocity between its last two stamped poses,
    whose error is that of the two poses. The covariance grows by white noise of the acceleration,
    as :func:`tmkit.graph.at_stamp` states.

    Args:
        name, input_hook, output_hook: as for :class:`~tmkit.world.FunctionBlock`.
        kind: class of the frames that are predicted; each needs two stamped poses.
        horizon: seconds after the newest stamped pose of each.
        acceleration_noise: power spectral densities, linear and angular, m^2/s^3 and rad^2/s^3.

    Raises:
        SceneError: a horizon that is not positive.
    """

    # attribute ``of``
    outputs: ClassVar[_Patterns] = {"predictions": Pattern([Part("prediction", ["prediction"])])}
    kind: str = field(default="movable", kw_only=True)
    horizon: float = field(default=1.0, kw_only=True)
    acceleration_noise: _Spread = field(default=(0.01, 0.01), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.horizon < math.inf:
            raise SceneError(
                f"function block '{self.name}': horizon is a positive time, not {self.horizon}"
            )

    @property
    def inputs(self) -> Mapping[str, Pattern]:
        """Frames of the class with two stamped poses."""
        return {"moving": Pattern([Part("moving", [self.kind], test=_has_two_poses)])}

    def execute(self, scene: SceneGraph, found: Found) -> Edit:
        """Return the predictions."""
        made = []
        for match in found["moving"]:
            frame = match["moving"]
            parent, known = scene.parent(frame), scene.stamped_poses(frame)
            assert parent is not None, "it has an edge"
            assert known is not None, "it has stamped poses"
            first, newest = known.stamps[-2:].tolist()
            ready = scene
            if scene.twist_edge(frame) is None:
                twist = scene.twist_from_stamps(
                    frame, relative_to=parent, first=first, second=newest
                )
                error = 2.0 * scene.edge_covariance(frame) / (newest - first) ** 2
                ready = scene.set_twist(
                    frame, twist, relative_to_body=scene.body(parent), covariance=error
                )
            stamp = newest + self.horizon
            then = at_stamp(
                ready,
                When(
                    stamp,
                    extrapolate=2.0 * self.horizon,
                    acceleration_noise=self.acceleration_noise,
                ),
                frames=[frame],
            )
            parts = scene.shapes(frame)
            shapes = [
                AttachedShape(p.shape, p.pose, color=p.color, visual=p.visual, collision=False)
                for p in parts
            ]
            made.append(
                OutputFrame(
                    f"{self.name} {frame}",
                    parent,
                    then.local_pose(frame),
                    then.edge_covariance(frame),
                    ["prediction"],
                    shapes,
                    {"of": Stamped(frame, stamp)},
                    Free(),
                )
            )
        return self.output(made)


@dataclass(frozen=True, eq=False)
class _Track:
    name: str
    pose: GaussianPose
    stamp: float
    classes: tuple[str, ...]
    hits: int = 1
    misses: int = 0


@dataclass(frozen=True)
class ObjectTracker(FunctionBlock):
    """Follows objects through detections without names: gates, associates, filters, and drops tracks that are missed.

    Detections are frames of a class with a stamp and a covariance; those of one stamp are one look,
    in which an object is seen once at most. Looks older than the last are not used again. Between
    two looks the covariance of a track grows (a random walk of its pose); a detection within the
    gate is fused with it.

    A track is a frame of the class ``track`` under the output hook, which keeps its name, with the
    detection's other classes; it is ``tentative`` before it was seen ``confirm`` times. Its stamped
    attribute ``hits`` and the attribute ``misses`` count looks.

    Args:
        name, input_hook, output_hook: as for :class:`~tmkit.world.FunctionBlock`.
        kind: class of the detections.
        gate: the probability with which a detection of an object is within its gate.
        drift: variance of a track's pose by which it grows each second, m^2/s and rad^2/s.
        confirm: looks after which a track counts.
        max_misses: looks in a row without it after which a track ends.

    Raises:
        SceneError: a gate that is no probability, or a drift below 0.

    Source: Bar-Shalom, Li and Kirubarajan, *Estimation with applications to tracking and
        navigation*, 2001.
    """

    outputs: ClassVar[_Patterns] = {
        "tracks": Pattern([Part("track", ["track"])]),
        "new": Pattern([Part("track", ["tentative"])]),
    }
    kind: str = field(default="detection", kw_only=True)
    gate: float = field(default=0.999, kw_only=True)
    drift: _Spread = field(default=(1e-3, 1e-2), kw_only=True)
    confirm: int = field(default=2, kw_only=True)
    max_misses: int = field(default=3, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        chi_square_quantile(self.gate, 6)
        if not min(self.drift) >= 0.0:
            raise SceneError(f"function block '{self.name}': drift is at least 0, not {self.drift}")

    @property
    def inputs(self) -> Mapping[str, Pattern]:
        """Detections."""
        return {"detection": Pattern([Part("detection", [self.kind])])}

    def execute(self, scene: SceneGraph, found: Found) -> Edit:
        """Return the tracks after all looks that are newer than the last."""
        group = scene.group(self.name) if self.name in scene.group_names else None
        known: Mapping[str, Any] = (
            {"looked": None, "count": 0} if group is None else group.attributes
        )
        tracks, count = [self._track(scene, name) for name in self.made(scene)], int(known["count"])
        looked = -math.inf if known["looked"] is None else known["looked"]
        looks: dict[float, list[str]] = {}
        for match in found["detection"]:
            stamp = newest_stamp(scene, match["detection"])
            if stamp is None:
                raise SceneError(f"detection '{match['detection']}' has no stamp")
            if stamp > looked:
                looks.setdefault(stamp, []).append(match["detection"])
        parent = self.place(scene)
        q = newest_configuration(scene)
        for stamp in sorted(looks):
            names = looks[stamp]
            seen = [scene.gaussian_pose(name, relative_to=parent, q=q) for name in names]
            classes = [
                tuple(kind for kind in scene.classes(name) if kind != self.kind) for name in names
            ]
            tracks, others = self._looked(tracks, stamp, seen, classes)
            for number in others:
                count += 1
                tracks.append(_Track(f"{self.name} {count}", seen[number], stamp, classes[number]))
            tracks = [track for track in tracks if track.misses <= self.max_misses]
            looked = stamp
        made = [
            OutputFrame(
                track.name,
                None,
                track.pose.mean,
                track.pose.covariance,
                ["track" if track.hits >= self.confirm else "tentative", *track.classes],
                (),
                {"hits": Stamped(track.hits, track.stamp), "misses": track.misses},
                Free(),
            )
            for track in tracks
        ]
        return self.output(
            made, attributes={"looked": looked if looks else known["looked"], "count": count}
        )

    def _looked(
        self,
        tracks: list[_Track],
        stamp: float,
        seen: list[GaussianPose],
        classes: list[tuple[str, ...]],
    ) -> tuple[list[_Track], list[int]]:
        """Return the tracks after a look, and the numbers of the detections that belong to none of them."""
        tracks = [self._predicted(track, stamp) for track in tracks]
        costs = [
            [_distance(one, track.pose) if kinds == track.classes else math.inf for track in tracks]
            for one, kinds in zip(seen, classes, strict=True)
        ]
        pairs = dict(associate(costs, gate=chi_square_quantile(self.gate, 6))) if tracks else {}
        updated = [replace(track, misses=track.misses + 1) for track in tracks]
        for row, column in pairs.items():
            track = tracks[column]
            updated[column] = replace(
                track, pose=fuse([track.pose, seen[row]]).pose, hits=track.hits + 1, misses=0
            )
        return updated, [number for number in range(len(seen)) if number not in pairs]

    def _predicted(self, track: _Track, stamp: float) -> _Track:
        """Return a track at a later stamp, with the covariance of a random walk."""
        growth = np.repeat(self.drift, 3) * (stamp - track.stamp)
        return replace(
            track,
            pose=GaussianPose(track.pose.mean, track.pose.covariance + np.diag(growth)),
            stamp=stamp,
        )

    @staticmethod
    def _track(scene: SceneGraph, name: str) -> _Track:
        own = scene.attributes(name)
        pose = GaussianPose(scene.local_pose(name), scene.edge_covariance(name))
        stamp = scene.attribute_stamps(name)["hits"]
        return _Track(name, pose, stamp, scene.classes(name)[1:], own["hits"], own["misses"])


def _distance(a: GaussianPose, b: GaussianPose) -> float:
    """Return the squared Mahalanobis distance of two independent estimates."""
    return mahalanobis_distance((b.mean.inverse() @ a.mean).log(), a.covariance + b.covariance)[0]


@dataclass(frozen=True)
class OutdatedRemover(FunctionBlock):
    """Removes what is outdated below its input hook: frames, observations, stamped poses and stamped attributes.

    A frame goes, with what is below it, when its newest stamp is outdated and no frame below it has
    one that is not. What has no stamp is never outdated by itself.

    Args:
        name, input_hook, output_hook: as for :class:`~tmkit.world.FunctionBlock`.
        max_age: seconds.
        clock: the time, on the clock of the stamps; that of the newest stamp below the hook if
            omitted.

    Raises:
        SceneError: an age that is no number of at least 0.
    """

    inputs: ClassVar[_Patterns] = {
        "stamped": Pattern(
            [Part("stamped", test=lambda scene, frame: newest_stamp(scene, frame) is not None)]
        )
    }
    outputs: ClassVar[_Patterns] = {}
    max_age: float = field(default=10.0, kw_only=True)
    clock: Callable[[], float] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.max_age >= 0.0:
            raise SceneError(
                f"function block '{self.name}': max_age is at least 0, not {self.max_age}"
            )

    def is_editable(self, scene: SceneGraph, frame: str) -> bool:
        """Return whether a frame is below the input hook."""
        return frame in self.input_frames(scene)

    def execute(self, scene: SceneGraph, found: Found) -> Edit:
        """Return the edit that removes them."""
        stamps = {
            match["stamped"]: newest_stamp(scene, match["stamped"]) or 0.0
            for match in found["stamped"]
        }
        now = max(stamps.values(), default=0.0) if self.clock is None else self.clock()
        oldest = now - self.max_age
        fresh = {frame for frame, stamp in stamps.items() if stamp >= oldest}
        kept = fresh.union(*(scene.ancestors(frame) for frame in fresh))
        return lambda scene: self._without(
            scene, oldest, [frame for frame in stamps if frame not in kept], kept
        )

    @staticmethod
    def _without(scene: SceneGraph, oldest: float, gone: list[str], kept: set[str]) -> SceneGraph:
        scene = remove_observations(scene, [one for one in observations(scene) if one.name in gone])
        for frame in gone:
            if frame in scene:
                scene = scene.remove_frame(frame, subtree=True)
        for frame in scene.frame_names:
            if frame not in kept:
                continue
            known = scene.stamped_poses(frame)
            if known is not None and len(known.stamps) and known.stamps[0] < oldest:
                new = [
                    (stamp, pose)
                    for stamp, pose in zip(known.stamps, known.poses, strict=True)
                    if stamp >= oldest
                ]
                poses = StampedPoses(
                    [s for s, _ in new],
                    [p for _, p in new],
                    capacity=known.capacity,
                    window=known.window,
                )
                scene = scene.set_stamped_poses(frame, poses)
            stamps = scene.attribute_stamps(frame)
            if min(stamps.values(), default=oldest) < oldest:
                own = stamped_attributes(scene.specification(frame)).items()
                fresh = {key: value for key, value in own if stamps.get(key, oldest) >= oldest}
                scene = scene.set_attributes(frame, fresh)
        return scene


@dataclass(frozen=True)
class StatePublisher(FunctionBlock):
    """Derives the PDDL state of the world, and publishes it when it changes.

    The facts are the attribute ``facts`` of the group of the block, as texts in order.

    Args:
        name, input_hook, output_hook: as for :class:`~tmkit.world.FunctionBlock`; it depends on the
            whole version.
        domain: as :func:`tmkit.tamp.load_planning_domain` returns it.
        on_state: called with the facts of each new state, in order, before its version is the
            present one.
        q: (n_joints,) the configuration where joints have no histories; the zero configuration if
            omitted.
    """

    inputs: ClassVar[_Patterns] = {}
    outputs: ClassVar[_Patterns] = {}
    domain: PlanningDomain = field(kw_only=True)
    on_state: Callable[[tuple[str, ...]], None] | None = field(default=None, kw_only=True)
    q: tuple[float, ...] | None = field(default=None, kw_only=True)

    def execute(self, scene: SceneGraph, found: Found) -> Edit:
        """Return the edit that sets the facts."""
        del found
        q: NDArray[np.float64] | None = newest_configuration(scene)
        if q is None:
            q = scene.zero_configuration() if self.q is None else np.asarray(self.q, dtype=float)
        state = self.domain.state(scene, scene_objects(scene, self.domain), q)
        return self.output(attributes={"facts": sorted(map(str, state.facts))})

    def after_execute(self, before: SceneGraph, after: SceneGraph) -> None:
        """Publish the state."""
        del before
        if self.on_state is not None:
            self.on_state(tuple(after.group(self.name).attributes["facts"]))
