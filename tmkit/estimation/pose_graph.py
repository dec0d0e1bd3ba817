"""Pose graphs: a scene's uncertain edges and many observations, solved all at once, and written back as a new version.

* Variables are the poses X of frames whose edge has an error, relative to the root; the factors
  hold what is rigid;
* each uncertain edge is a factor between a frame and the next uncertain one above it, with the
  edge's covariance. Each observation one between the two frames that it relates: e = log(Z^-1
  X_a^-1 X_b) with its covariance in the axes of b.

``solve_pose_graph`` is Gauss and Newton's method with the exact derivatives, halving steps that
would raise the sum of squared errors. The errors of the solution, which are all correlated, are
maps of one source in ``write_back``.

Invariants: for one observation the solution is that of ``scene.condition``, covariances included.
For several the two differ by terms of second order in the errors, as conditioning linearises each
measurement where the earlier ones left the scene, and the solution all of them at the end.

A pose graph's factors are independent. Edges whose errors share a source (after ``reparent``,
``condition`` or by design) cannot be said in it and are refused; so are edges and observations that
know a direction exactly: their weight would be infinite. ``scene.condition`` takes both.

Complexity O((6 n)^3) an iteration for n uncertain frames, as matrices are dense: for some hundred
frames.

gtsam (extra ``world``) solves the same graph as a ``gtsam.NonlinearFactorGraph`` of
``PriorFactorPose3`` (to the root) and ``BetweenFactorPose3``, or ``CustomFactor`` for badly known
orientations, its poses the initial ``gtsam.Values``. Variable k has the key k. gtsam's errors are
on the right as ours, with the rotation first: covariances are turned by
:func:`tmkit.spatial.covariances.swap_linear_angular` on the way out and back.
``solution_from_gtsam`` takes the values of other optimisers of gtsam's, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import NoiseSource, SceneGraph
from tmkit._support.extras import importing
from tmkit._support.results import IteratedEstimate
from tmkit.errors import SceneError
from tmkit.graph import common_ancestor, observations
from tmkit.graph.observation_frames import Observation, remove_observations
from tmkit.spatial import GaussianPose, Pose, PoseMeasurement, Retraction, adjoint, covariance_root
from tmkit.spatial.covariances import inverse_covariance, is_singular, swap_linear_angular

if TYPE_CHECKING:
    from types import ModuleType

Array = NDArray[np.float64]

ROOT = -1
_ROUNDING = 1e-14  # of the distances: what rounding may make of a step
_SMALLEST_STEP = 2.0**-20


@dataclass(frozen=True, eq=False)
class PoseFactor:
    """What is known of one variable relative to another.

    Attributes:
        first: index of the variable it is relative to; -1 for the root.
        second: index of the other.
        pose: first_from_second, with a covariance of full rank in the axes of the second.
        label: what it comes from.
    """

    first: int
    second: int
    pose: GaussianPose
    label: str


@dataclass(frozen=True, eq=False)
class PoseGraph:
    """Variables and factors of a scene with observations.

    Attributes:
        root: the frame relative to which the variables are.
        frames: names of the variables' frames, parents before children.
        above: by variable, the index of the next uncertain frame above, -1 for the root.
        poses: root_from_frame of each, as the scene has them.
        factors: of the edges first, then of the observations.
    """

    root: str
    frames: tuple[str, ...]
    above: tuple[int, ...]
    poses: tuple[Pose, ...]
    factors: tuple[PoseFactor, ...]


@dataclass(frozen=True, eq=False)
class PoseGraphSolution(IteratedEstimate):
    """The most probable poses of a pose graph.

    Attributes:
        graph: the graph.
        poses: root_from_frame of each variable.
        covariance: (6 n, 6 n) of the stacked errors of the variables, each in the axes of its
            frame.
        cost: half of the sum of the squared Mahalanobis distances of all factors.
        iterations: how many steps were made.
        is_converged: whether the last step was shorter than the tolerance.
    """

    graph: PoseGraph
    poses: tuple[Pose, ...]
    covariance: Array
    cost: float
    iterations: int
    is_converged: bool

    def __repr__(self) -> str:
        numbers = f"{len(self.poses)} variables, {self.iterations} iterations, cost {self.cost:.4g}"
        return f"PoseGraphSolution({self.status.value}, {numbers})"

    def pose(self, frame: str) -> GaussianPose:
        """Return root_from_frame of a variable with its marginal covariance.

        Raises:
            ValueError: the frame is no variable.
        """
        k = self.graph.frames.index(frame)
        return GaussianPose(self.poses[k], self.covariance[6 * k : 6 * k + 6, 6 * k : 6 * k + 6])


def pose_graph(scene: SceneGraph, *, q: ArrayLike | None = None) -> PoseGraph:
    """Return the pose graph of a scene and the observations in it.

    Args:
        scene: with independent errors of full rank on its uncertain edges, and observations in one
            tree of it.
        q: configuration (n_joints,); may be omitted if there are no joints.

    Raises:
        UnknownNameError: an observed frame that the scene does not have.
        SceneError: no observation, or one of rigidly joined frames; errors of one source, or not of
            full rank.
        DisconnectedError: observations in different trees.
        ConfigurationError: q is missing or does not fit.
    """
    seen = [one for one in observations(scene) if one.kind == "pose"]
    if not seen:
        raise SceneError("a pose graph needs at least one observation")
    root, looks = scene.root(seen[0].frame), {one.name for one in seen}
    uncertain = (frame for frame in scene.subtree(root) if scene.noise(frame) is not None)
    frames = tuple(frame for frame in uncertain if frame not in looks)
    sources = _check_independent(scene, frames)
    # else it is that edge
    seen = [one for one in seen if sources.isdisjoint(_sources(scene, one.name))]
    index = {frame: k for k, frame in enumerate(frames)}
    above = tuple(
        index.get(_holder(scene, str(scene.parent(frame)), index, root), ROOT) for frame in frames
    )
    factors = []
    for k, frame in enumerate(frames):
        reference = root if above[k] == ROOT else frames[above[k]]
        known = GaussianPose(
            scene.pose(frame, relative_to=reference, q=q), scene.edge_covariance(frame)
        )
        factors.append(_factor(above[k], k, known, f"edge of '{frame}'"))
    factors += [_observation_factor(scene, each, index, root, q) for each in seen]
    poses = tuple(scene.pose(frame, relative_to=root, q=q) for frame in frames)
    return PoseGraph(root, frames, above, poses, tuple(factors))


def _sources(scene: SceneGraph, frame: str) -> tuple[NoiseSource, ...]:
    noise = scene.noise(frame)
    return () if noise is None else noise.sources


def _check_independent(scene: SceneGraph, frames: tuple[str, ...]) -> set[NoiseSource]:
    """Return the sources of the errors of edges, each of which is of one edge alone."""
    users: dict[NoiseSource, str] = {}
    for frame in frames:
        for source in _sources(scene, frame):
            if source in users:
                what = (
                    f"the errors of '{users[source]}' and '{frame}' have the source"
                    f" '{source.label}' in common"
                )
                raise SceneError(
                    f"{what}, and a pose graph has independent factors: use scene.condition"
                )
            users[source] = frame
    return set(users)


def _holder(scene: SceneGraph, frame: str, index: dict[str, int], root: str) -> str:
    """Return the uncertain frame that a frame is rigidly attached to, itself included, or the root."""
    return next((name for name in (frame, *scene.ancestors(frame)) if name in index), root)


def _observation_factor(
    scene: SceneGraph, seen: Observation, index: dict[str, int], root: str, q: ArrayLike | None
) -> PoseFactor:
    common_ancestor(scene, seen.relative_to, seen.frame)  # both are there, in one tree
    common_ancestor(scene, seen.frame, root)
    first, second = (_holder(scene, frame, index, root) for frame in (seen.relative_to, seen.frame))
    if first == second:
        raise SceneError(f"{seen}: the two are rigidly joined, so there is nothing to learn")
    before = scene.pose(seen.relative_to, relative_to=first, q=q)
    after = scene.pose(seen.frame, relative_to=second, q=q).inverse()
    carry = adjoint(after.inverse())
    covariance = carry @ seen.pose.covariance @ carry.T
    pose = GaussianPose(before @ seen.pose.mean @ after, 0.5 * (covariance + covariance.T))
    return _factor(index.get(first, ROOT), index.get(second, ROOT), pose, str(seen))


def _factor(first: int, second: int, pose: GaussianPose, label: str) -> PoseFactor:
    if is_singular(np.asarray(pose.covariance)):
        raise SceneError(
            f"{label}: the covariance is not of full rank, and what is known exactly in some"
            " direction would weigh infinitely in a pose graph: use scene.condition, or give that"
            " direction a variance"
        )
    return PoseFactor(first, second, pose, label)


def solve_pose_graph(
    graph: PoseGraph, *, max_iterations: int = 100, tolerance: float = 1e-11
) -> PoseGraphSolution:
    """Return the most probable poses of a graph, by Gauss and Newton's method from where the scene has them.

    That it did not converge is part of the answer.

    Args:
        graph: the graph.
        max_iterations: the most steps.
        tolerance: on the greatest component of the last step, metres or radians. Where poses are so
            far from the root that rounding alone makes longer steps, that is the tolerance.
    """
    poses = list(graph.poses)
    weights = [inverse_covariance(np.asarray(factor.pose.covariance)) for factor in graph.factors]
    information, gradient, cost = _normal_equations(graph, weights, poses)
    steps, converged = 0, False
    while steps < max_iterations and not converged:
        step = -np.linalg.solve(information, gradient).reshape(-1, 6)
        steps, scale = steps + 1, 1.0
        reach = 1.0 + max(float(np.abs(pose.translation).max()) for pose in poses)
        converged = float(np.abs(step).max()) <= max(tolerance, _ROUNDING * reach)
        while True:
            moved = [pose @ Pose.exp(scale * xi) for pose, xi in zip(poses, step, strict=True)]
            found = _normal_equations(graph, weights, moved)
            if found[2] <= cost * (1.0 + 1e-12) or converged or scale <= _SMALLEST_STEP:
                break
            scale *= 0.5
        poses, (information, gradient, cost) = moved, found
    return PoseGraphSolution(
        graph, tuple(poses), inverse_covariance(information), cost, steps, converged
    )


def _normal_equations(
    graph: PoseGraph, weights: list[Array], poses: list[Pose]
) -> tuple[Array, Array, float]:
    n = 6 * len(poses)
    information, gradient, cost = np.zeros((n, n)), np.zeros(n), 0.0
    for factor, weight in zip(graph.factors, weights, strict=True):
        ends = [Pose() if k == ROOT else poses[k] for k in (factor.first, factor.second)]
        between = ends[0].inverse() @ ends[1]
        error, jacobian = PoseMeasurement(factor.pose).compare(between)
        parts = [(factor.first, -jacobian @ adjoint(between.inverse())), (factor.second, jacobian)]
        parts = [(6 * k, matrix) for k, matrix in parts if k != ROOT]
        for a, derivative in parts:
            gradient[a : a + 6] += derivative.T @ weight @ error
            for b, other in parts:
                information[a : a + 6, b : b + 6] += derivative.T @ weight @ other
        cost += 0.5 * float(error @ weight @ error)
    return information, gradient, cost


def write_back(
    scene: SceneGraph, solution: PoseGraphSolution, *, q: ArrayLike | None = None
) -> SceneGraph:
    """Return the version of a scene in which the frames of a pose graph stand as solved.

    The observations are part of its edges and none is left. The errors of its uncertain edges are
    maps of one source: all relative poses have the covariances of the solution.

    Args:
        scene: the scene that the graph is of.
        solution: of :func:`solve_pose_graph` or of gtsam.
        q: configuration (n_joints,) of the graph. An edge on a joint is right at it.

    Raises:
        UnknownNameError: a frame of the graph is not in the scene.
        ConfigurationError: q is missing or does not fit.
    """
    graph, n = solution.graph, len(solution.poses)
    edges = np.eye(6 * n)  # errors of the edges from those of the variables
    between = []
    for k, parent in enumerate(graph.above):
        between.append(
            (Pose() if parent == ROOT else solution.poses[parent]).inverse() @ solution.poses[k]
        )
        if parent != ROOT:
            edges[6 * k : 6 * k + 6, 6 * parent : 6 * parent + 6] = -adjoint(between[k].inverse())
    root = covariance_root(edges @ solution.covariance @ edges.T)
    source = NoiseSource(root.shape[1], f"pose graph of {len(graph.factors)} factors")
    with scene.edit() as edit:
        for k, frame in enumerate(graph.frames):
            reference = graph.root if graph.above[k] == ROOT else graph.frames[graph.above[k]]
            # behind the joint
            correction = scene.pose(frame, relative_to=reference, q=q).inverse() @ between[k]
            parent_from_frame = scene.pose(frame, relative_to=str(scene.parent(frame)), q=q)
            joint = scene.local_pose(frame).inverse() @ parent_from_frame
            edit.set_pose(frame, scene.local_pose(frame) @ joint @ correction @ joint.inverse())
            edit.set_noise(frame, {source: root[6 * k : 6 * k + 6]})
    return remove_observations(edit.finish())


def _gtsam() -> ModuleType:
    with importing("gtsam", "world", "pose graphs of gtsam need"):
        import gtsam
    module: ModuleType = gtsam
    return module


def to_gtsam_graph(graph: PoseGraph) -> tuple[Any, Any]:
    """Return ``gtsam.NonlinearFactorGraph`` and the initial ``gtsam.Values`` of a pose graph; variable k has the key k.

    Raises:
        MissingExtraError: gtsam is not installed.
    """
    gtsam = _gtsam()
    factors, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
    for factor in graph.factors:
        pose, covariance, first, second = (
            factor.pose.mean,
            factor.pose.covariance,
            factor.first,
            factor.second,
        )
        if second == ROOT:  # gtsam's priors are of a variable relative to the root
            inverse = factor.pose.inverse()
            pose, covariance, first, second = inverse.mean, inverse.covariance, ROOT, first
        noise = gtsam.noiseModel.Gaussian.Covariance(swap_linear_angular(covariance))
        at = gtsam.Pose3(pose.as_matrix())
        if not Retraction(factor.pose.covariance).is_exponential:
            factors.add(_gtsam_factor(factor))
        elif first == ROOT:
            factors.add(gtsam.PriorFactorPose3(second, at, noise))
        else:
            factors.add(gtsam.BetweenFactorPose3(first, second, at, noise))
    for k, pose in enumerate(graph.poses):
        values.insert(k, gtsam.Pose3(pose.as_matrix()))
    return factors, values


def _gtsam_factor(factor: PoseFactor) -> Any:
    """Return a factor with the residual of a badly known orientation, which the factors of gtsam do not have."""
    gtsam, measurement = _gtsam(), PoseMeasurement(factor.pose)
    ends = (factor.first, factor.second)
    keys = [key for key in ends if key != ROOT]

    def error(_: Any, values: Any, jacobians: Any) -> Array:
        first, second = (
            Pose() if key == ROOT else Pose.from_matrix(values.atPose3(key).matrix())
            for key in ends
        )
        between = first.inverse() @ second
        residual, derivative = measurement.compare(between)
        if jacobians is not None:
            by_end = {
                factor.first: -derivative @ adjoint(between.inverse()),
                factor.second: derivative,
            }
            for place, key in enumerate(keys):
                jacobians[place] = np.asfortranarray(swap_linear_angular(by_end[key]))
        return np.concatenate([residual[3:], residual[:3]])

    covariance = swap_linear_angular(factor.pose.covariance)
    return gtsam.CustomFactor(gtsam.noiseModel.Gaussian.Covariance(covariance), keys, error)


def solution_from_gtsam(
    graph: PoseGraph, factors: Any, values: Any, *, iterations: int = 0
) -> PoseGraphSolution:
    """Return what gtsam found, with the joint covariance of all variables.

    Args:
        graph: the pose graph.
        factors: ``gtsam.NonlinearFactorGraph``, as :func:`to_gtsam_graph` made it.
        values: ``gtsam.Values`` of an optimiser.
        iterations: how many it took, for the record.

    Raises:
        MissingExtraError: gtsam is not installed.
        SceneError: the values are not those of the graph.
    """
    gtsam = _gtsam()
    if values.size() != len(graph.frames):
        raise SceneError(
            f"the graph has {len(graph.frames)} variables, the values of gtsam {values.size()}"
        )
    keys = list(range(len(graph.frames)))
    joint = gtsam.Marginals(factors, values).jointMarginalCovariance(gtsam.KeyVector(keys))
    covariance = np.block([[swap_linear_angular(joint.at(a, b)) for b in keys] for a in keys])
    poses = tuple(Pose.from_matrix(values.atPose3(k).matrix()) for k in keys)
    even = 0.5 * (covariance + covariance.T)
    return PoseGraphSolution(
        graph, poses, even, float(factors.error(values)), iterations, is_converged=True
    )


def solve_with_gtsam(graph: PoseGraph, *, max_iterations: int = 100) -> PoseGraphSolution:
    """Return the most probable poses of a graph, computed by gtsam's Levenberg-Marquardt optimizer.

    Args:
        graph: the pose graph.
        max_iterations: maximal number of iterations.

    Raises:
        MissingExtraError: gtsam is not installed.
    """
    (factors, initial), gtsam = to_gtsam_graph(graph), _gtsam()
    parameters = gtsam.LevenbergMarquardtParams()
    parameters.setMaxIterations(max_iterations)
    parameters.setRelativeErrorTol(1e-15)
    parameters.setAbsoluteErrorTol(1e-15)
    optimizer = gtsam.LevenbergMarquardtOptimizer(factors, initial, parameters)
    values = optimizer.optimize()
    return solution_from_gtsam(graph, factors, values, iterations=int(optimizer.iterations()))
