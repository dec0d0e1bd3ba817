"""Facts about a scene, added in any order: the scene chooses the edges.

A pose of one frame relative to another joins two trees (:mod:`tmkit.graph.semantic_edges.joining`).
A position or an orientation alone is stored as an observation
(:mod:`tmkit.graph.observation_frames`) until the other is added.

A twist becomes an edge to a frame without a twist edge, or to a new frame. If other twists
determine it but poses to compare them are missing, it becomes the edge of an observation.

A fact between joined frames is compared with the scene, by a tolerance or, with covariances, by a
gate. If it agrees, it is stored or fused. Otherwise it is rejected, unless the policy names the
moved frame.

Invariants: scenes are immutable. Consistent facts give equivalent scenes in any order.
"""

from __future__ import annotations

import contextlib
import functools
import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import EdgeNoise, Measurement, SceneGraph, Unstated, innovation, path_noise
from tmkit.errors import ConfigurationError, SceneError, UnknownNameError
from tmkit.graph.observation_frames import (
    CLASS,
    Evidence,
    Observation,
    free_name,
    observations,
    remove_observations,
    require_tags,
)
from tmkit.graph.semantic_edges.edges import add_twist, pose_between_frames
from tmkit.graph.semantic_edges.joining import FrameFact, detach_tree, join_trees, store_observation
from tmkit.graph.semantic_edges.queries import check_names, coord_of, relate
from tmkit.graph.traversal import edges_between, twist_covariance
from tmkit.relations import (
    PoseCoord,
    SemanticOrientation,
    SemanticPose,
    SemanticPosition,
    SemanticTwist,
    TwistCoord,
)
from tmkit.relations.semantic.base import require_one
from tmkit.relations.semantic.operations import Form
from tmkit.relations.violations import SemanticError, Violation
from tmkit.spatial import GaussianPose, Pose, adjoint, chi_square_quantile
from tmkit.spatial.consistency import mahalanobis_distance
from tmkit.spatial.covariances import check_covariance

_EXACT_TOLERANCE = 1e-9
"""Largest deviation of exact facts that agree [m, rad, m/s, rad/s]."""


@dataclass(frozen=True, slots=True)
class FactPolicy:
    """Treatment of a fact between frames that poses join already.

    Args:
        moves: frame whose pose relative to its parent changes to make a pose fact true. By default
            no frame moves, and the fact must agree with the scene.
        gate: probability with which a consistent fact with covariances is accepted.
        known: treatment of a fact with a covariance, stamp or tags. ``observe`` stores it as an
            observation for ``estimation.resolve_observations``; ``fuse`` conditions the scene on
            it.

    Raises:
        UnknownNameError: if ``known`` has another value.
    """

    moves: str | None = None
    gate: float = 0.999
    known: Literal["observe", "fuse"] = "observe"

    def __post_init__(self) -> None:
        if self.known not in ("observe", "fuse"):
            raise UnknownNameError.of("value of known", self.known, ("observe", "fuse"))


