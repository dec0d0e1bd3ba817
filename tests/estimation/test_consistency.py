"""Consistency of estimates: errors of many runs have the stated covariances."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from support import consistency_runs as runs

from tmkit import GaussianPose, Measurement, Pose, SceneGraph
from tmkit.estimation import (
    Fused,
    pose_graph,
    resolve_observations,
    solve_pose_graph,
    solve_with_gtsam,
)
from tmkit.graph import Evidence, FactPolicy, add_fact, add_observation, innovation
from tmkit.spatial import (
    JointGaussianPose,
    PoseMeasurement,
    PositionMeasurement,
    chi_square_quantile,
    condition,
    fuse,
    gate,
)
from tmkit.spatial.conditioning import MeasurementModel

Array = NDArray[np.float64]
Links = JointGaussianPose | list[GaussianPose]

WIDE = runs.PRIORS["wide"]
FIX = np.diag([1e-4] * 3 + [runs.UNKNOWN] * 3)
"""Covariance of a position fix whose orientation is unknown."""
MODEL = 1.1
"""Largest factor of NEES from 1 by effects beyond first order."""
DEGREES = {
    "unknown orientation": 3,
    "unknown position": 3,
    "unknown yaw": 5,
    "position": 3,
    "position of a point": 3,
    "bearing": 2,
    "range": 1,
}
"""Numbers of a measurement of which something is known; six of the others."""


def require_consistent(mean: float, numbers: int) -> None:
    """Check a mean of squared errors, each with an expected value of 1, over many runs."""
    lower, upper = (chi_square_quantile(p, numbers) / numbers for p in (0.0005, 0.9995))
    assert lower / MODEL <= mean <= upper * MODEL


def require_consistent_runs(outcomes: list[runs.Outcome]) -> None:
    """Check NEES of poses and of orientations alone."""
    require_consistent(
        runs.normalise_errors(outcomes, lambda outcome: outcome.pose), 6 * len(outcomes)
    )
    require_consistent(
        runs.normalise_errors(outcomes, lambda outcome: outcome.orientation), 3 * len(outcomes)
    )


@pytest.mark.parametrize("prior", ["wide", "tight"])
@pytest.mark.parametrize("kind", runs.KINDS)
@pytest.mark.parametrize("updates", [1, 10])
def test_iterated_updates_are_consistent(kind: str, prior: str, updates: int) -> None:
    """NEES and NIS are consistent for every kind of measurement, strong, weak and unknown."""
    outcomes = [
        runs.run(kind, prior, updates=updates, max_iterations=50, seed=seed) for seed in range(60)
    ]
    require_consistent_runs(outcomes)
    distances = np.array([outcome.distances for outcome in outcomes]) / DEGREES.get(kind, 6)
    require_consistent(float(distances.mean()), distances.size * DEGREES.get(kind, 6))


@pytest.mark.parametrize(
    "kind", ["unknown orientation", "unknown yaw", "weak orientation", "position", "bearing"]
)
def test_many_updates_are_consistent(kind: str) -> None:
    """Two hundred measurements contain no more than two hundred times the information of one."""
    require_consistent_runs(
        [runs.run(kind, "wide", updates=200, max_iterations=50, seed=seed) for seed in range(20)]
    )


@pytest.mark.parametrize("kind", ["unknown orientation", "position", "bearing"])
def test_the_extended_kalman_filter_does_not_learn_what_is_not_measured(kind: str) -> None:
    """With one iteration an update, the orientation keeps its covariance."""
    outcomes = [
        runs.run(kind, "wide", updates=100, max_iterations=1, seed=seed) for seed in range(20)
    ]
    require_consistent(
        runs.normalise_errors(outcomes, lambda outcome: outcome.orientation), 3 * len(outcomes)
    )
    for outcome in outcomes:
        np.testing.assert_allclose(
            np.sqrt(np.diag(outcome.estimate.covariance)[3:]), 0.5, rtol=0.03
        )


@pytest.mark.parametrize("kind", ["unknown orientation", "position"])
def test_a_lever_is_measured_and_nothing_else(kind: str) -> None:
    """A rotation about a point 0.3 m away makes the position informative about two axes."""
    outcomes = [
        runs.run(kind, "at a lever", updates=10, max_iterations=50, seed=seed) for seed in range(60)
    ]
    require_consistent(
        runs.normalise_errors(outcomes, lambda outcome: outcome.orientation), 3 * len(outcomes)
    )


def fixes(random: np.random.Generator, truth: Pose, count: int) -> list[Pose]:
    """Return measured positions with the orientation that the sensor writes."""
    return [runs.measure_pose(random, truth, np.diag(FIX)) for _ in range(count)]


def drawn_truth(random: np.random.Generator) -> Pose:
    """Return a pose drawn from the wide prior."""
    return runs.START @ Pose.exp(np.sqrt(WIDE) @ random.normal(size=6))


def by_conditions(seen: list[Pose]) -> GaussianPose:
    """Condition a scene on one after the other."""
    scene = runs.known_scene(WIDE)
    for pose in seen:
        scene = scene.condition(
            Measurement.of_pose("cup", pose, relative_to="world", covariance=FIX)
        )
    return scene.gaussian_pose("cup", relative_to="world")


def by_facts(seen: list[Pose]) -> GaussianPose:
    """Fuse a scene with one fact after the other."""
    scene = runs.known_scene(WIDE)
    for pose in seen:
        fact = GaussianPose(pose, FIX)
        scene = add_fact(
            scene,
            fact,
            frame="cup",
            relative_to="world",
            policy=FactPolicy(known="fuse", gate=1 - 1e-9),
        )
    return scene.gaussian_pose("cup", relative_to="world")


def by_chain(seen: list[Pose]) -> GaussianPose:
    """Condition a chain of two links, of which one is exact."""
    links: Links = [GaussianPose(runs.START, WIDE), GaussianPose(Pose([0.1, 0.2, 0.0]))]
    for pose in seen:
        end = GaussianPose(pose, FIX) @ Pose([0.1, 0.2, 0.0])
        links = condition(links, PoseMeasurement(end)).links
    return (
        JointGaussianPose.independent(links).marginal(0)
        if isinstance(links, list)
        else links.marginal(0)
    )


def by_positions(seen: list[Pose]) -> GaussianPose:
    """Condition a chain on the positions alone."""
    links: Links = [GaussianPose(runs.START, WIDE)]
    for pose in seen:
        measurement: MeasurementModel = PositionMeasurement(pose.translation, 1e-4 * np.eye(3))
        links = condition(links, measurement).links
    return (
        JointGaussianPose.independent(links).marginal(0)
        if isinstance(links, list)
        else links.marginal(0)
    )


def by_fusion(seen: list[Pose]) -> GaussianPose:
    """Fuse all estimates at once."""
    return fuse([GaussianPose(runs.START, WIDE), *(GaussianPose(pose, FIX) for pose in seen)]).pose


def observe(seen: list[Pose]) -> SceneGraph:
    """Return the scene with observations."""
    scene = runs.known_scene(WIDE)
    for pose in seen:
        scene = add_observation(
            scene, "cup", pose, relative_to="world", evidence=Evidence(covariance=FIX)
        )
    return scene


def by_pose_graph(seen: list[Pose]) -> GaussianPose:
    """Solve the pose graph of all observations."""
    return solve_pose_graph(pose_graph(observe(seen))).pose("cup")


def by_resolution(seen: list[Pose]) -> GaussianPose:
    """Resolve the observations by fusing them."""
    resolution = resolve_observations(observe(seen[:8]), "cup", policy=Fused())
    return resolution.scene.gaussian_pose("cup", relative_to="world")


@pytest.mark.parametrize(
    "estimate",
    [by_conditions, by_facts, by_chain, by_positions, by_fusion, by_pose_graph, by_resolution],
    ids=lambda estimate: estimate.__name__,
)
def test_position_fixes_leave_the_orientation_unknown(
    estimate: Callable[[list[Pose]], GaussianPose],
) -> None:
    """Combined position fixes keep the 0.5 rad deviation of the orientation, and consistency."""
    squared = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        truth = drawn_truth(random)
        estimated = estimate(fixes(random, truth, 40))
        deviations = np.sqrt(np.linalg.eigvalsh(estimated.covariance[3:, 3:]))
        np.testing.assert_allclose(deviations, 0.5, rtol=0.02)
        error = (estimated.mean.inverse() @ truth).log()[3:]
        squared.append(float(error @ np.linalg.solve(estimated.covariance[3:, 3:], error)) / 3.0)
        right = PoseMeasurement(GaussianPose(truth, np.diag([1e-4] * 3 + [0.0027] * 3)))
        assert gate(estimated, right, probability=0.9999).is_accepted
    require_consistent(float(np.mean(squared)), 36)


def test_a_later_orientation_passes_the_gate_of_the_scene() -> None:
    """After two hundred fixes, an orientation that is right to 3 degrees is inside the gate."""
    for seed in range(5):
        random = np.random.default_rng(seed)
        truth = drawn_truth(random)
        scene = runs.known_scene(WIDE)
        for pose in fixes(random, truth, 200):
            scene = scene.condition(
                Measurement.of_pose("cup", pose, relative_to="world", covariance=FIX)
            )
        seen = Measurement.of_pose(
            "cup", truth, relative_to="world", covariance=np.diag([1e-4] * 3 + [0.0027] * 3)
        )
        assert innovation(scene, seen).squared_mahalanobis < chi_square_quantile(0.999, 6)


def kalman_filter(seen: list[Pose]) -> tuple[Array, Array]:
    """Return position and covariance of a plain Kalman filter of positions in the world's axes."""
    mean, covariance = (
        np.array(runs.START.translation),
        runs.START.rotation @ WIDE[:3, :3] @ runs.START.rotation.T,
    )
    for pose in seen:
        gain = covariance @ np.linalg.inv(covariance + 1e-4 * np.eye(3))
        mean, covariance = mean + gain @ (pose.translation - mean), covariance - gain @ covariance
    return mean, covariance


