"""Inverse kinematics: reachable poses, limits, statuses of failures, and attributes."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.pinocchio_oracle import ROBOTS, add_boxes, robot_scene

from tmkit.errors import ConfigurationError, DisconnectedError, UnknownNameError
from tmkit.graph import Continuous, Prismatic, Revolute, SceneGraph
from tmkit.motion import (
    CollisionWorld,
    IkSettings,
    InverseKinematicsStatus,
    inverse_kinematics,
    inverse_kinematics_solutions,
)
from tmkit.spatial import Pose

TIPS = {"panda": "panda_grasptarget", "iiwa": "lbr_iiwa_link_7"}


def arm_joints(scene: SceneGraph) -> list[str]:
    """Return the joints of the arm, without those of the gripper."""
    return [name for name in scene.joint_names if "finger" not in name]


def middle(scene: SceneGraph) -> np.ndarray:
    """Return the middle of all joint ranges."""
    return scene.joint_limits.mean(axis=1)


def planar(*, limit: float = 3.0) -> SceneGraph:
    """Return two revolute joints in a plane, with links of 0.5 m and 0.3 m."""
    scene = SceneGraph().add_frame(
        "shoulder", "world", joint=Revolute([0, 0, 1], lower=-limit, upper=limit)
    )
    joint = Revolute([0, 0, 1], lower=-limit, upper=limit)
    scene = scene.add_frame("elbow", "shoulder", pose=Pose([0.5, 0, 0]), joint=joint)
    return scene.add_frame("tip", "elbow", pose=Pose([0.3, 0, 0]))


@pytest.mark.parametrize("robot", list(ROBOTS))
def test_reachable_poses_are_solved(robot: str) -> None:
    """All 200 poses of random configurations are solved within tolerance and limits."""
    scene = robot_scene(robot)
    joints, tip = arm_joints(scene), TIPS[robot]
    limits = scene.joint_limits
    for seed, q in enumerate(
        np.random.default_rng(0).uniform(limits[:, 0], limits[:, 1], (200, len(limits)))
    ):
        target = scene.pose(tip, relative_to="world", q=q)
        result = inverse_kinematics(
            scene,
            tip,
            target_pose=target,
            joints=joints,
            q=middle(scene),
            settings=IkSettings(seed=seed),
        )
        assert result.status is InverseKinematicsStatus.SOLVED
        metres, radians = scene.pose(tip, relative_to="world", q=result.q).distance(target)
        assert metres <= 1.01e-5
        assert radians <= 1.1e-5
        assert result.position_error <= 1e-5
        assert result.rotation_error <= 1e-5
        assert np.all(result.q >= limits[:, 0])
        assert np.all(result.q <= limits[:, 1])
        assert result.iterations >= 1
        assert 0 <= result.restarts <= 25


def test_other_joints_keep_their_values() -> None:
    """Joints without a name keep their values. The reference may be any frame."""
    scene = robot_scene("panda")
    q = middle(scene).copy()
    q[-1] = 0.013
    moving = arm_joints(scene)[2:]
    goal = q.copy()
    goal[2:7] += [0.3, -0.2, 0.4, 0.1, -0.3]
    for reference in ("world", "panda_link0", "panda_link1", "panda_link4"):
        target = scene.pose("panda_hand", relative_to=reference, q=goal)
        result = inverse_kinematics(
            scene, "panda_hand", target_pose=target, joints=moving, q=q, relative_to=reference
        )
        assert result.status is InverseKinematicsStatus.SOLVED
        assert (
            scene.pose("panda_hand", relative_to=reference, q=result.q).distance(target)[0]
            <= 1.01e-5
        )
        np.testing.assert_array_equal(result.q[[0, 1, 7]], q[[0, 1, 7]])


def test_failures_have_different_statuses() -> None:
    """A pose too far is out of reach, one too near is not found, with the best configuration."""
    scene = planar()
    arguments = {
        "joints": ["shoulder", "elbow"],
        "q": [0.0, 0.1],
        "settings": IkSettings(rotation_tolerance=math.inf),
    }
    beyond = inverse_kinematics(scene, "tip", target_pose=Pose([0.81, 0, 0]), **arguments)
    assert beyond.status is InverseKinematicsStatus.OUT_OF_REACH
    inside = inverse_kinematics(scene, "tip", target_pose=Pose([0.1, 0, 0]), **arguments)
    assert inside.status is InverseKinematicsStatus.NOT_FOUND
    assert inside.restarts == 25
    folded = math.sqrt(0.5**2 + 0.3**2 + 2 * 0.5 * 0.3 * math.cos(3.0))  # the elbow stops at 3 rad
    assert inside.position_error == pytest.approx(folded - 0.1, abs=1e-3)
    assert inside.position_error == pytest.approx(
        np.linalg.norm(scene.pose("tip", relative_to="world", q=inside.q).translation - [0.1, 0, 0])
    )
    assert repr(inside).startswith("InverseKinematicsResult(NOT_FOUND, position_error=0.")
    limited = inverse_kinematics(
        planar(limit=0.5), "tip", target_pose=Pose([-0.5, 0.3, 0]), **arguments
    )
    assert limited.status is InverseKinematicsStatus.NOT_FOUND
    assert np.all(np.abs(limited.q) <= 0.5)


@given(st.floats(-2.9, 2.9), st.floats(-2.9, 2.9))
def test_planar_arm_matches_its_formula(shoulder: float, elbow: float) -> None:
    """The law of cosines gives the elbow angle of a planar arm."""
    scene = planar()
    position = scene.pose("tip", relative_to="world", q=[shoulder, elbow]).translation
    result = inverse_kinematics(
        scene,
        "tip",
        target_pose=Pose(position),
        joints=scene.joint_names,
        q=[0.3, 0.4],
        settings=IkSettings(rotation_tolerance=math.inf, restarts=60),
    )
    assert result.status is InverseKinematicsStatus.SOLVED
    cosine = (position @ position - 0.5**2 - 0.3**2) / (2 * 0.5 * 0.3)
    assert math.cos(result.q[1]) == pytest.approx(cosine, abs=1e-3)


def test_whole_turns_are_removed() -> None:
    """A continuous joint stays within half a turn of its start; a slide keeps its limits."""
    scene = SceneGraph().add_frame("wheel", "world", joint=Continuous([0, 0, 1]))
    scene = scene.add_frame("slide", "wheel", joint=Prismatic([1, 0, 0], lower=0.1, upper=0.5))
    target = Pose([0, 0.3, 0], [0, 0, math.sin(math.pi / 4), math.cos(math.pi / 4)])
    for turns in (-3, 0, 5):
        start = 2 * math.pi * turns + 0.2
        result = inverse_kinematics(
            scene, "slide", target_pose=target, joints=["wheel", "slide"], q=[start, 0.2]
        )
        assert result.status is InverseKinematicsStatus.SOLVED
        assert result.q == pytest.approx([2 * math.pi * turns + math.pi / 2, 0.3], abs=1e-4)


def test_solutions_are_reproducible_in_many_threads() -> None:
    """The result depends on the arguments only. Another seed may give another solution."""
    scene = robot_scene("panda")
    q = middle(scene)
    target = scene.pose("panda_hand", relative_to="world", q=q + 0.25)

    def solve(seed: int) -> bytes:
        result = inverse_kinematics_solutions(
            scene,
            "panda_hand",
            target_pose=target,
            joints=arm_joints(scene),
            q=q,
            settings=IkSettings(max_solutions=5, seed=seed),
        )
        return result.configurations.tobytes()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(solve, [7] * 8))) == 1
    assert solve(7) != solve(8)


def test_solutions_differ_and_are_free() -> None:
    """Solutions are separated, sorted by distance from q, and free of collisions."""
    boxes = {
        "shelf": ((0.3, 0.8, 0.02), (0.5, 0.0, 0.75)),
        "post": ((0.1, 0.1, 0.6), (0.3, 0.35, 0.3)),
    }
    scene = add_boxes(robot_scene("panda"), boxes)
    world = CollisionWorld(scene)
    q = scene.configuration(
        {"panda_joint4": -1.5, "panda_joint6": 1.5, "panda_finger_joint1": 0.04}
    )
    target = Pose([0.45, 0.1, 0.25], [1, 0, 0, 0])
    joints = arm_joints(scene)
    free = inverse_kinematics_solutions(
        world,
        "panda_grasptarget",
        target_pose=target,
        joints=joints,
        q=q,
        settings=IkSettings(max_solutions=6, restarts=300, separation=0.2),
    )
    assert free.status is InverseKinematicsStatus.SOLVED
    assert 2 <= len(free) == len(free.configurations) <= 6
    assert np.array_equal([*free], free.configurations)
    assert free.q is not None
    assert np.array_equal(free.q, free.configurations[0])
    others = [k for k, name in enumerate(scene.joint_names) if name not in joints]
    assert np.array_equal(free.configurations[:, others], np.tile(q[others], (len(free), 1)))
    assert free.in_collision == sum(count for _, _, count in free.blocking_pairs) > 0
    counts = [count for _, _, count in free.blocking_pairs]
    assert counts == sorted(counts, reverse=True)
    assert free.tries <= 301
    assert not world.in_collision_batch(free.configurations).any()
    distances = np.abs(free.configurations - q).max(axis=1)
    assert np.all(np.diff(distances) >= 0)
    for i, first in enumerate(free.configurations):
        assert (
            scene.pose("panda_grasptarget", relative_to="world", q=first).distance(target)[0]
            <= 1.01e-5
        )
        for second in free.configurations[:i]:
            assert np.abs(first - second).max() > 0.2
    assert repr(free).startswith("InverseKinematicsSolutions(SOLVED, ")
    nothing = inverse_kinematics_solutions(
        scene,
        "panda_grasptarget",
        target_pose=Pose([3, 0, 0]),
        joints=joints,
        q=q,
        settings=IkSettings(max_solutions=2),
    )
    assert nothing.status is InverseKinematicsStatus.OUT_OF_REACH
    assert nothing.configurations.shape == (0, 8)
    assert (len(nothing), [*nothing], nothing.q) == (0, [], None)
    assert nothing.blocking_pairs == ()


def test_a_target_in_collision_ends_the_search_at_once() -> None:
    """A hand collides at the target in all solutions, so one solution suffices."""
    scene = add_boxes(robot_scene("panda"), {"wall": ((0.02, 1.0, 1.0), (0.46, 0.0, 0.3))})
    q = scene.configuration(
        {"panda_joint4": -1.5, "panda_joint6": 1.5, "panda_finger_joint1": 0.04}
    )
    joints, world = arm_joints(scene), CollisionWorld(scene)
    for x in (0.2, 0.3, 0.4, 0.43, 0.45, 0.47):
        target = Pose([x, 0.1, 0.25], [1, 0, 0, 0])
        result, all_solutions = (
            inverse_kinematics_solutions(
                in_world,
                "panda_grasptarget",
                target_pose=target,
                joints=joints,
                q=q,
                settings=IkSettings(max_solutions=8),
            )
            for in_world in (world, scene)
        )
        contacts = [
            {frozenset((contact.frame_a, contact.frame_b)) for contact in world.contacts(solution)}
            for solution in all_solutions.configurations
        ]
        in_all = frozenset.intersection(*map(frozenset, contacts))
        assert result.is_target_in_collision == (x >= 0.43)
        if result.is_target_in_collision:
            ((frame_a, frame_b, count),) = result.blocking_pairs
            assert frozenset((frame_a, frame_b)) in in_all
            assert count == result.in_collision == 1
            assert result.status is InverseKinematicsStatus.NOT_FOUND


def test_invalid_arguments_are_rejected() -> None:
    """Unknown names, other trees, starts outside limits and invalid options raise errors."""
    scene = planar(limit=1.0).add_root("map")
    good: dict[str, object] = {
        "target_pose": Pose(),
        "joints": ["shoulder", "elbow"],
        "q": [0.0, 0.0],
    }

    def solve(tip: str = "tip", **changes: object) -> object:
        return inverse_kinematics(scene, tip, **(good | changes))

    with pytest.raises(UnknownNameError, match="did you mean 'tip'"):
        solve("tipp")
    with pytest.raises(UnknownNameError, match="did you mean 'elbow'"):
        solve(joints=["elbo"])
    with pytest.raises(DisconnectedError):
        solve(relative_to="map")
    with pytest.raises(
        ConfigurationError, match=r"joint 'elbow' is at 1.5.*outside its limits"
    ) as caught:
        solve(q=[0.0, 1.5])
    assert (caught.value.joint, caught.value.value, caught.value.upper) == ("elbow", 1.5, 1.0)
    with pytest.raises(ConfigurationError, match="named twice"):
        solve(joints=["elbow", "elbow"])
    with pytest.raises(ConfigurationError, match="q must hold 2 numbers"):
        solve(q=[0.0])
    panda = robot_scene("panda")
    with pytest.raises(UnknownNameError):
        inverse_kinematics(
            panda, "panda_hand", target_pose=Pose(), joints=["panda_finger_joint3"], q=middle(panda)
        )
    with pytest.raises(ConfigurationError, match="follows another joint"):
        inverse_kinematics(
            panda, "panda_hand", target_pose=Pose(), joints=["panda_finger_joint2"], q=middle(panda)
        )


def test_a_chain_without_joints() -> None:
    """Without joints on the chain, the status depends on the pose of the tip only."""
    scene = planar()
    here = scene.pose("tip", relative_to="world", q=[0.1, 0.2])
    solved = inverse_kinematics(scene, "tip", target_pose=here, joints=[], q=[0.1, 0.2])
    assert solved.status is InverseKinematicsStatus.SOLVED
    assert solved.q.tolist() == [0.1, 0.2]
    elsewhere = inverse_kinematics(scene, "tip", target_pose=Pose(), joints=[], q=[0.1, 0.2])
    assert elsewhere.status is InverseKinematicsStatus.OUT_OF_REACH
