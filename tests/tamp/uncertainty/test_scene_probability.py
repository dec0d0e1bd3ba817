"""Probabilities of relations of frames: closed forms against poses sampled from the scene."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tmkit import NoiseSource, Pose, SceneGraph
from tmkit._core import sample_poses, twist_noise
from tmkit.graph import AttachedShape, Box, Prismatic
from tmkit.motion import CollisionWorld
from tmkit.spatial import GaussianPose
from tmkit.tamp.uncertainty.probability import ProbabilityMethod
from tmkit.tamp.uncertainty.scene_probability import (
    clears_along,
    clears_at,
    footprint_inside,
    point_inside,
    pose_probability,
    rotation_within,
    sample_scene,
    stands_on,
)

COUNT = 100_000
FLAT = np.diag([4e-4, 1e-4, 0.0, 0.0, 0.0, 0.01])


def block(size: float) -> tuple[AttachedShape, ...]:
    """Return the shape of a cube."""
    return (AttachedShape(Box([size] * 3)),)


def table_scene() -> SceneGraph:
    """Return two blocks on a table that is itself not sure."""
    return (
        SceneGraph()
        .add_frame(
            "table",
            "world",
            shapes=(AttachedShape(Box([0.6, 0.4, 0.1])),),
            pose=GaussianPose(covariance=1e-3 * np.eye(6)),
        )
        .add_frame(
            "b", "table", pose=GaussianPose(Pose([0.1, 0.05, 0.075]), FLAT), shapes=block(0.05)
        )
        .add_frame(
            "a",
            "b",
            pose=GaussianPose(
                Pose([0.005, 0, 0.05], [0, 0, math.sin(0.2), math.cos(0.2)]), FLAT / 4
            ),
            shapes=block(0.05),
        )
    )


def test_standing_on_a_block_is_what_samples_say() -> None:
    """P(on(a, b)) depends on the relative error alone, and agrees with samples of the scene."""
    scene = table_scene()
    probability = stands_on(scene, "a", "b")
    poses = sample_poses(scene, "a", relative_to="b", count=COUNT, seed=1)
    assert probability.method is not ProbabilityMethod.SAMPLED
    assert probability.value == pytest.approx(
        np.mean(np.all(np.abs(poses[:, :2]) <= 0.025, axis=1)), abs=0.005
    )
    unsure_table = scene.set_covariance("table", np.eye(6))
    assert stands_on(unsure_table, "a", "b") == probability


def test_a_point_in_a_box_of_another_frame() -> None:
    """The probability that a corner of a block is in a region agrees with samples."""
    scene = table_scene()
    lower, upper, point = [0.1, 0.0, -1.0], [0.15, 0.1, 1.0], [0.025, 0.025, 0.025]
    probability = point_inside(
        scene, "b", relative_to="table", lower=lower, upper=upper, point=point
    )
    poses = sample_poses(scene, "b", relative_to="table", count=COUNT, seed=2)
    corners = np.array([Pose.from_array(row).apply(point) for row in poses[:20_000]])
    assert probability.value == pytest.approx(
        np.mean(np.all((corners >= lower) & (corners <= upper), axis=1)), abs=0.02
    )


@pytest.mark.parametrize("turn", [0.0, 0.01])
def test_footprints_in_regions(turn: float) -> None:
    """The probability that a footprint is in a region agrees with samples, for all methods."""
    covariance = np.diag([1e-4, 1e-4, 0, 0, 0, turn])
    scene = table_scene().set_covariance("b", covariance)
    probability = footprint_inside(
        scene, "b", relative_to="table", lower=[0.05, 0.0], upper=[0.15, 0.1], seed=4
    )
    assert (probability.method is ProbabilityMethod.SAMPLED) == (turn > 0.0)
    assert probability == footprint_inside(
        scene, "b", relative_to="table", lower=[0.05, 0.0], upper=[0.15, 0.1], seed=4
    )
    corners = np.array([[x, y, 0.0] for x in (-0.025, 0.025) for y in (-0.025, 0.025)])
    poses = sample_poses(scene, "b", relative_to="table", count=20_000, seed=5)
    inside = [
        np.all(np.abs(Pose.from_array(row).apply(corners)[:, :2] - [0.1, 0.05]) <= 0.05)
        for row in poses
    ]
    assert probability.value == pytest.approx(np.mean(inside), abs=0.015)
    assert (
        footprint_inside(
            scene, "b", relative_to="table", lower=[0.09, 0.04], upper=[0.1, 0.05]
        ).value
        == 0.0
    )


def test_a_hand_finds_what_it_reaches_for() -> None:
    """Two tolerances along axes and one about z multiply where the errors are independent."""
    scene = SceneGraph().add_frame("block", "world", pose=GaussianPose(Pose([0.4, 0, 0]), FLAT))
    rows = np.eye(6)[[0, 1, 5]]
    probability = pose_probability(
        scene, "block", relative_to="world", directions=rows, tolerances=[0.02, 0.02, 0.2]
    )
    one_deviation, two = math.erf(1 / math.sqrt(2)), math.erf(2 / math.sqrt(2))
    assert probability.value == pytest.approx(one_deviation * two * two)
    assert probability.method is ProbabilityMethod.CLOSED_FORM


def test_turns() -> None:
    """A turn about z alone is an angle; the whole turn of an isotropic error is Maxwell's law."""
    scene = SceneGraph().add_frame(
        "block", "world", pose=GaussianPose(covariance=np.diag([0, 0, 0, 0.01, 0.01, 0.01]))
    )
    assert rotation_within(
        scene, "block", relative_to="world", limit=0.1, axis=[0, 0, 2]
    ).value == pytest.approx(math.erf(math.sqrt(0.5)))
    maxwell = math.erf(math.sqrt(0.5)) - math.sqrt(2 / math.pi) * math.exp(-0.5)
    assert rotation_within(scene, "block", relative_to="world", limit=0.1).value == pytest.approx(
        maxwell
    )


