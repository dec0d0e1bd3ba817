"""Pose graph of the uncertain edges and the observations of a scene, and its solution.

* A variable is the pose X of a frame with an uncertain edge, relative to the root. Rigid transforms
  are part of the factors.
* Each uncertain edge is a factor between a frame and its next uncertain ancestor, with the
  covariance of the edge.
* Each observation is a factor between its two frames: e = log(Z^-1 X_a^-1 X_b), with its covariance
  in the axes of b.

``solve_pose_graph`` is the Gauss-Newton method with exact derivatives. It halves steps that
increase the sum of squared errors. In ``write_back``, the errors of all frames of the solution,
which are correlated, are maps of one source.

Invariants: for one observation the solution equals that of ``scene.condition``, with its
covariances. For several observations, the difference is of second order in the errors. Conditioning
linearises each measurement at the result of the earlier ones, and the solution linearises all of
them at the optimum.

The factors of a pose graph are independent. Edges whose errors share a source (after ``reparent``,
``condition`` or by design) are therefore rejected. Edges and observations that are exact in some
direction are also rejected, because their weight is infinite. ``scene.condition`` supports both.

Complexity: O((6 n)^3) in each iteration for n uncertain frames, because matrices are dense. This
suffices for a few hundred frames.

gtsam (extra ``world``) solves the same graph as a ``gtsam.NonlinearFactorGraph``. Its factors are
``PriorFactorPose3`` (to the root), ``BetweenFactorPose3``, and ``CustomFactor`` for very uncertain
orientations. The poses are the initial ``gtsam.Values``, and variable k has the key k. Errors are
right perturbations in both libraries, but those of gtsam have the rotation first. Covariances are
therefore converted by :func:`tmkit.spatial.covariances.swap_linear_angular`.
``solution_from_gtsam`` also accepts the values of other optimisers of gtsam.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

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
"""Index of the root in place of a variable."""

_ROUNDING_ERROR = 1e-14
"""Largest step due to rounding alone, relative to the distances from the root."""

_MIN_STEP_SCALE = 2.0**-20
"""Smallest fraction of a Gauss-Newton step."""


@dataclass(frozen=True, eq=False)
class PoseFactor:
    """Factor between two variables.

    Attributes:
        first: index of the reference variable; -1 for the root.
        second: index of the other variable.
        pose: first_from_second, with a covariance of full rank in the axes of the second.
        label: name of the edge or the observation.
    """

    first: int
    second: int
    pose: GaussianPose
    label: str


@dataclass(frozen=True, eq=False)
class PoseGraph:
    """Variables and factors of a scene with observations.

    Attributes:
        root: reference frame of the variables.
        frames: name of the frame of each variable, parents before children.
        parents: index of the next uncertain ancestor of each variable, -1 for the root.
        poses: root_from_frame of each variable in the scene.
        factors: factors of the edges, then of the observations.
    """

    root: str
    frames: tuple[str, ...]
    parents: tuple[int, ...]
    poses: tuple[Pose, ...]
    factors: tuple[PoseFactor, ...]


@dataclass(frozen=True, eq=False)
class PoseGraphSolution(IteratedEstimate):
    """Most probable poses of a pose graph.

    Attributes:
        graph: the solved graph.
        poses: root_from_frame of each variable.
        covariance: (6 n, 6 n) covariance of the stacked errors of the variables, each in the axes
            of its frame.
        cost: half of the sum of the squared Mahalanobis distances of all factors.
        iterations: number of steps.
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
            ValueError: if the frame is not a variable.
        """
        k = self.graph.frames.index(frame)
        return GaussianPose(self.poses[k], self.covariance[6 * k : 6 * k + 6, 6 * k : 6 * k + 6])


def pose_graph(scene: SceneGraph, *, q: ArrayLike | None = None) -> PoseGraph:
    """Return the pose graph of a scene and the observations in it.

    Args:
        scene: scene with independent errors of full rank on its uncertain edges, and observations
            in one tree.
        q: (n_joints,) configuration; optional without joints.

    Raises:
        UnknownNameError: if an observed frame is not in the scene.
        SceneError: if there is no observation, one relates rigidly joined frames, two edges share a
            source of errors, or a covariance is not of full rank.
        DisconnectedError: if observations are in different trees.
        ConfigurationError: if q is missing or has a wrong shape.
    """
    pose_observations = [
        observation for observation in observations(scene) if observation.kind == "pose"
    ]
    if not pose_observations:
        raise SceneError("a pose graph needs at least one observation")
    root, observation_frames = (
        scene.root(pose_observations[0].frame),
        {observation.name for observation in pose_observations},
    )
    uncertain_frames = (frame for frame in scene.subtree(root) if scene.noise(frame) is not None)
    frames = tuple(frame for frame in uncertain_frames if frame not in observation_frames)
    sources = _check_independent(scene, frames)
    # without observations that are the estimate of an edge already
    pose_observations = [
        observation
        for observation in pose_observations
        if sources.isdisjoint(_sources(scene, observation.name))
    ]
    index = {frame: k for k, frame in enumerate(frames)}
    parents = tuple(
        index.get(_holder(scene, str(scene.parent(frame)), index, root), ROOT) for frame in frames
    )
    factors = []
    for k, frame in enumerate(frames):
        reference = root if parents[k] == ROOT else frames[parents[k]]
        relative_pose = GaussianPose(
            scene.pose(frame, relative_to=reference, q=q), scene.edge_covariance(frame)
        )
        factors.append(_factor(parents[k], k, relative_pose, f"edge of '{frame}'"))
    factors += [
        _observation_factor(scene, observation, index, root, q) for observation in pose_observations
    ]
    poses = tuple(scene.pose(frame, relative_to=root, q=q) for frame in frames)
    return PoseGraph(root, frames, parents, poses, tuple(factors))


def _sources(scene: SceneGraph, frame: str) -> tuple[NoiseSource, ...]:
    noise = scene.noise(frame)
    return () if noise is None else noise.sources


def _check_independent(scene: SceneGraph, frames: tuple[str, ...]) -> set[NoiseSource]:
    """Return the sources of the errors of edges.

    Raises:
        SceneError: if two edges share a source.
    """
    users: dict[NoiseSource, str] = {}
    for frame in frames:
        for source in _sources(scene, frame):
            if source in users:
                reason = (
                    f"the errors of '{users[source]}' and '{frame}' have the source"
                    f" '{source.label}' in common"
                )
                raise SceneError(
                    f"{reason}, and a pose graph has independent factors: use scene.condition"
                )
            users[source] = frame
    return set(users)


def _holder(scene: SceneGraph, frame: str, index: dict[str, int], root: str) -> str:
    """Return the frame of the variable to which a frame is rigidly attached, or the root."""
    return next((name for name in (frame, *scene.ancestors(frame)) if name in index), root)


def _observation_factor(
    scene: SceneGraph,
    pose_observations: Observation,
    index: dict[str, int],
    root: str,
    q: ArrayLike | None,
) -> PoseFactor:
    common_ancestor(
        scene, pose_observations.relative_to, pose_observations.frame
    )  # both are there, in one tree
    common_ancestor(scene, pose_observations.frame, root)
    first, second = (
        _holder(scene, frame, index, root)
        for frame in (pose_observations.relative_to, pose_observations.frame)
    )
    if first == second:
        raise SceneError(
            f"{pose_observations}: the two are rigidly joined, so there is nothing to learn"
        )
    first_from_observer = scene.pose(pose_observations.relative_to, relative_to=first, q=q)
    frame_from_second = scene.pose(pose_observations.frame, relative_to=second, q=q).inverse()
    carry = adjoint(frame_from_second.inverse())
    covariance = carry @ pose_observations.pose.covariance @ carry.T
    pose = GaussianPose(
        first_from_observer @ pose_observations.pose.mean @ frame_from_second,
        0.5 * (covariance + covariance.T),
    )
    return _factor(index.get(first, ROOT), index.get(second, ROOT), pose, str(pose_observations))


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
    """Return the most probable poses of a graph, by Gauss-Newton steps from the poses of the scene.

    The solution stores whether the method converged.

    Args:
        graph: graph to solve.
        max_iterations: largest number of steps.
        tolerance: largest component of the last step [m or rad]. It increases with the distances
            from the root if rounding alone causes longer steps.
    """
    poses = list(graph.poses)
    weights = [inverse_covariance(np.asarray(factor.pose.covariance)) for factor in graph.factors]
    information, gradient, cost = _normal_equations(graph, weights, poses)
    steps, is_converged = 0, False
    while steps < max_iterations and not is_converged:
        step = -np.linalg.solve(information, gradient).reshape(-1, 6)
        steps, scale = steps + 1, 1.0
        reach = 1.0 + max(float(np.abs(pose.translation).max()) for pose in poses)
        is_converged = float(np.abs(step).max()) <= max(tolerance, _ROUNDING_ERROR * reach)
        while True:
            candidates = [pose @ Pose.exp(scale * xi) for pose, xi in zip(poses, step, strict=True)]
            equations = _normal_equations(graph, weights, candidates)
            if equations[2] <= cost * (1.0 + 1e-12) or is_converged or scale <= _MIN_STEP_SCALE:
                break
            scale *= 0.5
        poses, (information, gradient, cost) = candidates, equations
    return PoseGraphSolution(
        graph, tuple(poses), inverse_covariance(information), cost, steps, is_converged
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
    """Return the version of a scene with the poses of a solved pose graph.

    The observations become part of the edges and are removed. The errors of the uncertain edges are
    maps of one source, so all relative poses have the covariances of the solution.

    Args:
        scene: scene of the graph.
        solution: solution of :func:`solve_pose_graph` or of gtsam.
        q: (n_joints,) configuration of the graph, at which an edge on a joint is valid.

    Raises:
        UnknownNameError: if a frame of the graph is not in the scene.
        ConfigurationError: if q is missing or has a wrong shape.
    """
    graph, n = solution.graph, len(solution.poses)
    edges = np.eye(6 * n)  # map from errors of the variables to errors of the edges
    between = []
    for k, parent in enumerate(graph.parents):
        root_from_parent = Pose() if parent == ROOT else solution.poses[parent]
        between.append(root_from_parent.inverse() @ solution.poses[k])
        if parent != ROOT:
            edges[6 * k : 6 * k + 6, 6 * parent : 6 * parent + 6] = -adjoint(between[k].inverse())
    root = covariance_root(edges @ solution.covariance @ edges.T)
    source = NoiseSource(root.shape[1], f"pose graph of {len(graph.factors)} factors")
    with scene.edit() as edit:
        for k, frame in enumerate(graph.frames):
            reference = graph.root if graph.parents[k] == ROOT else graph.frames[graph.parents[k]]
            # pose error behind the joint
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


class GtsamValues(Protocol):
    """Interface of ``gtsam.Values``."""

    def size(self) -> int:
        """Return the number of values."""
        ...

    def atPose3(self, key: int) -> Any:  # noqa: N802
        """Return the ``gtsam.Pose3`` of a key."""
        ...


class GtsamFactorGraph(Protocol):
    """Interface of ``gtsam.NonlinearFactorGraph``."""

    def error(self, values: GtsamValues) -> float:
        """Return the sum of the errors of all factors."""
        ...


def to_gtsam_graph(graph: PoseGraph) -> tuple[Any, Any]:
    """Return ``gtsam.NonlinearFactorGraph`` and initial ``gtsam.Values`` of a pose graph.

    Variable k has the key k.

    Raises:
        MissingExtraError: if gtsam is not installed.
    """
    gtsam = _gtsam()
    factors, values = gtsam.NonlinearFactorGraph(), gtsam.Values()
    for factor in graph.factors:
        pose, first, second = factor.pose, factor.first, factor.second
        if second == ROOT:  # a prior of gtsam is the pose of a variable relative to the root
            pose, first, second = factor.pose.inverse(), ROOT, first
        noise = gtsam.noiseModel.Gaussian.Covariance(swap_linear_angular(pose.covariance))
        gtsam_pose = gtsam.Pose3(pose.mean.as_matrix())
        if not Retraction(factor.pose.covariance).is_exponential:
            factors.add(_gtsam_factor(factor))
        elif first == ROOT:
            factors.add(gtsam.PriorFactorPose3(second, gtsam_pose, noise))
        else:
            factors.add(gtsam.BetweenFactorPose3(first, second, gtsam_pose, noise))
    for k, root_from_frame in enumerate(graph.poses):
        values.insert(k, gtsam.Pose3(root_from_frame.as_matrix()))
    return factors, values


def _gtsam_factor(factor: PoseFactor) -> Any:
    """Return a factor with the residual for a very uncertain orientation, which gtsam lacks."""
    gtsam, measurement = _gtsam(), PoseMeasurement(factor.pose)
    ends = (factor.first, factor.second)
    keys = [key for key in ends if key != ROOT]

    def error(_: object, values: GtsamValues, jacobians: list[Array] | None) -> Array:
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
    graph: PoseGraph, factors: GtsamFactorGraph, values: GtsamValues, *, iterations: int = 0
) -> PoseGraphSolution:
    """Return the solution of gtsam, with the joint covariance of all variables.

    Args:
        graph: the pose graph.
        factors: ``gtsam.NonlinearFactorGraph`` of :func:`to_gtsam_graph`.
        values: ``gtsam.Values`` of an optimiser.
        iterations: number of iterations of the optimiser.

    Raises:
        MissingExtraError: if gtsam is not installed.
        SceneError: if the number of values is not that of the variables.
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
    symmetric = 0.5 * (covariance + covariance.T)
    return PoseGraphSolution(
        graph, poses, symmetric, float(factors.error(values)), iterations, is_converged=True
    )


def solve_with_gtsam(graph: PoseGraph, *, max_iterations: int = 100) -> PoseGraphSolution:
    """Return the most probable poses of a graph, by gtsam's Levenberg-Marquardt optimizer.

    Args:
        graph: graph to solve.
        max_iterations: largest number of iterations.

    Raises:
        MissingExtraError: if gtsam is not installed.
    """
    (factors, initial), gtsam = to_gtsam_graph(graph), _gtsam()
    parameters = gtsam.LevenbergMarquardtParams()
    parameters.setMaxIterations(max_iterations)
    parameters.setRelativeErrorTol(1e-15)
    parameters.setAbsoluteErrorTol(1e-15)
    optimizer = gtsam.LevenbergMarquardtOptimizer(factors, initial, parameters)
    values = optimizer.optimize()
    return solution_from_gtsam(graph, factors, values, iterations=int(optimizer.iterations()))
