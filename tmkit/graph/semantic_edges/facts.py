"""Facts about a scene, in whatever order they come: the graph chooses the edges.

A pose of one frame relative to another joins two trees (:mod:`tmkit.graph.semantic_edges.joining`).
A position or an orientation alone waits as an observation (:mod:`tmkit.graph.observation_frames`)
until the other comes. A twist becomes an edge, to a new frame where the others have one; to that of
an observation where only poses that are missing can compare it with what other twists say. What a
scene knows already is compared: within the tolerance or, with covariances, the gate, the fact is
kept or fused; else it is refused, unless it says what moved.

Invariants: scenes are values. Facts that agree give scenes that answer alike, whatever their order.
"""

from __future__ import annotations

import contextlib
import functools
import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

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
from tmkit.graph.semantic_edges.joining import Told, cut, joined, observed
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
from tmkit.spatial.covariances import checked_covariance

_EXACT = 1e-9  # metres, radians, and per second: by which exact facts agree


@dataclass(frozen=True, slots=True)
class FactPolicy:
    """Treatment of a fact between frames that the scene relates already.

    Args:
        moves: of a pose between frames that poses join already: the frame that has moved relative
            to its parent so that it holds. By default nothing has, and the fact must agree with the
            scene.
        gate: the probability with which a fact that agrees passes where there are covariances.
        known: what becomes of a fact with a covariance, stamp or tags that the scene knows already:
            ``observe`` keeps it as an observation for ``estimation.resolve_observations``; ``fuse``
            conditions the scene on it.

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

    A pose between two bodies does not state how they move, as for :func:`add_pose`.

    O(depth log n), and O(log n) for each observation in the scene; where edges are reversed, that
    many edits more.

    Args:
        scene: the scene, which has the frames on the bodies that the fact names.
        fact: a pose, position, orientation or twist; at any points and in any axes that poses join.
            A position or an orientation alone joins no trees: it waits as an observation for the
            other. Or the pose of a ``frame``.
        frame: of a plain pose: the frame whose pose it is.
        relative_to: of a plain pose: the frame relative to which it is.
        q: (n_joints,) configuration in which it holds; needed where joints are on the way.
        evidence: covariance, stamp and tags; the covariance is that of the fact by default. Of a
            pose it is (6, 6), in the axes of its frame [m, rad]. Of a position it is (3, 3), in its
            axes [m^2]. Of an orientation it is (3, 3), in the axes of its frame [rad^2]. Of a twist
            it is (6, 6), at its point, in its axes [m/s, rad/s].
        policy: the treatment of a fact between frames that poses join already.

    Raises:
        UnknownNameError: if a frame or body is unknown.
        SemanticError: a frame is not on its body, no poses lead to its points and axes, or it is no
            such relation.
        SceneError: if it contradicts the scene, or the rules of edges forbid it. Also if an
            orientation alone is to be fused, or neither tree can hang under the other, as joints
            are above both frames.
    """
    evidence = Evidence() if evidence is None else evidence
    policy = FactPolicy() if policy is None else policy
    covariance, stamp, tags = evidence.covariance, evidence.stamp, evidence.tags
    moves, gate, known = policy.moves, policy.gate, policy.known
    if frame is not None or relative_to is not None or isinstance(fact, (Pose, GaussianPose)):
        fact = _named(scene, fact, frame, relative_to)
    if isinstance(fact, SemanticTwist):
        return _with_twist(scene, fact, fact.covariance if covariance is None else covariance, q)
    if covariance is None and moves is None and stamp is None and not tags and known == "observe":
        made = _of_new_root(scene, fact)
        if made is not None:
            return made
    told = _told(scene, fact, covariance, q)
    if stamp is not None or tags:
        told = told._replace(stamp=stamp, tags=require_tags(tags))
    are_joined = scene.root(told.frame) == scene.root(told.reference)
    if moves is not None and are_joined:
        if told.kind != "pose":
            raise SceneError(
                f"a {told.kind} alone does not say where '{moves}' has moved", frame=moves
            )
        return _moved(scene, told, moves=moves, q=q)
    is_kept = known == "observe"
    if are_joined:
        _require_agreement(scene, told, gate=gate, q=q)
    if told.kind != "pose" and (is_kept or not are_joined):
        for waiting in observations(scene):
            whole = _whole(scene, told, waiting, q)
            if whole is not None:
                told, scene = whole, remove_observations(scene, [waiting])
                break
    if not are_joined and told.kind == "pose":
        return _settled(scene, told, gate=gate, q=q, is_kept=is_kept)
    if are_joined:
        error = path_noise(scene, told.frame, relative_to=told.reference, q=q)
        if told.error is None and error is not None and told.kind == "pose":
            scene = _made_exact(scene, told, gate=gate, q=q)
        if told.error is None and told.stamp is None and not told.tags:
            return scene
        if not is_kept:
            if error is None or told.error is None:
                return scene
            return remove_observations(scene, _observed_with(scene, error)).condition(
                _measurement(told), q=q
            )
    return observed(scene, told)