def add_fact(
    scene: SceneGraph,
    fact: (
        SemanticPose | SemanticPosition | SemanticOrientation | SemanticTwist | Pose | GaussianPose
    ),
    *,
    frame: str | None = None,
    relative_to: str | None = None,
    q: ArrayLike | None = None,
    evidence: Evidence | None = None,
    policy: FactPolicy | None = None,
) -> SceneGraph:
    """Return the scene in which a fact holds, between any two frames and in any order of facts.

    A pose between two bodies does not state their relative motion, as for :func:`add_pose`.

    O(depth log n), and O(log n) for each observation in the scene. Each reversed edge costs another
    edit.

    Args:
        scene: the scene, which has the frames on the bodies of the fact.
        fact: a pose, position, orientation or twist, at any points and in any axes that poses join.
            A position or an orientation alone joins no trees: it is stored as an observation until
            the other is added. A plain pose is that of ``frame``.
        frame: frame of a plain pose.
        relative_to: reference frame of a plain pose.
        q: (n_joints,) configuration of the fact; required if joints are on the path.
        evidence: covariance, stamp and tags. The covariance defaults to that of the fact. Of a pose
            it is (6, 6), in the axes of its frame [m, rad]. Of a position it is (3, 3), in its axes
            [m^2]. Of an orientation it is (3, 3), in the axes of its frame [rad^2]. Of a twist it
            is (6, 6), at its point and in its axes [m/s, rad/s].
        policy: treatment of a fact between frames that poses join already.

    Raises:
        UnknownNameError: if a frame or body is unknown.
        SemanticError: if a frame is not on its body, no path of poses leads to the points and axes
            of the fact, or the fact has another type.
        SceneError: if the fact contradicts the scene, or the rules of edges forbid it. Also if an
            orientation alone is to be fused, or joints above both frames prevent a join.
    """
    evidence = Evidence() if evidence is None else evidence
    policy = FactPolicy() if policy is None else policy
    covariance = evidence.covariance
    if frame is not None or relative_to is not None or isinstance(fact, (Pose, GaussianPose)):
        fact = _pose_of_frames(scene, fact, frame, relative_to)
    if isinstance(fact, SemanticTwist):
        return _add_twist_fact(
            scene, fact, fact.covariance if covariance is None else covariance, q
        )
    has_evidence = evidence.stamp is not None or bool(evidence.tags)
    if (
        covariance is None
        and not has_evidence
        and policy.moves is None
        and policy.known == "observe"
    ):
        version = _attach_root(scene, fact)
        if version is not None:
            return version
    frame_fact = _to_frame_fact(scene, fact, covariance, q)
    if has_evidence:
        frame_fact = frame_fact._replace(stamp=evidence.stamp, tags=require_tags(evidence.tags))
    if scene.root(frame_fact.frame) == scene.root(frame_fact.reference):
        return _add_to_joined_frames(scene, frame_fact, policy, q)
    return _add_between_trees(scene, frame_fact, policy, q)


def _add_to_joined_frames(
    scene: SceneGraph, fact: FrameFact, policy: FactPolicy, q: ArrayLike | None
) -> SceneGraph:
    """Return the scene with a fact between frames that poses join already."""
    moves, gate = policy.moves, policy.gate
    if moves is not None:
        if fact.kind != "pose":
            raise SceneError(
                f"the {fact.kind} alone does not determine how '{moves}' has moved", frame=moves
            )
        return _move_frame(scene, fact, moves=moves, q=q)
    _require_agreement(scene, fact, gate=gate, q=q)
    if policy.known == "observe":
        fact, scene = _complete_with_observation(scene, fact, q)
    noise = path_noise(scene, fact.frame, relative_to=fact.reference, q=q)
    if fact.error is None and noise is not None and fact.kind == "pose":
        scene = _replace_uncertain_edge(scene, fact, gate=gate, q=q)
    if fact.error is None and fact.stamp is None and not fact.tags:
        return scene
    if policy.known == "observe":
        return store_observation(scene, fact)
    if noise is None or fact.error is None:
        return scene
    rest = remove_observations(scene, _observations_with_error(scene, noise))
    return rest.condition(_measurement(fact), q=q)


def _add_between_trees(
    scene: SceneGraph, fact: FrameFact, policy: FactPolicy, q: ArrayLike | None
) -> SceneGraph:
    """Return the scene with a fact between frames of two trees."""
    fact, scene = _complete_with_observation(scene, fact, q)
    if fact.kind != "pose":
        return store_observation(scene, fact)
    is_observed = policy.known == "observe"
    return _join_consistently(scene, fact, gate=policy.gate, q=q, is_observed=is_observed)


def _complete_with_observation(
    scene: SceneGraph, fact: FrameFact, q: ArrayLike | None
) -> tuple[FrameFact, SceneGraph]:
    """Return the pose that a fact makes with a stored observation, and the scene without that.

    If the fact is a pose, or no observation completes it, return both unchanged.
    """
    if fact.kind != "pose":
        for observation in observations(scene):
            pose_fact = _combine_parts(scene, fact, observation, q)
            if pose_fact is not None:
                return pose_fact, remove_observations(scene, [observation])
    return fact, scene


