"""Function blocks for predictions, object tracks, outdated data and the PDDL state."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from tmkit._core import (
    AttachedShape,
    Free,
    SceneGraph,
    StampedPoses,
    inverse_left_jacobian,
    inverse_right_jacobian,
)
from tmkit.errors import SceneError
from tmkit.estimation.policies import associate
from tmkit.graph import Stamped, When, at_stamp, observations
from tmkit.graph.moments import sum_errors
from tmkit.graph.observation_frames import remove_observations
from tmkit.graph.patterns import Part, Pattern
from tmkit.graph.traversal import stamped_attributes
from tmkit.spatial import GaussianPose, chi_square_quantile, fuse
from tmkit.spatial.consistency import mahalanobis_distance
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.world.blocks import Edit, FunctionBlock, Matches, OutputFrame, newest_configuration

_TwoNumbers = tuple[float, float]
"""Quantity of translations and quantity of rotations."""

_Patterns = Mapping[str, Pattern]


def newest_stamp(scene: SceneGraph, frame: str) -> float | None:
    """Return the newest stamp of a frame [s]; None without stamps.

    Stamps are those of its poses, shapes, attributes and observation.
    """
    history = scene.stamped_poses(frame)
    stamps: list[float] = [] if history is None else history.stamps.tolist()
    stamps += list(scene.attribute_stamps(frame).values())
    stamps += [attached.stamp for attached in scene.shapes(frame) if attached.stamp is not None]
    if "observation" in scene.classes(frame):
        observation_stamp = scene.attributes(frame)["observation"]["stamp"]
        if observation_stamp is not None:
            stamps.append(observation_stamp)
    return max(stamps, default=None)


def _has_two_poses(scene: SceneGraph, frame: str) -> bool:
    history = scene.stamped_poses(frame)
    return history is not None and len(history.stamps) > 1


@dataclass(frozen=True)
class Predictor(FunctionBlock):
    """Prediction of the poses of moving frames, with covariance, a time after their newest poses.

    A frame moves by its twist edge, or else at the velocity between its last two stamped poses,
    with the errors of both. If neither has a covariance, these are independent, with the covariance
    of the edge. The covariance grows by white noise of the acceleration, as in
    :func:`tmkit.graph.at_stamp`. Each prediction has the attribute ``of`` with its frame.

    Args:
        name: as for :class:`~tmkit.world.FunctionBlock`.
        input_hook: as for :class:`~tmkit.world.FunctionBlock`.
        output_hook: as for :class:`~tmkit.world.FunctionBlock`.
        kind: class of the predicted frames. Each needs two stamped poses.
        horizon: time after the newest stamped pose of each frame [s].
        acceleration_noise: power spectral densities, linear and angular [m^2/s^3, rad^2/s^3].

    Raises:
        SceneError: if the horizon is not positive.
    """

    outputs: ClassVar[_Patterns] = {"predictions": Pattern([Part("prediction", ["prediction"])])}
    kind: str = field(default="movable", kw_only=True)
    horizon: float = field(default=1.0, kw_only=True)
    acceleration_noise: _TwoNumbers = field(default=(0.01, 0.01), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.horizon < math.inf:
            raise SceneError(
                f"function block '{self.name}': expected a positive horizon, got {self.horizon}"
            )

    @property
    def inputs(self) -> Mapping[str, Pattern]:
        """Frames of the class with two stamped poses."""
        return {"moving": Pattern([Part("moving", [self.kind], test=_has_two_poses)])}

    def execute(self, scene: SceneGraph, matches: Matches) -> Edit:
        """Return the predictions."""
        predictions = []
        for match in matches["moving"]:
            frame = match["moving"]
            parent, history = scene.parent(frame), scene.stamped_poses(frame)
            assert parent is not None, "it has an edge"
            assert history is not None, "it has stamped poses"
            moving = scene
            if scene.twist_edge(frame) is None:
                moving = _add_twist(scene, frame, parent, history)
            stamp = float(history.stamps[-1]) + self.horizon
            time = When(
                stamp, extrapolate=2.0 * self.horizon, acceleration_noise=self.acceleration_noise
            )
            future = at_stamp(moving, time, frames=[frame])
            parts = scene.shapes(frame)
            shapes = [
                AttachedShape(p.shape, p.pose, color=p.color, visual=p.visual, collision=False)
                for p in parts
            ]
            predictions.append(
                OutputFrame(
                    f"{self.name} {frame}",
                    parent,
                    future.local_pose(frame),
                    future.edge_covariance(frame),
                    ["prediction"],
                    shapes,
                    {"of": Stamped(frame, stamp)},
                    Free(),
                )
            )
        return self.output(predictions)


def _add_twist(scene: Any, frame: str, parent: str, history: StampedPoses) -> SceneGraph:
    """Return the scene with the constant twist between the last two poses of an edge.

    To first order, the twist ``x / dt`` with ``x = log(T0^-1 T1)`` has the error
    ``(Jr^-1(x) xi1 - Jl^-1(x) xi0) / dt``.
    """
    start, end = history.stamps[-2:].tolist()
    twist = scene.twist_from_stamps(frame, relative_to=parent, first=start, second=end)
    body, dt = scene.body(parent), end - start
    if all(covariance is None for covariance in history.covariances[-2:]):
        covariance = 2.0 * scene.edge_covariance(frame) / dt**2
        moving = scene.set_twist(frame, twist, relative_to_body=body, covariance=covariance)
        return cast("SceneGraph", moving)
    first, second = (scene._stamped_noise(frame, stamp, "preceding") for stamp in (start, end))
    x = twist * dt
    error = sum_errors(
        (inverse_right_jacobian(x) / dt, second), (-inverse_left_jacobian(x) / dt, first)
    )
    moving = scene.set_twist(frame, twist, relative_to_body=body)
    return cast("SceneGraph", moving.set_twist_noise(frame, error))


@dataclass(frozen=True, eq=False)
class _Track:
    """Estimate of an object at the last look, with the number of hits and of consecutive misses."""

    name: str
    pose: GaussianPose
    stamp: float
    classes: tuple[str, ...]
    hits: int = 1
    misses: int = 0


@dataclass(frozen=True)
class ObjectTracker(FunctionBlock):
    """Multi-object tracker for detections without names, with gating, association and filtering.

    Detections are frames of a class with a stamp and a covariance. Those of one stamp form one
    look, with at most one detection of each object. Looks older than the last are not used again.
    Between two looks the covariance of a track grows (a random walk of its pose). A detection
    within the gate is fused with its track.

    A track is a frame of the class ``track`` under the output hook. It keeps its name, and has the
    detection's other classes. Before ``confirm`` hits, its class is ``tentative``. Its stamped
    attribute ``hits`` and the attribute ``misses`` count looks.

    Args:
        name: as for :class:`~tmkit.world.FunctionBlock`.
        input_hook: as for :class:`~tmkit.world.FunctionBlock`.
        output_hook: as for :class:`~tmkit.world.FunctionBlock`.
        kind: class of the detections.
        gate: probability of a detection of an object within its gate.
        drift: growth of the variance of a track's pose in a second [m^2/s, rad^2/s].
        confirm: number of hits that confirms a track.
        max_misses: number of consecutive misses after which a track ends.

    Raises:
        SceneError: if the gate is not a probability, or the drift is below 0.

    Source: Bar-Shalom, Li and Kirubarajan, "Estimation with applications to tracking and
    navigation", 2001.
    """

    outputs: ClassVar[_Patterns] = {
        "tracks": Pattern([Part("track", ["track"])]),
        "new": Pattern([Part("track", ["tentative"])]),
    }
    kind: str = field(default="detection", kw_only=True)
    gate: float = field(default=0.999, kw_only=True)
    drift: _TwoNumbers = field(default=(1e-3, 1e-2), kw_only=True)
    confirm: int = field(default=2, kw_only=True)
    max_misses: int = field(default=3, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        chi_square_quantile(self.gate, 6)
        if not min(self.drift) >= 0.0:
            raise SceneError(
                f"function block '{self.name}': expected a drift of at least 0, got {self.drift}"
            )

    @property
    def inputs(self) -> Mapping[str, Pattern]:
        """Frames of detections."""
        return {"detection": Pattern([Part("detection", [self.kind])])}

    def execute(self, scene: SceneGraph, matches: Matches) -> Edit:
        """Return the tracks after all looks that are newer than the last."""
        group = scene.group(self.name) if self.name in scene.group_names else None
        state: Mapping[str, Any] = {"looked": None, "count": 0}
        if group is not None:
            state = group.attributes
        tracks = [self._read_track(scene, name) for name in self.output_frames(scene)]
        count = int(state["count"])
        last_stamp = -math.inf if state["looked"] is None else state["looked"]
        looks: dict[float, list[str]] = {}
        for match in matches["detection"]:
            stamp = newest_stamp(scene, match["detection"])
            if stamp is None:
                raise SceneError(f"detection '{match['detection']}' has no stamp")
            if stamp > last_stamp:
                looks.setdefault(stamp, []).append(match["detection"])
        parent = self.output_parent(scene)
        q = newest_configuration(scene)
        for stamp in sorted(looks):
            names = looks[stamp]
            poses = [scene.gaussian_pose(name, relative_to=parent, q=q) for name in names]
            classes = [
                tuple(kind for kind in scene.classes(name) if kind != self.kind) for name in names
            ]
            tracks, unassigned = self._update_tracks(tracks, stamp, poses, classes)
            for index in unassigned:
                count += 1
                tracks.append(_Track(f"{self.name} {count}", poses[index], stamp, classes[index]))
            tracks = [track for track in tracks if track.misses <= self.max_misses]
            last_stamp = stamp
        frames = [
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
        looked = last_stamp if looks else state["looked"]
        return self.output(frames, attributes={"looked": looked, "count": count})

    def _update_tracks(
        self,
        tracks: list[_Track],
        stamp: float,
        poses: list[GaussianPose],
        classes: list[tuple[str, ...]],
    ) -> tuple[list[_Track], list[int]]:
        """Return the tracks after a look, and the indices of the unassigned detections."""
        tracks = [self._predict(track, stamp) for track in tracks]

        def cost(pose: GaussianPose, kinds: tuple[str, ...], track: _Track) -> float:
            return _distance(pose, track.pose) if kinds == track.classes else math.inf

        costs = [
            [cost(pose, kinds, track) for track in tracks]
            for pose, kinds in zip(poses, classes, strict=True)
        ]
        pairs = dict(associate(costs, gate=chi_square_quantile(self.gate, 6))) if tracks else {}
        updated = [replace(track, misses=track.misses + 1) for track in tracks]
        for row, column in pairs.items():
            track = tracks[column]
            pose = fuse([track.pose, poses[row]]).pose
            updated[column] = replace(track, pose=pose, hits=track.hits + 1, misses=0)
        return updated, [index for index in range(len(poses)) if index not in pairs]

    def _predict(self, track: _Track, stamp: float) -> _Track:
        """Return a track at a later stamp, with the covariance of a random walk."""
        growth = np.repeat(self.drift, 3) * (stamp - track.stamp)
        pose = GaussianPose(track.pose.mean, track.pose.covariance + np.diag(growth))
        return replace(track, pose=pose, stamp=stamp)

    @staticmethod
    def _read_track(scene: SceneGraph, name: str) -> _Track:
        own = scene.attributes(name)
        pose = GaussianPose(scene.local_pose(name), scene.edge_covariance(name))
        stamp = scene.attribute_stamps(name)["hits"]
        return _Track(name, pose, stamp, scene.classes(name)[1:], own["hits"], own["misses"])


def _distance(a: GaussianPose, b: GaussianPose) -> float:
    """Return the squared Mahalanobis distance of two independent estimates."""
    return mahalanobis_distance((b.mean.inverse() @ a.mean).log(), a.covariance + b.covariance)[0]


@dataclass(frozen=True)
class OutdatedRemover(FunctionBlock):
    """Removal of outdated frames, observations, stamped poses and stamped attributes.

    They are removed below the input hook. A frame is removed with its subtree when its newest
    stamp is outdated and no frame below it has a newer one. Data without a stamp is never outdated.

    Args:
        name: as for :class:`~tmkit.world.FunctionBlock`.
        input_hook: as for :class:`~tmkit.world.FunctionBlock`.
        output_hook: as for :class:`~tmkit.world.FunctionBlock`.
        max_age: age from which on data is outdated [s].
        clock: present time on the clock of the stamps [s]. Defaults to the newest stamp below the
            hook.

    Raises:
        SceneError: if the age is not a number of at least 0.
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
                f"function block '{self.name}': expected a max_age of at least 0, got"
                f" {self.max_age}"
            )

    def is_editable(self, scene: SceneGraph, frame: str) -> bool:
        """Return whether a frame is below the input hook."""
        return frame in self.input_frames(scene)

    def execute(self, scene: SceneGraph, matches: Matches) -> Edit:
        """Return the edit that removes outdated data."""
        stamps = {
            match["stamped"]: newest_stamp(scene, match["stamped"]) or 0.0
            for match in matches["stamped"]
        }
        now = max(stamps.values(), default=0.0) if self.clock is None else self.clock()
        oldest = now - self.max_age
        fresh = {frame for frame, stamp in stamps.items() if stamp >= oldest}
        current = fresh.union(*(scene.ancestors(frame) for frame in fresh))
        outdated = [frame for frame in stamps if frame not in current]
        return lambda scene: self._remove_outdated(scene, oldest, outdated, current)

    @staticmethod
    def _remove_outdated(
        scene: SceneGraph, oldest: float, outdated: list[str], current: set[str]
    ) -> SceneGraph:
        """Remove outdated frames, and the outdated data of the current ones."""
        removed = [
            observation for observation in observations(scene) if observation.name in outdated
        ]
        scene = remove_observations(scene, removed)
        for frame in outdated:
            if frame in scene:
                scene = scene.remove_frame(frame, subtree=True)
        for frame in scene.frame_names:
            if frame not in current:
                continue
            history = scene.stamped_poses(frame)
            if history is not None and len(history.stamps) and history.stamps[0] < oldest:
                first = int(history.stamps.searchsorted(oldest))
                poses = StampedPoses(
                    history.stamps[first:].tolist(),
                    history.poses[first:],
                    covariances=history.covariances[first:],
                    capacity=history.capacity,
                    window=history.window,
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
    """Derivation of the PDDL state of the world, published when it changes.

    The facts are the attribute ``facts`` of the group of the block, as sorted texts. The block
    depends on the whole version.

    Args:
        name: as for :class:`~tmkit.world.FunctionBlock`.
        input_hook: as for :class:`~tmkit.world.FunctionBlock`.
        output_hook: as for :class:`~tmkit.world.FunctionBlock`.
        domain: planning domain of :func:`tmkit.tamp.load_planning_domain`.
        on_state: function that is called with the sorted facts of each new state, before its
            version is published.
        q: (n_joints,) configuration if joints have no histories. Defaults to the zero
            configuration.
    """

    inputs: ClassVar[_Patterns] = {}
    outputs: ClassVar[_Patterns] = {}
    domain: PlanningDomain = field(kw_only=True)
    on_state: Callable[[tuple[str, ...]], None] | None = field(default=None, kw_only=True)
    q: tuple[float, ...] | None = field(default=None, kw_only=True)

    def execute(self, scene: SceneGraph, matches: Matches) -> Edit:
        """Return the edit that sets the facts."""
        del matches
        q: NDArray[np.float64] | None = newest_configuration(scene)
        if q is None:
            q = scene.zero_configuration() if self.q is None else np.asarray(self.q, dtype=float)
        state = self.domain.state(scene, q)
        return self.output(attributes={"facts": sorted(map(str, state.facts))})

    def after_execute(self, before: SceneGraph, after: SceneGraph) -> None:
        """Publish the state."""
        del before
        if self.on_state is not None:
            self.on_state(tuple(after.group(self.name).attributes["facts"]))