def _named(
    scene: SceneGraph, fact: Any, frame: str | None, relative_to: str | None
) -> SemanticPose:
    """Return the pose of a frame relative to another as what it says of their bodies."""
    is_plain = isinstance(fact, (Pose, GaussianPose))
    if not is_plain or frame is None or relative_to is None:
        violation = Violation(
            "a Pose or GaussianPose comes with frame= and relative_to=", type(fact).__name__
        )
        raise SemanticError.of("add_fact", [violation])
    coord = PoseCoord._of(
        frame,
        frame,
        scene.body(frame),
        relative_to,
        relative_to,
        scene.body(relative_to),
        relative_to,
    )
    mean, covariance = (fact, None) if isinstance(fact, Pose) else (fact.mean, fact.covariance)
    return SemanticPose(coord, mean, covariance=covariance)


def _of_new_root(scene: SceneGraph, fact: Any) -> SceneGraph | None:
    """Return the scene in which the root of a tree hangs where an exact pose says; None where more is to be settled."""
    ends = _ends(fact._form) if type(fact) is SemanticPose else None
    if ends is None or scene.frames_of_class(CLASS):
        return None
    frame, body, reference, ref_body = ends
    if (
        scene.parent(frame) is not None
        or scene.body(frame) != body
        or scene.body(reference) != ref_body
    ):
        return None
    try:
        return scene.attach(frame, reference, pose=fact._value, joint=Unstated())
    except SceneError:
        return None


@functools.lru_cache(maxsize=4096)
def _ends(form: Form) -> tuple[str, str, str, str] | None:
    """Return the frames of one exact pose, each with its body; None if its points or axes are of other frames."""
    c = form.coord
    if (
        not form.is_plain
        or form.size is not None
        or c.point != c.ori
        or not c.ref_point == c.ref_ori == c.coord
    ):
        return None
    return c.ori, c.body, c.ref_ori, c.ref_body


def _made_exact(scene: SceneGraph, told: Told, *, gate: float, q: ArrayLike | None) -> SceneGraph:
    """Return the scene in which an exact pose takes the place of an observed edge on its way, else of the only one."""
    way = edges_between(scene, told.frame, told.reference)
    uncertain = [name for name in way if scene.noise(name) is not None]
    for name in uncertain:
        if _observed_with(scene, scene.noise(name)):
            bodies, parent = (
                {scene.body(told.frame), scene.body(told.reference)},
                scene.parent(name),
            )
            is_same = parent is not None and {scene.body(name), scene.body(parent)} == bodies
            joint = scene.joint(name) if is_same else told.joint
            return _settled(
                cut(scene, name), told._replace(stamp=None, tags=(), joint=joint), gate=gate, q=q
            )
    if len(uncertain) == 1 and scene.joint(uncertain[0]).type in ("fixed", "free"):
        return _moved(scene, told, moves=uncertain[0], q=q)
    return observed(scene, told) if told.stamp is None and not told.tags else scene


def _observed_with(scene: SceneGraph, error: EdgeNoise | None) -> list[Observation]:
    """Return the observations that share an error."""
    shared = set() if error is None else {*error.sources}
    return [
        one
        for one in observations(scene)
        if (e := scene.noise(one.name)) and not shared.isdisjoint(e.sources)
    ]