def _pose_of_frames(
    scene: SceneGraph, fact: Any, frame: str | None, relative_to: str | None
) -> SemanticPose:
    """Return a plain pose as a pose between the bodies of two frames, or raise SemanticError."""
    is_plain = isinstance(fact, (Pose, GaussianPose))
    if not is_plain or frame is None or relative_to is None:
        violation = Violation(
            "a Pose or GaussianPose comes with frame= and relative_to=", type(fact).__name__
        )
        raise SemanticError.of("add_fact", [violation])
    body, ref_body = scene.body(frame), scene.body(relative_to)
    coord = PoseCoord._of(frame, frame, body, relative_to, relative_to, ref_body, relative_to)
    if isinstance(fact, Pose):
        return SemanticPose(coord, fact, covariance=None)
    return SemanticPose(coord, fact.mean, covariance=fact.covariance)


def _attach_root(scene: SceneGraph, fact: Any) -> SceneGraph | None:
    """Return the scene with the root of a tree attached by an exact pose; None if not applicable.

    This is the fast path of :func:`add_fact`, for scenes without observations.
    """
    ends = _exact_ends(fact._form) if type(fact) is SemanticPose else None
    if ends is None or scene.frames_of_class(CLASS):
        return None
    if scene.parent(ends.frame) is not None:
        return None
    if scene.body(ends.frame) != ends.body or scene.body(ends.reference) != ends.ref_body:
        return None
    try:
        return scene.attach(ends.frame, ends.reference, pose=fact._value, joint=Unstated())
    except SceneError:
        return None


class _Ends(NamedTuple):
    """Frames of a pose, with their bodies."""

    frame: str
    body: str
    reference: str
    ref_body: str


@functools.lru_cache(maxsize=4096)
def _exact_ends(form: Form) -> _Ends | None:
    """Return the frames of a single exact pose between two frame origins; None for another form."""
    c = form.coord
    if not form.is_plain or form.size is not None:
        return None
    if c.point != c.ori or not c.ref_point == c.ref_ori == c.coord:
        return None
    return _Ends(c.ori, c.body, c.ref_ori, c.ref_body)


def _replace_uncertain_edge(
    scene: SceneGraph, fact: FrameFact, *, gate: float, q: ArrayLike | None
) -> SceneGraph:
    """Return the scene with an exact pose in place of an observed or the only uncertain edge."""
    edges = edges_between(scene, fact.frame, fact.reference)
    uncertain_edges = [name for name in edges if scene.noise(name) is not None]
    for name in uncertain_edges:
        if _observations_with_error(scene, scene.noise(name)):
            bodies, parent = (
                {scene.body(fact.frame), scene.body(fact.reference)},
                scene.parent(name),
            )
            is_same = parent is not None and {scene.body(name), scene.body(parent)} == bodies
            joint = scene.joint(name) if is_same else fact.joint
            exact = fact._replace(stamp=None, tags=(), joint=joint)
            return _join_consistently(detach_tree(scene, name), exact, gate=gate, q=q)
    if len(uncertain_edges) == 1 and scene.joint(uncertain_edges[0]).type in ("fixed", "free"):
        return _move_frame(scene, fact, moves=uncertain_edges[0], q=q)
    return store_observation(scene, fact) if fact.stamp is None and not fact.tags else scene


def _observations_with_error(scene: SceneGraph, error: EdgeNoise | None) -> list[Observation]:
    """Return the observations that share a noise source with an error."""
    sources = set() if error is None else {*error.sources}
    return [
        observation
        for observation in observations(scene)
        if (noise := scene.noise(observation.name)) and not sources.isdisjoint(noise.sources)
    ]


