"""Distances between frames, batches of configurations, and threads."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.pinocchio_oracle import add_boxes, robot_scene

from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.graph import AttachedShape, Box, Mesh, Plane, Prismatic, SceneGraph, Sphere
from tmkit.motion import CollisionWorld
from tmkit.spatial import Pose

BOXES = {
    "table": ((0.8, 1.2, 0.04), (0.7, 0.0, -0.03)),
    "block": ((0.05, 0.05, 0.05), (0.5, 0.1, 0.03)),
}


def two_shapes() -> SceneGraph:
    """Return a table with a leg and a handle on its body, and a ball on a slide above it."""
    scene = SceneGraph().add_frame(
        "table", "world", shapes=[AttachedShape(Box([2, 2, 0.2]), Pose([0, 0, -0.1]))]
    )
    scene = scene.add_body("rack").add_frame(
        "shelf", "world", body="rack", pose=Pose([0, 0, 1]), shapes=[AttachedShape(Sphere(0.1))]
    )
    scene = scene.add_frame(
        "hook", "shelf", body="rack", pose=Pose([0, 0, -0.4]), shapes=[AttachedShape(Sphere(0.02))]
    )
    scene = scene.add_frame("bare", "world")
    joint = Prismatic([0, 0, 1], lower=-1, upper=1)
    return scene.add_frame("ball", "world", joint=joint, shapes=[AttachedShape(Sphere(0.1))])


def test_distance_of_a_pair() -> None:
    """The distance of two frames has sign, points and normal in the order of the arguments."""
    world = CollisionWorld(two_shapes(), margin=0.01)
    gap = world.distance("ball", "table", [0.3])
    assert gap is not None
    assert (gap.frame_a, gap.frame_b, gap.margin) == ("ball", "table", 0.01)
    assert gap.distance == pytest.approx(0.2)
    np.testing.assert_allclose(gap.normal, [0, 0, -1], atol=1e-9)
    np.testing.assert_allclose(gap.point_a, [0, 0, 0.2], atol=1e-9)
    np.testing.assert_allclose(gap.point_b, [0, 0, 0.0], atol=1e-9)
    other = world.distance("table", "ball", [0.3])
    assert other is not None
    assert (other.frame_a, other.frame_b, other.distance) == ("table", "ball", gap.distance)
    np.testing.assert_allclose(other.normal, [0, 0, 1], atol=1e-9)
    np.testing.assert_array_equal(other.point_a, gap.point_b)
    deep = world.distance("ball", "table", [0.05])
    assert deep is not None
    assert deep.distance == pytest.approx(-0.05, abs=1e-6)
    np.testing.assert_allclose(deep.point_b - deep.point_a, deep.distance * deep.normal, atol=1e-9)


def test_distance_of_pairs_that_are_not_checked() -> None:
    """Allowed and rigidly fixed pairs have a distance."""
    world = CollisionWorld(two_shapes().allow_collision("ball", "table"))
    allowed = world.distance("ball", "table", [0.3])
    assert allowed is not None
    assert (round(allowed.distance, 9), allowed.margin) == (0.2, -math.inf)
    joined = world.distance("table", "shelf", [0.0])
    assert joined is not None
    assert joined.distance == pytest.approx(0.9)
    assert world.distance("ball", "bare", [0.0]) is None
    assert world.distance("ball", "ball", [0.0]) is None
    planes = two_shapes().add_frame("floor", "world", shapes=[AttachedShape(Plane())])
    assert (
        CollisionWorld(planes.set_shapes("table", [AttachedShape(Plane())])).distance(
            "floor", "table", [0.0]
        )
        is None
    )


def test_distance_of_bodies() -> None:
    """The name of a body stands for all its frames, and the nearest of them is told."""
    world = CollisionWorld(two_shapes())
    gap = world.distance("ball", "rack", [0.2])
    assert gap is not None
    assert (gap.frame_a, gap.frame_b) == ("ball", "hook")
    assert gap.distance == pytest.approx(0.6 - 0.02 - 0.3)
    with pytest.raises(UnknownNameError, match="unknown frame 'shelve'; did you mean 'shelf'"):
        world.distance("ball", "shelve", [0.2])
    with pytest.raises(ConfigurationError):
        world.distance("ball", "shelf", [0.2, 0.3])


def test_the_nearest_pair_is_the_least_of_all_pairs() -> None:
    """The smallest distance of all pairs is that of the pair from ``nearest``."""
    scene = add_boxes(robot_scene("panda"), BOXES)
    world = CollisionWorld(scene, pair_margins={("panda_link0", name): -math.inf for name in BOXES})
    limits = scene.joint_limits
    for q in np.random.default_rng(7).uniform(limits[:, 0], limits[:, 1], (20, len(limits))):
        gaps = {(a, b): world.distance(a, b, q) for a, b, _ in world.pairs}
        nearest = world.nearest(q)
        assert nearest is not None
        least = min(gap.distance for gap in gaps.values() if gap is not None)
        assert nearest.distance == world.distance(q) == least
        assert gaps[nearest.frame_a, nearest.frame_b].distance == least


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_batches_say_what_single_queries_say(threads: int) -> None:
    """Distances are equal for each row, any number of threads, and a moved world."""
    scene = add_boxes(robot_scene("panda"), BOXES)
    new = CollisionWorld(
        scene, margin=0.005, pair_margins={("panda_link0", name): -math.inf for name in BOXES}
    )
    limits = scene.joint_limits
    qs = np.random.default_rng(8).uniform(limits[:, 0], limits[:, 1], (300, len(limits)))
    for world in (new, new.moved_to(scene.reparent("block", "panda_hand", q=qs[0]))):
        np.testing.assert_array_equal(
            world.in_collision_batch(qs, threads=threads), [world.is_in_collision(q) for q in qs]
        )
        distances = world.distance_batch(qs[:100], threads=threads)
        np.testing.assert_array_equal(distances, [world.distance(q) for q in qs[:100]])
        with pytest.raises(ValueError, match="read-only"):
            distances[0] = 0.0
        for q, found in zip(qs, world.contacts_batch(qs, threads=threads), strict=True):
            single = world.contacts(q)
            assert [(c.frame_a, c.frame_b, c.distance) for c in found] == [
                (c.frame_a, c.frame_b, c.distance) for c in single
            ]


def test_batches_without_rows_or_joints_or_threads() -> None:
    """No rows give no answers, rows of no joints count, and less than one thread is an error."""
    still = CollisionWorld(SceneGraph().add_frame("a", "world", shapes=[AttachedShape(Sphere(1))]))
    assert still.in_collision_batch(np.zeros((3, 0)), threads=2).tolist() == [False] * 3
    assert still.distance_batch(np.zeros((2, 0))).tolist() == [math.inf] * 2
    assert still.contacts_batch(np.zeros((0, 0))) == []
    for ask in (still.in_collision_batch, still.distance_batch, still.contacts_batch):
        with pytest.raises(ConfigurationError, match="threads must be at least 1, got 0"):
            ask(np.zeros((3, 0)), threads=0)


def test_one_shape_and_one_world_are_built_by_many_threads_at_once() -> None:
    """Threads that share a shape or a new world return correct distances."""
    rng = np.random.default_rng(3)
    joint = Prismatic([0, 0, 1], lower=-2, upper=2)
    qs = np.linspace(-1.5, 1.5, 40)[:, None]
    for _ in range(20):
        points = rng.normal(size=(300, 3))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        mesh = Mesh(0.3 * points, np.arange(300, dtype=np.int32).reshape(100, 3))
        scene = SceneGraph().add_frame("stone", "world", shapes=[AttachedShape(mesh)])
        scene = scene.add_frame("probe", "world", joint=joint, shapes=[AttachedShape(Sphere(0.1))])
        copy = Mesh(
            0.3 * points + 0.0, np.arange(300, dtype=np.int32).reshape(100, 3), source="another"
        )
        barrier = threading.Barrier(8)
        worlds: list[CollisionWorld] = []

        def work(
            number: int, scene=scene, barrier=barrier, worlds=worlds
        ) -> tuple[list[bool], list[float]]:
            barrier.wait()
            made = CollisionWorld(scene)
            if number == 0:
                worlds.append(made)
            barrier.wait()
            world = (worlds[0] if number % 2 else made).moved_to(
                scene.set_pose("stone", Pose([0, 0, 0.1]))
            )
            return world.in_collision_batch(qs, threads=2).tolist(), [
                worlds[0].distance(q) for q in qs
            ]

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(work, range(8)))
        alone = CollisionWorld(scene.set_shapes("stone", [AttachedShape(copy)]))
        moved = CollisionWorld(alone.scene.set_pose("stone", Pose([0, 0, 0.1])))
        expected = (moved.in_collision_batch(qs).tolist(), [alone.distance(q) for q in qs])
        assert answers == [expected] * 8