def corridor() -> SceneGraph:
    """Return a ball-like block on a slide that passes a post which is not sure."""
    return (
        SceneGraph()
        .add_frame(
            "slide",
            "world",
            joint=Prismatic([1, 0, 0], name="x", lower=-1, upper=1),
            shapes=block(0.1),
        )
        .add_frame(
            "post",
            "world",
            pose=GaussianPose(Pose([0, 0.15, 0]), np.diag([0, 4e-4, 0, 0, 0, 0])),
            shapes=block(0.1),
        )
    )


def test_clearance_at_a_configuration() -> None:
    """The clearance depends on the error along the normal alone."""
    scene = corridor()
    world = CollisionWorld(scene)
    probability = clears_at(
        scene, world, np.array([0.0]), frame_a="slide", frame_b="post", margin=0.01
    )
    assert probability.value == pytest.approx(0.5 * math.erfc(-2 / math.sqrt(2)))
    across = scene.set_covariance("post", np.diag([4e-4, 0, 0, 0, 0, 0]))
    assert (
        clears_at(
            across, CollisionWorld(across), np.array([0.0]), frame_a="post", frame_b="slide"
        ).value
        == 1.0
    )


def test_clearance_along_a_path_meets_one_world() -> None:
    """The post has one error at every step, so a path is as likely as its nearest configuration."""
    scene = corridor()
    path = np.linspace(-0.4, 0.4, 17)[:, None]
    probability = clears_along(
        scene, CollisionWorld(scene), path, pairs=[("slide", "post")], margin=0.01, seed=3
    )
    assert probability.method is ProbabilityMethod.SAMPLED
    assert probability.value == pytest.approx(
        0.5 * math.erfc(-2 / math.sqrt(2)), abs=4 * probability.standard_error
    )
    exact = scene.set_covariance("post", None)
    assert clears_along(exact, CollisionWorld(exact), path, pairs=[("slide", "post")]).value == 1.0


def test_drawn_worlds_are_exact_and_correlated() -> None:
    """A sampled scene has no errors; edges of one source move together with their covariance."""
    source = NoiseSource(1, "thermal")
    bend = np.array([[0.01, 0, 0, 0, 0, 0]]).T
    scene = (
        SceneGraph()
        .add_frame("a", "world")
        .add_frame("b", "a")
        .add_frame("c", "world", pose=GaussianPose(covariance=FLAT))
    )
    scene = scene.set_noise("a", {source: bend}).set_noise("b", {source: -bend})
    assert sample_scene(scene, seed=1) == sample_scene(scene, seed=1) != sample_scene(scene, seed=2)
    worlds = [sample_scene(scene, seed=seed) for seed in range(500)]
    assert all(world.noisy_frames == () for world in worlds)
    assert (
        max(
            float(np.abs(world.pose("b", relative_to="world").translation).max())
            for world in worlds
        )
        < 1e-15
    )
    spread = np.cov(
        [world.pose("c", relative_to="world").translation[:2] for world in worlds], rowvar=False
    )
    assert np.diag(spread) == pytest.approx([4e-4, 1e-4], rel=0.25)
    driven = scene.set_twist("c", np.ones(6), relative_to_body="world").set_twist_noise(
        "c", {source: 2.0 * bend}
    )
    world = sample_scene(driven, seed=1)
    assert twist_noise(world, "c") is None
    shift = world.local_pose("a").translation[0]
    assert np.allclose(world.twist_edge("c")[1], [1.0 + 2.0 * shift, 1, 1, 1, 1, 1], atol=1e-15)  # type: ignore[index]