def _to_frame_fact(
    scene: SceneGraph, fact: object, covariance: ArrayLike | None, q: ArrayLike | None
) -> FrameFact:
    """Return a pose, position or orientation as a fact about two frames."""
    # A test with a union type takes five times as long.
    if isinstance(fact, (SemanticPosition, SemanticOrientation)):
        check_names(scene, fact.coord)
        return _part_to_frame_fact(scene, fact, covariance, q)
    frame_pose: Any = fact
    c = coord_of(fact, SemanticPose, "add_fact")
    if c.point != c.ori or not c.ref_point == c.ref_ori == c.coord:
        check_names(scene, c)
        frame_pose = pose_between_frames(scene, frame_pose, q)
    elif scene.body(c.ori) != c.body or scene.body(c.ref_ori) != c.ref_body:
        check_names(scene, c)
    frame = c.ori
    covariance = frame_pose.covariance if covariance is None else covariance
    error = None
    if covariance is not None:
        error = check_covariance(covariance, 6, what=f"the covariance of '{frame}'")
        if np.count_nonzero(error) == 0:  # any() takes four times as long
            error = None
    return FrameFact(frame, c.ref_ori, frame_pose._value, error=error)


def _part_to_frame_fact(
    scene: SceneGraph,
    fact: SemanticPosition | SemanticOrientation,
    covariance: ArrayLike | None,
    q: ArrayLike | None,
) -> FrameFact:
    """Return a position or orientation as a fact about two frames.

    A position with axes in the tree of its frame becomes that of the reference relative to the
    frame.
    """
    c: Any = fact.coord
    numbers = fact.numbers[0]
    is_position = isinstance(fact, SemanticPosition)
    frame, reference = (c.point, c.ref_point) if is_position else (c.ori, c.ref_ori)
    require_one(fact, "add_fact")
    covariance = fact.covariance if covariance is None else covariance
    part_error = None
    if covariance is not None:
        part_error = check_covariance(covariance, 3, what=f"the covariance of '{frame}'")
    if scene.root(c.coord) not in (scene.root(reference), scene.root(frame)):
        violation = Violation(
            "its axes are of a frame that poses join to one of its ends", f"[{c.coord}]"
        )
        raise SemanticError.of(f"add_fact({c!r})", [violation])
    is_in_tree_of_frame = scene.root(c.coord) != scene.root(reference)
    end_from_axes = _rotation(scene, c.coord, frame if is_in_tree_of_frame else reference, q)
    error = None
    if not is_position:
        rotation = end_from_axes @ numbers @ end_from_axes.T
        pose = Pose.from_rotation_matrix(np.zeros(3), rotation)
        if part_error is not None:
            error = _block_covariance(np.zeros((3, 3)), part_error)
        return FrameFact(frame, reference, pose, "orientation", error)
    if is_in_tree_of_frame:
        frame, reference, numbers = reference, frame, -numbers
    if part_error is not None:
        position_error = end_from_axes @ part_error @ end_from_axes.T
        error = _block_covariance(position_error, np.zeros((3, 3)))
    return FrameFact(frame, reference, Pose(end_from_axes @ numbers), "position", error)


def _rotation(
    scene: SceneGraph, frame: str, reference: str, q: ArrayLike | None
) -> NDArray[np.float64]:
    """Return the rotation matrix (3, 3) reference_from_frame."""
    return scene.pose(frame, relative_to=reference, q=q).rotation