def _told(
    scene: SceneGraph, fact: object, covariance: ArrayLike | None, q: ArrayLike | None
) -> Told:
    """Return what a pose, position or orientation says of two frames, in the axes of the one that is the reference."""
    # a union type takes five times as long
    if isinstance(fact, (SemanticPosition, SemanticOrientation)):
        check_names(scene, fact.coord)
        return _told_part(scene, fact, covariance, q)
    between: Any = fact
    c = coord_of(fact, SemanticPose, "add_fact")
    if c.point != c.ori or not c.ref_point == c.ref_ori == c.coord:
        check_names(scene, c)
        between = pose_between_frames(scene, between, q)
    elif scene.body(c.ori) != c.body or scene.body(c.ref_ori) != c.ref_body:
        check_names(scene, c)
    frame = c.ori
    covariance = between.covariance if covariance is None else covariance
    error = (
        None
        if covariance is None
        else checked_covariance(covariance, 6, what=f"the covariance of '{frame}'")
    )
    if error is not None and np.count_nonzero(error) == 0:  # any() takes four times as long
        error = None
    return Told(frame, c.ref_ori, between._value, error=error)


def _told_part(
    scene: SceneGraph,
    fact: SemanticPosition | SemanticOrientation,
    covariance: ArrayLike | None,
    q: ArrayLike | None,
) -> Told:
    """Return what a position or orientation says; where its axes are in the tree of its frame, the other way round."""
    c: Any = fact.coord
    number = fact.numbers[0]
    is_position = isinstance(fact, SemanticPosition)
    frame, reference = (c.point, c.ref_point) if is_position else (c.ori, c.ref_ori)
    require_one(fact, "add_fact")
    covariance = fact.covariance if covariance is None else covariance
    known = (
        None
        if covariance is None
        else checked_covariance(covariance, 3, what=f"the covariance of '{frame}'")
    )
    if scene.root(c.coord) not in (scene.root(reference), scene.root(frame)):
        violation = Violation(
            "its axes are of a frame that poses join to one of its ends", f"[{c.coord}]"
        )
        raise SemanticError.of(f"add_fact({c!r})", [violation])
    is_turned = scene.root(c.coord) != scene.root(reference)
    turn = _rotation(scene, c.coord, frame if is_turned else reference, q)  # end_from_axes
    if is_position:
        if is_turned:
            frame, reference, number = reference, frame, -number
        pose = Pose(turn @ number)
        error = None if known is None else _padded(turn @ known @ turn.T, np.zeros((3, 3)))
    else:
        pose = Pose.from_rotation_matrix(np.zeros(3), turn @ number @ turn.T)
        error = None if known is None else _padded(np.zeros((3, 3)), known)
    return Told(frame, reference, pose, "position" if is_position else "orientation", error)


def _rotation(
    scene: SceneGraph, frame: str, reference: str, q: ArrayLike | None
) -> NDArray[np.float64]:
    return scene.pose(frame, relative_to=reference, q=q).rotation


def _padded(position: NDArray[np.float64], orientation: NDArray[np.float64]) -> NDArray[np.float64]:
    made = np.zeros((6, 6))
    made[:3, :3], made[3:, 3:] = position, orientation
    return made


def _whole(scene: SceneGraph, told: Told, waiting: Observation, q: ArrayLike | None) -> Told | None:
    """Return the pose that a position and an orientation between the same two trees make; None if they are not that."""
    other = _of_observation(waiting)
    if {told.kind, other.kind} != {"position", "orientation"}:
        return None
    p, o = (told, other) if told.kind == "position" else (other, told)
    trees = {scene.root(p.frame), scene.root(p.reference)}
    if trees != {scene.root(o.frame), scene.root(o.reference)}:
        return None
    if len(trees) == 1 and {p.frame, p.reference} != {o.frame, o.reference}:
        return None
    rotation = o.pose.rotation
    spread = np.zeros((3, 3)) if o.error is None else o.error[3:, 3:]
    ends = o.frame, o.reference
    is_other_way = ends[0] != p.frame and (
        len(trees) == 1 or scene.root(o.frame) != scene.root(p.frame)
    )
    if is_other_way:  # it says how the other tree stands relative to this one
        ends, spread, rotation = ends[::-1], rotation @ spread @ rotation.T, rotation.T
    # from the frame of the position to that of the orientation
    inside = _rotation(scene, p.frame, ends[0], q)
    turned = _rotation(scene, ends[1], p.reference, q) @ rotation @ inside
    place = np.zeros((3, 3)) if p.error is None else p.error[:3, :3]
    error = _padded(turned.T @ place @ turned, inside.T @ spread @ inside)
    pose = Pose.from_rotation_matrix(p.pose.translation, turned)
    stamp = None if p.stamp is None or o.stamp is None else min(p.stamp, o.stamp)
    tags = tuple(tag for tag in p.tags if tag in o.tags)
    return Told(
        p.frame, p.reference, pose, error=error if error.any() else None, stamp=stamp, tags=tags
    )