def test_position_fixes_are_those_of_a_plain_kalman_filter() -> None:
    """Position and its covariance are those of a filter that has no orientation at all."""
    random = np.random.default_rng(3)
    truth = drawn_truth(random)
    seen = fixes(random, truth, 50)
    mean, covariance = kalman_filter(seen)
    for estimate in (by_conditions, by_positions, by_pose_graph):
        estimated = estimate(seen)
        np.testing.assert_allclose(estimated.mean.translation, mean, atol=1e-8)
        turned = estimated.mean.rotation @ estimated.covariance[:3, :3] @ estimated.mean.rotation.T
        np.testing.assert_allclose(turned, covariance, rtol=1e-5, atol=1e-11)


def test_gtsam_solves_the_same_graph_with_unknown_orientations() -> None:
    """The factors for gtsam have the same minimum and covariances, also between frames."""
    pytest.importorskip("gtsam")
    random = np.random.default_rng(7)
    truth = drawn_truth(random)
    scene = observe(fixes(random, truth, 20)).add_frame(
        "table", "world", pose=GaussianPose(Pose([1, 1, 0]), WIDE)
    )
    seen = Pose([1.0, 1.1, 0.1]).inverse() @ truth
    scene = add_observation(
        scene,
        "cup",
        seen,
        relative_to="table",
        evidence=Evidence(covariance=np.diag([1e-4] * 3 + [1e-3, 1e-3, 1.0])),
    )
    graph = pose_graph(scene)
    ours, theirs = solve_pose_graph(graph), solve_with_gtsam(graph)
    for ours_pose, other in zip(ours.poses, theirs.poses, strict=True):
        assert ours_pose.is_close(other, translation_tolerance=1e-6, rotation_tolerance=1e-6)
    np.testing.assert_allclose(theirs.covariance, ours.covariance, rtol=1e-4, atol=1e-8)
    assert theirs.cost == pytest.approx(ours.cost, rel=1e-6)


