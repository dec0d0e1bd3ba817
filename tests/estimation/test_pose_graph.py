"""Pose graphs: solved at once, by gtsam too, and written back with all correlations."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from support.effort import scaled_examples

from tmkit import Pose, Revolute, SceneGraph
from tmkit.errors import DisconnectedError, MissingExtraError, SceneError
from tmkit.estimation import pose_graph, solve_pose_graph, solve_with_gtsam, write_back
from tmkit.estimation.pose_graph import solution_from_gtsam, to_gtsam_graph
from tmkit.graph import Evidence, add_observation, joint_gaussian, observations
from tmkit.graph.observation_frames import Observation, remove_observations
from tmkit.spatial import GaussianPose

SEEDS = st.integers(0, 2**32 - 1)
HAS_GTSAM = importlib.util.find_spec("gtsam") is not None


def covariance(random: np.random.Generator, deviation: float) -> np.ndarray:
    """Return a covariance of full rank with deviations about this."""
    root = deviation * (np.eye(6) + 0.3 * random.normal(size=(6, 6)))
    return root @ root.T


def survey(
    random: np.random.Generator, *, views: int = 4, deviation: float = 2e-3
) -> tuple[SceneGraph, tuple[Observation, ...], dict[str, Pose]]:
    """Return a survey: a base and its camera at each stop, two landmarks, looks, the truth.

    The observations are in the scene.
    """
    scene = SceneGraph()
    parent = "world"
    for view in range(views):
        pose = Pose.from_rpy([0.5, 0.1 * view, 0.0], [0.0, 0.0, 0.2])
        scene = scene.add_frame(
            f"base{view}", parent, pose=GaussianPose(pose, covariance(random, deviation))
        )
        scene = scene.add_frame(f"mast{view}", f"base{view}", pose=Pose([0.1, 0.0, 1.2]))
        neck = Pose.from_rpy([0.0, 0.05, 0.1], [0.1, 0.3, -0.2])
        scene = scene.add_frame(
            f"head{view}", f"mast{view}", pose=GaussianPose(neck, covariance(random, deviation))
        )
        scene = scene.add_frame(
            f"camera{view}", f"head{view}", pose=Pose.from_rpy([0.05, 0, 0], [-1.5, 0.1, 0.0])
        )
        parent = f"base{view}"
    for name, position in (("rock", [3.0, 1.0, 0.2]), ("lander", [3.0, -1.0, 0.5])):
        scene = scene.add_frame(
            name, "world", pose=GaussianPose(Pose(position), covariance(random, 20 * deviation))
        )
        scene = scene.add_frame(
            f"marker of {name}", name, pose=Pose.from_rpy([0.0, 0.0, 0.3], [0.2, 0.1, 0.5])
        )
    truth = scene
    for frame in scene.noisy_frames:
        root = np.linalg.cholesky(scene.edge_covariance(frame))
        truth = truth.set_pose(
            frame, scene.local_pose(frame) @ Pose.exp(root @ random.normal(size=6))
        )
    for view in range(views):
        for name in ("rock", "lander"):
            noise = covariance(random, deviation)
            seen = truth.pose(f"marker of {name}", relative_to=f"camera{view}") @ Pose.exp(
                np.linalg.cholesky(noise) @ random.normal(size=6)
            )
            scene = add_observation(
                scene,
                f"marker of {name}",
                seen,
                relative_to=f"camera{view}",
                evidence=Evidence(covariance=noise),
            )
    return (
        scene,
        observations(scene),
        {frame: truth.pose(frame, relative_to="world") for frame in truth.frame_names},
    )


def relative(a: np.ndarray, b: np.ndarray) -> float:
    """Return by how much two matrices differ, relative to the second."""
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


@settings(max_examples=scaled_examples(0.2))
@given(SEEDS)
def test_one_observation_is_conditioning(seed: int) -> None:
    """With one observation the solution equals scene.condition, with all correlations."""
    scene, looks, _ = survey(np.random.default_rng(seed), views=3)
    version = remove_observations(scene, looks[1:])
    solved = write_back(version, solve_pose_graph(pose_graph(version)))
    conditioned = scene.condition(looks[0].measurement())
    pairs = [
        ("camera2", "world"),
        ("marker of rock", "world"),
        ("head0", "lander"),
        ("marker of rock", "camera0"),
    ]
    for target, reference in pairs:
        assert solved.pose(target, relative_to=reference).is_close(
            conditioned.pose(target, relative_to=reference), translation_tolerance=1e-9
        )
    assert relative(joint_gaussian(solved, pairs)[1], joint_gaussian(conditioned, pairs)[1]) < 1e-8


@settings(max_examples=10)
@given(SEEDS)
def test_many_observations_differ_from_conditioning_by_second_order(seed: int) -> None:
    """Sequential and joint solutions differ by the square of the errors."""
    gaps = []
    for deviation in (2e-3, 2e-4):
        scene, looks, _ = survey(np.random.default_rng(seed), views=3, deviation=deviation)
        solved = write_back(scene, solve_pose_graph(pose_graph(scene)))
        conditioned = scene
        for look in looks:
            conditioned = conditioned.condition(look.measurement())
        gaps.append(
            solved.pose("lander", relative_to="world").distance(
                conditioned.pose("lander", relative_to="world")
            )[0]
        )
    assert gaps[0] < 1e-3
    assert gaps[1] < 0.05 * gaps[0] + 1e-9


@settings(max_examples=scaled_examples(0.2))
@given(SEEDS)
def test_written_back_is_what_was_solved(seed: int) -> None:
    """Poses, covariances and cross-covariances of the new version are those of the solution."""
    scene, _looks, _ = survey(np.random.default_rng(seed), views=2)
    solution = solve_pose_graph(pose_graph(scene))
    assert solution.is_converged
    version = write_back(scene, solution)
    means, joint = joint_gaussian(version, [(frame, "world") for frame in solution.graph.frames])
    for mean, solved in zip(means, solution.poses, strict=True):
        assert mean.is_close(solved)
    assert relative(joint, solution.covariance) < 1e-9
    assert (
        relative(
            version.gaussian_pose("rock", relative_to="world").covariance,
            solution.pose("rock").covariance,
        )
        < 1e-9
    )
    assert version.frame_names == remove_observations(scene).frame_names


def test_solutions_are_as_sure_as_they_say() -> None:
    """Over simulated surveys the squared distances from the truth are chi-square distributed."""
    squared = []
    for seed in range(60):
        scene, _looks, truth = survey(np.random.default_rng(seed), views=2)
        solution = solve_pose_graph(pose_graph(scene))
        error = np.concatenate(
            [
                (pose.inverse() @ truth[frame]).log()
                for frame, pose in zip(solution.graph.frames, solution.poses, strict=True)
            ]
        )
        squared.append(float(error @ np.linalg.solve(solution.covariance, error)))
    degrees = 36
    assert np.mean(squared) == pytest.approx(degrees, abs=4 * np.sqrt(2 * degrees / len(squared)))


@pytest.mark.skipif(not HAS_GTSAM, reason="the extra 'world' is not installed")
@settings(max_examples=8, deadline=None)
@given(SEEDS)
def test_gtsam_finds_the_same(seed: int) -> None:
    """Poses and joint covariance agree with gtsam's, and its cost is no lower."""
    scene, _looks, _ = survey(np.random.default_rng(seed), views=3)
    back = scene.pose("world", relative_to="rock")
    graph = pose_graph(
        add_observation(
            scene, "world", back, relative_to="rock", evidence=Evidence(covariance=1e-2 * np.eye(6))
        )
    )
    ours = solve_pose_graph(graph)
    try:
        theirs = solve_with_gtsam(graph)
    except RuntimeError as refusal:
        # gtsam solves the normal equations, and rejects some that tmkit solves
        assume("Indeterminate linear system" not in str(refusal))
        raise
    for a, b in zip(ours.poses, theirs.poses, strict=True):
        assert a.is_close(b, translation_tolerance=1e-8, rotation_tolerance=1e-8)
    assert relative(theirs.covariance, ours.covariance) < 1e-6
    assert ours.cost <= theirs.cost * (1.0 + 1e-9)
    # gtsam may end where its last step is not the best
    assert theirs.cost == pytest.approx(ours.cost, rel=1e-6)
    factors, values = to_gtsam_graph(graph)
    assert factors.size() == len(graph.factors)
    with pytest.raises(SceneError, match="the graph has 8 variables, the values of gtsam 0"):
        solution_from_gtsam(graph, factors, type(values)())