def _of_observation(seen: Observation) -> Told:
    error, tags = np.asarray(seen.pose.covariance), tuple(sorted(seen.tags))
    known = error if error.any() else None
    return Told(seen.frame, seen.relative_to, seen.pose.mean, seen.kind, known, seen.stamp, tags)


def _measurement(told: Told) -> Measurement:
    pose = GaussianPose(told.pose, np.zeros((6, 6)) if told.error is None else told.error)
    return Observation(
        "", told.frame, pose, told.reference, told.kind, None, frozenset()
    ).measurement()


def _settled(
    before: SceneGraph, told: Told, *, gate: float, q: ArrayLike | None, is_kept: bool = True
) -> SceneGraph:
    """Return the scene whose trees a fact joins, and what waited joins further; all of that must agree."""
    # twists that can be compared once trees are joined
    apart: list[tuple[SemanticTwist, NDArray[np.float64]]] = []
    scene, made = before, None
    while made is None:
        try:
            made = joined(scene, told, q, is_kept=is_kept)
        except SceneError as refusal:
            if refusal.data.get("rule") not in ("TE4", "TE6"):
                raise
            head = str(refusal.data["frame"])
            edge = scene.twist_edge(head)
            assert edge is not None, "the refusal names a twist edge"
            waits = [seen for seen in observations(scene) if seen.name == head]
            beside = waits[0].frame if waits else head
            coord = TwistCoord._of(beside, scene.body(beside), edge[0], beside)
            apart.append((SemanticTwist(coord, edge[1]), twist_covariance(scene, head)))
            scene = remove_observations(scene, waits) if waits else scene.remove_twist(head)
    for fact, error in apart:
        made = _with_twist(made, fact, error if error.any() else None, q)
    waiting = [seen for seen in observations(before) if seen.kind != "twist"]
    for seen in waiting:
        ends = seen.frame, seen.relative_to
        if made.root(ends[0]) == made.root(ends[1]) and before.root(ends[0]) != before.root(
            ends[1]
        ):
            _require_agreement(made, _of_observation(seen), gate=gate, q=q)
    for part, other in combinations(observations(made) if waiting else (), 2):
        whole = _whole(made, _of_observation(part), other, q)
        if whole is not None and made.root(whole.frame) != made.root(whole.reference):
            rest = remove_observations(made, (part, other))
            return _settled(rest, whole, gate=gate, q=q, is_kept=is_kept)
    return made


def _moved(scene: SceneGraph, told: Told, *, moves: str, q: ArrayLike | None) -> SceneGraph:
    """Return the scene in which the edge above a frame on the way has another pose, so that a fact holds."""
    frame, reference = told.frame, told.reference
    way = scene.path(frame, reference)
    parent = scene.parent(moves)
    if parent is None or moves not in way or parent not in way:
        named = ", ".join(f"'{name}'" for name in way if scene.parent(name) in way)
        message = (
            f"the edge above '{moves}' is not between '{frame}' and '{reference}': {named} are"
        )
        raise SceneError(message, frame=moves)
    is_up = way.index(moves) < way.index(parent)  # from the frame up, else down to the reference
    near, far = (frame, reference) if is_up else (reference, frame)
    near_from_far = told.pose.inverse() if is_up else told.pose
    inside = scene.pose(moves, relative_to=near, q=q)
    outside = scene.pose(parent, relative_to=far, q=q)
    wanted = (inside.inverse() @ near_from_far @ outside).inverse()
    now = scene.pose(moves, relative_to=parent, q=q)
    local = (
        scene.local_pose(moves) @ now.inverse() @ wanted
        if scene.joint(moves).type in ("fixed", "free")
        else None
    )
    if local is None:
        raise SceneError(
            f"'{moves}' moves by its joint: its value, and no pose, says where it is", frame=moves
        )
    error, turned = (told if is_up else told.reversed()).error, adjoint(inside.inverse())
    covariance = None if error is None else turned @ error @ turned.T
    return scene.set_pose(moves, local).set_covariance(moves, covariance)