def test_position_fixes_are_those_of_gtsam() -> None:
    """Priors of position and of orientation apart, in gtsam, give the same pose and covariance."""
    gtsam = pytest.importorskip("gtsam")
    random = np.random.default_rng(5)
    truth = drawn_truth(random)
    seen = fixes(random, truth, 30)
    graph, values, start = (
        gtsam.NonlinearFactorGraph(),
        gtsam.Values(),
        gtsam.Pose3(runs.START.as_matrix()),
    )
    sigmas = gtsam.noiseModel.Isotropic.Sigma
    graph.add(gtsam.PoseRotationPrior3D(0, start, sigmas(3, 0.5)))
    graph.add(gtsam.PoseTranslationPrior3D(0, start, sigmas(3, 0.1)))
    for pose in seen:
        graph.add(gtsam.PoseTranslationPrior3D(0, gtsam.Pose3(pose.as_matrix()), sigmas(3, 0.01)))
    values.insert(0, start)
    solved = gtsam.LevenbergMarquardtOptimizer(graph, values).optimize()
    covariance = gtsam.Marginals(graph, solved).marginalCovariance(0)[
        np.ix_([3, 4, 5, 0, 1, 2], [3, 4, 5, 0, 1, 2])
    ]
    conditioned = by_conditions(seen)
    np.testing.assert_allclose(
        conditioned.mean.translation, solved.atPose3(0).translation(), atol=1e-6
    )
    np.testing.assert_allclose(conditioned.covariance, covariance, rtol=1e-3, atol=1e-6)