def test_without_gtsam_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing extra is named in one line."""
    scene, _looks, _ = survey(np.random.default_rng(0), views=1)
    monkeypatch.setitem(sys.modules, "gtsam", None)
    with pytest.raises(
        MissingExtraError, match=r"need the extra 'world': pip install -e '\.\[world\]'"
    ):
        solve_with_gtsam(pose_graph(scene))


def test_edges_on_joints_are_right_at_q() -> None:
    """A frame on a joint is corrected to the solution at the configuration of the observation."""
    scene = (
        SceneGraph()
        .add_frame(
            "neck",
            "world",
            pose=GaussianPose(Pose([0, 0, 1]), 1e-4 * np.eye(6)),
            joint=Revolute([0, 0, 1]),
        )
        .add_frame("camera", "neck", pose=Pose([0.1, 0, 0]))
        .add_frame("mark", "world", pose=GaussianPose(Pose([1, 1, 1]), 1e-6 * np.eye(6)))
    )
    q = [0.6]
    seen = scene.pose("mark", relative_to="camera", q=q) @ Pose.exp([0.01, 0, 0.01, 0, 0.01, 0])
    scene = add_observation(
        scene, "mark", seen, relative_to="camera", evidence=Evidence(covariance=1e-6 * np.eye(6))
    )
    solution = solve_pose_graph(pose_graph(scene, q=q))
    version = write_back(scene, solution, q=q)
    assert version.pose("neck", relative_to="world", q=q).is_close(solution.pose("neck").mean)
    assert (
        relative(
            version.gaussian_pose("neck", relative_to="world", q=q).covariance,
            solution.pose("neck").covariance,
        )
        < 1e-9
    )


def test_what_a_pose_graph_cannot_say_is_refused() -> None:
    """Shared sources, exact directions, rigid pairs, and frames that are not there are named."""
    scene, looks, _ = survey(np.random.default_rng(0), views=1)
    with pytest.raises(
        SceneError, match="have the source 'measurement of marker of rock in camera0' in common"
    ):
        pose_graph(scene.condition(looks[0].measurement()))
    with pytest.raises(SceneError, match="edge of 'rock': the covariance is not of full rank"):
        pose_graph(scene.set_covariance("rock", np.diag([1.0, 0, 0, 0, 0, 0])))
    with pytest.raises(SceneError, match="'mast0' seen from 'base0': the two are rigidly joined"):
        pose_graph(
            add_observation(
                scene, "mast0", Pose(), relative_to="base0", evidence=Evidence(covariance=np.eye(6))
            )
        )
    with pytest.raises(SceneError, match="a pose graph needs at least one observation"):
        pose_graph(remove_observations(scene))
    moon = scene.add_root("moon")
    with pytest.raises(DisconnectedError):
        pose_graph(
            add_observation(
                moon, "moon", Pose(), relative_to="base0", evidence=Evidence(covariance=np.eye(6))
            )
        )


@pytest.mark.parametrize("reach", [1.0, 1e5])
def test_graphs_far_from_their_root_come_to_rest(reach: float) -> None:
    """Steps caused by rounding of large distances end the iteration."""
    random = np.random.default_rng(4)
    scene, parent = SceneGraph(), "world"
    for name in ("a", "b", "c"):
        pose = Pose.exp(np.r_[random.normal(size=3) * reach, random.normal(size=3)])
        scene = scene.add_frame(name, parent, pose=GaussianPose(pose, 1e-4 * np.eye(6)))
        parent = name
    seen = scene.pose("c", relative_to="world") @ Pose.exp(random.normal(size=6) * 0.01)
    scene = add_observation(
        scene, "c", seen, relative_to="world", evidence=Evidence(covariance=1e-4 * np.eye(6))
    )
    solution = solve_pose_graph(pose_graph(scene))
    assert solution.is_converged
    assert solution.iterations < 30