def _require_agreement(scene: SceneGraph, told: Told, *, gate: float, q: ArrayLike | None) -> None:
    """Check a fact that the scene knows already: exact, to rounding; with errors, within the gate."""
    known = scene.gaussian_pose(told.frame, relative_to=told.reference, q=q)
    metres, radians = known.mean.distance(told.pose)
    apart = {"pose": (metres, radians), "position": (metres,), "orientation": (radians,)}[told.kind]
    if max(apart) <= _EXACT * (1.0 + math.hypot(*told.pose.translation)):
        return
    criterion = "an exact fact agrees to 1e-9"
    if told.error is not None or known.covariance.any():
        if told.kind == "orientation":
            turn = (told.pose.inverse() @ known.mean).log()[3:]
            error = known.covariance + (0.0 if told.error is None else told.error)
            squared, degrees = mahalanobis_distance(turn, error[3:, 3:])
        else:
            found = innovation(scene, _measurement(told), q=q)
            squared, degrees = found.squared_mahalanobis, 6 if told.kind == "pose" else 3
        most = chi_square_quantile(gate, degrees) if degrees else 0.0
        if squared <= most:
            return
        criterion = f"its squared Mahalanobis distance is {squared:.4g} of {most:.4g}"
    numbers = {"pose": f"{metres:.4g} m and {radians:.4g} rad", "position": f"{metres:.4g} m"}
    way = " - ".join(scene.path(told.frame, told.reference))
    raise SceneError(
        f"the {told.kind} of '{told.frame}' relative to '{told.reference}' contradicts the scene by"
        f" {numbers.get(told.kind, f'{radians:.4g} rad')}, along {way} ({criterion}); name what has"
        " moved by FactPolicy(moves=...)",
        frame=told.frame,
    )


def _with_twist(
    scene: SceneGraph, fact: SemanticTwist, covariance: ArrayLike | None, q: ArrayLike | None
) -> SceneGraph:
    """Return the scene with a twist edge to a frame of whichever body may have it; what is said already must agree."""
    check_names(scene, coord_of(fact, SemanticTwist, "add_fact"))
    c, vector = fact.coord, np.concatenate(fact.numbers)
    known, tree = None, scene.root(c.point)
    with contextlib.suppress(SemanticError, ConfigurationError):  # nothing says it yet
        known = np.concatenate(relate(scene, c, q=q).numbers)
    agrees = known is not None and np.max(np.abs(known - vector)) <= _EXACT * (
        1.0 + np.max(np.abs(vector))
    )
    ways = [
        (way, head)
        for way in (fact, fact.inverse())
        for head in scene.frames_of_body(way.coord.body)
    ]
    ways = [(way, head) for way, head in ways if scene.root(head) == tree]
    ways.sort(key=lambda way: way[1] != c.point)
    free = [
        way
        for way in ways
        if (edge := scene.twist_edge(way[1])) is None or edge[0] == way[0].coord.ref_body
    ]
    waits = [way for way in free if CLASS in scene.classes(way[1])]
    free = [way for way in waits if scene.twist_edge(way[1])] + [
        way for way in free if way not in waits
    ]
    # also where the twist follows from fixed edges alone: other facts may take their word away
    if free:
        (way, head), made = free[0], scene
        if agrees and scene.twist_edge(head) is not None:
            return scene
    else:
        way, beside = ways[0]
        head = free_name(scene, f"{beside} relative to {way.coord.ref_body}")
        made = scene.add_frame(head, beside, body=scene.body(beside))
    try:
        return add_twist(made, way, covariance=covariance, frame=head, q=q)
    except SceneError as refusal:
        if isinstance(refusal, SemanticError):
            raise
        if agrees:
            return scene
        if known is not None:
            message = f"{refusal}; the scene says {known.tolist()}, the fact {vector.tolist()}"
            raise SceneError(message, **refusal.data) from refusal
        if refusal.data.get("rule") not in ("TE4", "TE5", "TE6"):
            raise
    # other twists say it, in numbers that nothing can compare before poses join their trees
    way, head = ways[0]
    name = free_name(scene, f"{head} relative to {way.coord.ref_body}")
    with scene.edit() as edit:
        edit.add_frame(name, head, body=scene.body(head), classes=[CLASS])
        edit.set_attribute(name, CLASS, {"kind": "twist", "stamp": None, "tags": []})
        edit.set_group(name, frames=[head, name])
    return add_twist(edit.finish(), way, covariance=covariance, frame=name, q=q)