def _block_covariance(
    position: NDArray[np.float64], orientation: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the (6, 6) covariance with two diagonal blocks (3, 3)."""
    covariance = np.zeros((6, 6))
    covariance[:3, :3], covariance[3:, 3:] = position, orientation
    return covariance


def _combine_parts(
    scene: SceneGraph, fact: FrameFact, observation: Observation, q: ArrayLike | None
) -> FrameFact | None:
    """Return the pose of a position and an orientation between two trees; None for other facts."""
    other = _fact_of_observation(observation)
    if {fact.kind, other.kind} != {"position", "orientation"}:
        return None
    p, o = (fact, other) if fact.kind == "position" else (other, fact)
    roots = {scene.root(p.frame), scene.root(p.reference)}
    if roots != {scene.root(o.frame), scene.root(o.reference)}:
        return None
    if len(roots) == 1 and {p.frame, p.reference} != {o.frame, o.reference}:
        return None

    # Bring the orientation into the direction of the position.
    rotation = o.pose.rotation
    rotation_error = np.zeros((3, 3)) if o.error is None else o.error[3:, 3:]
    frame, reference = o.frame, o.reference
    are_in_different_trees = scene.root(o.frame) != scene.root(p.frame)
    if frame != p.frame and (len(roots) == 1 or are_in_different_trees):
        frame, reference = reference, frame
        rotation_error, rotation = rotation @ rotation_error @ rotation.T, rotation.T

    # Combine the two in the axes of the frame of the position.
    o_from_p = _rotation(scene, p.frame, frame, q)
    rotation = _rotation(scene, reference, p.reference, q) @ rotation @ o_from_p
    position_error = np.zeros((3, 3)) if p.error is None else p.error[:3, :3]
    error = _block_covariance(
        rotation.T @ position_error @ rotation, o_from_p.T @ rotation_error @ o_from_p
    )
    pose = Pose.from_rotation_matrix(p.pose.translation, rotation)
    stamp = None if p.stamp is None or o.stamp is None else min(p.stamp, o.stamp)
    tags = tuple(tag for tag in p.tags if tag in o.tags)
    pose_error = error if error.any() else None
    return FrameFact(p.frame, p.reference, pose, error=pose_error, stamp=stamp, tags=tags)


def _fact_of_observation(observation: Observation) -> FrameFact:
    """Return an observation as a fact about two frames."""
    covariance = np.asarray(observation.pose.covariance)
    return FrameFact(
        observation.frame,
        observation.relative_to,
        observation.pose.mean,
        observation.kind,
        covariance if covariance.any() else None,
        observation.stamp,
        tuple(sorted(observation.tags)),
    )


def _measurement(fact: FrameFact) -> Measurement:
    """Return the measurement of a fact."""
    pose = GaussianPose(fact.pose, np.zeros((6, 6)) if fact.error is None else fact.error)
    observation = Observation("", fact.frame, pose, fact.reference, fact.kind, None, frozenset())
    return observation.measurement()


def _join_consistently(
    scene: SceneGraph,
    fact: FrameFact,
    *,
    gate: float,
    q: ArrayLike | None,
    is_observed: bool = True,
) -> SceneGraph:
    """Return the scene with the trees of a fact joined, and further trees by stored observations.

    Raises:
        SceneError: if twists or observations contradict the join.
    """
    version, twists = _join_without_twists(scene, fact, q, is_observed=is_observed)
    for twist, covariance in twists:
        version = _add_twist_fact(version, twist, covariance if covariance.any() else None, q)

    # Check the observations between the joined trees.
    parts = [observation for observation in observations(scene) if observation.kind != "twist"]
    for part in parts:
        frame, reference = part.frame, part.relative_to
        is_joined = version.root(frame) == version.root(reference)
        if is_joined and scene.root(frame) != scene.root(reference):
            _require_agreement(version, _fact_of_observation(part), gate=gate, q=q)

    # Join further trees by positions and orientations that are now complete.
    for part, other in combinations(observations(version) if parts else (), 2):
        pose_fact = _combine_parts(version, _fact_of_observation(part), other, q)
        if pose_fact is None:
            continue
        if version.root(pose_fact.frame) != version.root(pose_fact.reference):
            rest = remove_observations(version, (part, other))
            return _join_consistently(rest, pose_fact, gate=gate, q=q, is_observed=is_observed)
    return version


def _join_without_twists(
    scene: SceneGraph, fact: FrameFact, q: ArrayLike | None, *, is_observed: bool
) -> tuple[SceneGraph, list[tuple[SemanticTwist, NDArray[np.float64]]]]:
    """Return the scene with two trees joined, and the removed twists with their covariances.

    A twist is removed if the rules of twist edges forbid it once the trees are joined.
    """
    removed_twists: list[tuple[SemanticTwist, NDArray[np.float64]]] = []
    while True:
        try:
            return join_trees(scene, fact, q, is_observed=is_observed), removed_twists
        except SceneError as error:
            if error.data.get("rule") not in ("TE4", "TE6"):
                raise
            head = str(error.data["frame"])
        edge = scene.twist_edge(head)
        assert edge is not None, "the error names a twist edge"
        stored_observations = [
            observation for observation in observations(scene) if observation.name == head
        ]
        frame = stored_observations[0].frame if stored_observations else head
        coord = TwistCoord._of(frame, scene.body(frame), edge[0], frame)
        removed_twists.append((SemanticTwist(coord, edge[1]), twist_covariance(scene, head)))
        scene = (
            remove_observations(scene, stored_observations)
            if stored_observations
            else scene.remove_twist(head)
        )


def _move_frame(
    scene: SceneGraph, fact: FrameFact, *, moves: str, q: ArrayLike | None
) -> SceneGraph:
    """Return the scene in which a fact holds, by a change of the pose of one edge on its path."""
    frame, reference = fact.frame, fact.reference
    path = scene.path(frame, reference)
    parent = scene.parent(moves)
    if parent is None or moves not in path or parent not in path:
        edges = ", ".join(f"'{name}'" for name in path if scene.parent(name) in path)
        message = (
            f"the edge above '{moves}' is not between '{frame}' and '{reference}': {edges} are"
        )
        raise SceneError(message, frame=moves)

    # Compute the pose of the edge from the fact and the other edges of the path.
    is_up = path.index(moves) < path.index(parent)  # from the frame up, else down to the reference
    start, end = (frame, reference) if is_up else (reference, frame)
    start_from_end = fact.pose.inverse() if is_up else fact.pose
    start_from_moved = scene.pose(moves, relative_to=start, q=q)
    end_from_parent = scene.pose(parent, relative_to=end, q=q)
    parent_from_moved = (start_from_moved.inverse() @ start_from_end @ end_from_parent).inverse()
    old_pose = scene.pose(moves, relative_to=parent, q=q)
    if scene.joint(moves).type not in ("fixed", "free"):
        raise SceneError(
            f"'{moves}' moves by its joint, so a pose cannot change its position", frame=moves
        )
    local_pose = scene.local_pose(moves) @ old_pose.inverse() @ parent_from_moved

    # Compute the covariance in the axes of the moved frame.
    error = (fact if is_up else fact.inverse()).error
    matrix = adjoint(start_from_moved.inverse())
    covariance = None if error is None else matrix @ error @ matrix.T
    return scene.set_pose(moves, local_pose).set_covariance(moves, covariance)


def _require_agreement(
    scene: SceneGraph, fact: FrameFact, *, gate: float, q: ArrayLike | None
) -> None:
    """Check a fact between joined frames: exactly up to rounding, or with errors within the gate.

    Raises:
        SceneError: if the fact contradicts the scene.
    """
    scene_pose = scene.gaussian_pose(fact.frame, relative_to=fact.reference, q=q)
    distance, angle = scene_pose.mean.distance(fact.pose)
    deviations = {"pose": (distance, angle), "position": (distance,), "orientation": (angle,)}[
        fact.kind
    ]
    if max(deviations) <= _EXACT_TOLERANCE * (1.0 + math.hypot(*fact.pose.translation)):
        return
    criterion = "an exact fact agrees to 1e-9"
    if fact.error is not None or scene_pose.covariance.any():
        squared, degrees = _mahalanobis_distance(scene, fact, scene_pose, q)
        limit = chi_square_quantile(gate, degrees) if degrees else 0.0
        if squared <= limit:
            return
        criterion = f"its squared Mahalanobis distance is {squared:.4g} of {limit:.4g}"
    texts = {"pose": f"{distance:.4g} m and {angle:.4g} rad", "position": f"{distance:.4g} m"}
    deviation = texts.get(fact.kind, f"{angle:.4g} rad")
    path = " - ".join(scene.path(fact.frame, fact.reference))
    raise SceneError(
        f"the {fact.kind} of '{fact.frame}' relative to '{fact.reference}' contradicts the scene by"
        f" {deviation}, along {path} ({criterion}); name the moved frame by FactPolicy(moves=...)",
        frame=fact.frame,
    )


def _mahalanobis_distance(
    scene: SceneGraph, fact: FrameFact, scene_pose: GaussianPose, q: ArrayLike | None
) -> tuple[float, int]:
    """Return the squared Mahalanobis distance of a fact from the scene, and its degrees of freedom.

    Args:
        scene: the scene.
        fact: the fact.
        scene_pose: pose of the fact's frame in the scene.
        q: (n_joints,) configuration.
    """
    if fact.kind == "orientation":
        rotation = (fact.pose.inverse() @ scene_pose.mean).log()[3:]
        error = scene_pose.covariance + (0.0 if fact.error is None else fact.error)
        return mahalanobis_distance(rotation, error[3:, 3:])
    difference = innovation(scene, _measurement(fact), q=q)
    return difference.squared_mahalanobis, 6 if fact.kind == "pose" else 3


def _add_twist_fact(
    scene: SceneGraph, fact: SemanticTwist, covariance: ArrayLike | None, q: ArrayLike | None
) -> SceneGraph:
    """Return the scene with a twist edge to a frame of either body, or raise SceneError.

    If the scene determines the twist already, the numbers must agree.
    """
    check_names(scene, coord_of(fact, SemanticTwist, "add_fact"))
    c, vector = fact.coord, np.concatenate(fact.numbers)
    scene_numbers = None
    with contextlib.suppress(SemanticError, ConfigurationError):  # the scene has no such twist
        scene_numbers = np.concatenate(relate(scene, c, q=q).numbers)
    tolerance = _EXACT_TOLERANCE * (1.0 + np.max(np.abs(vector)))
    is_consistent = (
        scene_numbers is not None and np.max(np.abs(scene_numbers - vector)) <= tolerance
    )

    # A fixed path alone also determines a twist, but later facts may remove it.
    candidates = _twist_heads(scene, fact)
    twist, head = candidates[0]
    version = scene
    free_candidate = _free_twist_head(scene, candidates)
    if free_candidate is None:
        parent = head
        head = free_name(scene, f"{parent} relative to {twist.coord.ref_body}")
        version = scene.add_frame(head, parent, body=scene.body(parent))
    else:
        twist, head = free_candidate
        if is_consistent and scene.twist_edge(head) is not None:
            return scene
    try:
        return add_twist(version, twist, covariance=covariance, frame=head, q=q)
    except SceneError as error:
        if isinstance(error, SemanticError):
            raise
        if is_consistent:
            return scene
        if scene_numbers is not None:
            message = f"{error}; the scene has {scene_numbers.tolist()}, the fact {vector.tolist()}"
            raise SceneError(message, **error.data) from error
        if error.data.get("rule") not in ("TE4", "TE5", "TE6"):
            raise

    # Other twists determine it, but cannot be compared before poses join their trees.
    twist, parent = candidates[0]
    name = free_name(scene, f"{parent} relative to {twist.coord.ref_body}")
    with scene.edit() as edit:
        edit.add_frame(name, parent, body=scene.body(parent), classes=[CLASS])
        edit.set_attribute(name, CLASS, {"kind": "twist", "stamp": None, "tags": []})
        edit.set_group(name, frames=[parent, name])
    return add_twist(edit.finish(), twist, covariance=covariance, frame=name, q=q)


def _twist_heads(scene: SceneGraph, fact: SemanticTwist) -> list[tuple[SemanticTwist, str]]:
    """Return a twist and its inverse with each frame for its edge, the frame of its point first."""
    point = fact.coord.point
    root = scene.root(point)
    heads = [
        (twist, head)
        for twist in (fact, fact.inverse())
        for head in scene.frames_of_body(twist.coord.body)
        if scene.root(head) == root
    ]
    return sorted(heads, key=lambda candidate: candidate[1] != point)


def _free_twist_head(
    scene: SceneGraph, candidates: list[tuple[SemanticTwist, str]]
) -> tuple[SemanticTwist, str] | None:
    """Return the first candidate without a twist edge to another body; None if there is none.

    A frame of an observation qualifies if it has a twist edge, and then comes first.
    """
    observation_heads, free_heads = [], []
    for twist, head in candidates:
        edge = scene.twist_edge(head)
        if edge is not None and edge[0] != twist.coord.ref_body:
            continue
        if CLASS not in scene.classes(head):
            free_heads.append((twist, head))
        elif edge is not None:
            observation_heads.append((twist, head))
    return next(iter([*observation_heads, *free_heads]), None)
