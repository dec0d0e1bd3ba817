"""Forward kinematics and Jacobians, against pinocchio and finite differences."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio
import pybullet_data
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray
from support.effort import scaled_examples

from tmkit.errors import ConfigurationError, DisconnectedError, UnknownNameError
from tmkit.formats import load_scene
from tmkit.graph import Continuous, Free, Mimic, Prismatic, Revolute, SceneGraph
from tmkit.spatial import Pose

Array = NDArray[np.float64]

ROBOTS = {"panda": "franka_panda/panda.urdf", "iiwa": "kuka_iiwa/model.urdf"}
_seeds = st.integers(0, 2**32 - 1)


@dataclass
class Arm:
    """A robot of pybullet_data in tmkit and in pinocchio, each with its own reader."""

    scene: SceneGraph
    model: pinocchio.Model
    data: pinocchio.Data

    def follow(self) -> Array:
        """Return the matrix from tmkit's configuration to pinocchio's.

        Pinocchio moves the Panda's second finger by itself; ours mimics the first.
        """
        matrix = np.zeros((self.model.nv, len(self.scene.joint_names)))
        for index in range(1, len(self.model.names)):
            joint = self.scene.joint(self.scene.joint_frame(self.model.names[index]))
            leader = joint.mimic.joint if joint.mimic is not None else joint.name
            factor = joint.mimic.multiplier if joint.mimic is not None else 1.0
            matrix[self.model.joints[index].idx_v, self.scene.joint_names.index(leader)] = factor
        return matrix


@pytest.fixture(scope="module", params=sorted(ROBOTS))
def arm(request: pytest.FixtureRequest) -> Arm:
    """Load one of the arms twice."""
    path = Path(pybullet_data.getDataPath()) / ROBOTS[request.param]
    model = pinocchio.buildModelFromUrdf(str(path))
    return Arm(load_scene(path), model, model.createData())


@given(seed=_seeds)
def test_poses_agree_with_pinocchio(arm: Arm, seed: int) -> None:
    """Poses of all links relative to the first equal pinocchio's at any configuration."""
    q = np.random.default_rng(seed).uniform(-3.0, 3.0, len(arm.scene.joint_names))
    pinocchio.framesForwardKinematics(arm.model, arm.data, arm.follow() @ q)
    at = arm.scene.at(q)
    for frame in arm.model.frames[1:]:
        if frame.type != pinocchio.FrameType.BODY:
            continue
        expected = arm.data.oMf[arm.model.getFrameId(frame.name)].homogeneous
        assert np.allclose(at.pose(frame.name).as_matrix(), expected, rtol=0, atol=1e-10), (
            frame.name
        )


@given(seed=_seeds)
def test_jacobians_agree_with_pinocchio(arm: Arm, seed: int) -> None:
    """Jacobians of all link origins in the root's axes equal pinocchio's, with mimic joints."""
    q = np.random.default_rng(seed).uniform(-3.0, 3.0, len(arm.scene.joint_names))
    follow = arm.follow()
    at = arm.scene.at(q)
    for frame in arm.model.frames[1:]:
        if frame.type != pinocchio.FrameType.BODY:
            continue
        expected = pinocchio.computeFrameJacobian(
            arm.model,
            arm.data,
            follow @ q,
            arm.model.getFrameId(frame.name),
            pinocchio.LOCAL_WORLD_ALIGNED,
        )
        assert np.allclose(at.jacobian(frame.name), expected @ follow, rtol=0, atol=1e-10), (
            frame.name
        )


def odd_scene() -> SceneGraph:
    """Return a tree with all joint types, oblique axes and chains of mimic rules."""
    place = Pose.from_rpy([0.3, -0.2, 0.1], [0.4, 0.5, -0.6])
    return (
        SceneGraph()
        .add_frame("turn", "world", pose=place, joint=Revolute([1, 2, 3]))
        .add_frame("slide", "turn", pose=place, joint=Prismatic([0, 1, 1]))
        .add_frame("still", "slide", pose=place)
        .add_frame("spin", "still", pose=place, joint=Continuous([0, 0, -1]))
        .add_frame(
            "copy", "spin", pose=place, joint=Revolute([1, 0, 0], mimic=Mimic("turn", -0.7, 0.2))
        )
        .add_frame(
            "copied", "copy", pose=place, joint=Prismatic([1, 0, 0], mimic=Mimic("copy", 0.3, -0.1))
        )
        .add_frame("loose", "copied", pose=place, joint=Free())
        .add_frame("aside", "slide", pose=place, joint=Revolute([0, 1, 0], mimic=Mimic("spin")))
    )


@settings(max_examples=scaled_examples(0.5))
@given(q=st.tuples(*[st.floats(-3.0, 3.0)] * 3))
def test_jacobians_are_the_derivatives_of_poses(q: tuple[float, float, float]) -> None:
    """J times a small step is the change of the pose, for all joint types and mimic rules."""
    scene, step = odd_scene(), 1e-6
    at = scene.at(q)
    for frame in scene.frame_names:
        origin = Pose(at.pose(frame).translation)
        for column in range(3):
            ahead, behind = (
                scene.at(np.array(q) + sign * step * np.eye(3)[column]).pose(frame)
                for sign in (1, -1)
            )
            linear = (ahead.translation - behind.translation) / (2 * step)
            angular = (ahead @ behind.inverse()).log()[3:] / (2 * step)
            assert np.allclose(at.jacobian(frame)[:, column], [*linear, *angular], atol=1e-8), (
                frame,
                origin,
            )


@given(q=st.tuples(*[st.floats(-3.0, 3.0)] * 3))
def test_scene_and_kinematics_answer_with_the_same_bits(q: tuple[float, float, float]) -> None:
    """A scene and a configuration give the same bits, relative to any frame and to the root."""
    scene = odd_scene()
    at = scene.at(q)
    for target in scene.frame_names:
        assert (
            at.pose(target).as_array().tobytes()
            == scene.pose(target, relative_to="world", q=q).as_array().tobytes()
        )
        for reference in scene.frame_names:
            ours, theirs = (
                scene.pose(target, relative_to=reference, q=q),
                at.pose(target, relative_to=reference),
            )
            assert ours.as_array().tobytes() == theirs.as_array().tobytes()


def test_what_kinematics_holds() -> None:
    """A Kinematics has the scene, a read-only q, and one row of seven numbers a frame."""
    scene, q = odd_scene(), np.array([0.1, 0.2, 0.3])
    at = scene.at(q)
    q[0] = 9.0
    assert at.scene == scene
    assert at.q.tolist() == [0.1, 0.2, 0.3]
    assert at.poses.shape == (len(scene), 7)
    assert at.poses[scene.frame_names.index("spin")].tolist() == at.pose("spin").as_array().tolist()
    assert at.jacobian("loose").shape == (6, 3)
    for array in (at.q, at.poses, at.jacobian("loose")):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    assert repr(at) == "Kinematics(9 frames, 3 joints)"
    with pytest.raises(AttributeError):
        at.q = q  # type: ignore[misc]  # that it fails is the test


def test_a_scene_without_joints_needs_no_configuration() -> None:
    """Scenes without joints, even empty ones, are at their only configuration."""
    assert SceneGraph().add_frame("a", "world", pose=Pose([1, 0, 0])).at().pose("a") == Pose(
        [1, 0, 0]
    )
    empty = SceneGraph(root=None).at()
    assert empty.poses.shape == (0, 7)
    assert empty.q.shape == (0,)
    assert SceneGraph().at([]).jacobian("world").shape == (6, 0)


def test_edges_without_joints_need_no_configuration() -> None:
    """A pose along fixed and free edges needs no q; otherwise the error names the joint."""
    scene = odd_scene()
    assert scene.pose("still", relative_to="slide") == scene.local_pose("still")
    assert scene.pose("loose", relative_to="copied") == scene.local_pose("loose")
    with pytest.raises(
        ConfigurationError, match="joint 'spin' is on the path, so a configuration q is needed"
    ) as caught:
        scene.pose("spin", relative_to="still")
    assert caught.value.joint == "spin"


def test_invalid_arguments_raise_errors() -> None:
    """Wrong lengths, non-finite numbers, unknown names and other trees raise errors."""
    scene = odd_scene().add_root("elsewhere")
    with pytest.raises(
        ConfigurationError, match=r"this scene has 3 joints, so at\(\) needs a configuration q"
    ):
        scene.at()
    with pytest.raises(
        ConfigurationError, match=r"3 numbers, but has shape \(4,\); write .*joint_names, or"
    ) as caught:
        scene.at(np.zeros(4))
    assert (caught.value.expected, caught.value.received) == (3, 4)
    with pytest.raises(ConfigurationError, match="q holds nan"):
        scene.pose("spin", relative_to="world", q=[0, 0, np.nan])
    at = scene.at([0, 0, 0])
    for call in (at.pose, at.jacobian):
        with pytest.raises(UnknownNameError, match="unknown frame 'spim'; did you mean 'spin'"):
            call("spim")
    with pytest.raises(UnknownNameError, match="unknown frame 'nowhere'"):
        at.pose("spin", relative_to="nowhere")
    with pytest.raises(
        DisconnectedError, match=r"'spin' and 'elsewhere' are in different trees \('world' and"
    ) as lost:
        at.pose("spin", relative_to="elsewhere")
    assert (lost.value.frame, lost.value.relative_to) == ("spin", "elsewhere")
    assert at.pose("elsewhere") == Pose()


@settings(max_examples=scaled_examples(0.5))
@given(_seeds)
def test_poses_of_frames_are_those_of_single_queries(seed: int) -> None:
    """Rows have the bits of ``pose``: of siblings, repeated frames, roots and references."""
    rng = np.random.default_rng(seed)
    scene = SceneGraph("world").add_root("other")
    for number in range(12):
        parent = str(rng.choice(scene.frame_names)) if number < 6 else f"f{rng.integers(3)}"
        joint = Revolute(rng.normal(size=3), name=f"j{number}") if rng.random() < 0.4 else Free()
        pose = Pose.exp(rng.normal(size=6))
        scene = scene.add_frame(f"f{number}", parent, pose=pose, joint=joint)
    q = rng.normal(size=len(scene.joint_names))
    reference = str(rng.choice(scene.frame_names))
    tree = [name for name in scene.frame_names if scene.root(name) == scene.root(reference)]
    for names, relative_to in ((tree, reference), ([*scene.frame_names], None)):
        frames = [str(name) for name in rng.choice(names, size=rng.integers(25))]
        rows = scene.poses(frames, relative_to=relative_to, q=q)
        assert rows.shape == (len(frames), 7)
        expected = [scene.pose(name, relative_to=relative_to, q=q).as_array() for name in frames]
        assert rows.tobytes() == np.array(expected).tobytes()


def test_poses_of_frames_reject_bad_arguments() -> None:
    """Unknown frames, other trees, missing configurations, and a name in place of names."""
    scene = SceneGraph().add_root("other").add_frame("arm", "world", joint=Revolute([0, 0, 1]))
    scene = scene.add_frame("cup", "world")
    assert not scene.poses(["cup"]).flags.writeable
    assert scene.poses(scene.frames_of_class("movable")).shape == (0, 7)
    with pytest.raises(UnknownNameError, match=r"unknown frame 'cap'.*did you mean 'cup'"):
        scene.poses(["arm", "cap"], q=[0.0])
    with pytest.raises(UnknownNameError, match="unknown frame 'wurld'"):
        scene.poses(["cup"], relative_to="wurld")
    with pytest.raises(DisconnectedError, match=r"'cup'.*'other'"):
        scene.poses(["other", "cup"], relative_to="other")
    with pytest.raises(ConfigurationError, match="joint 'arm' is on the path"):
        scene.poses(["cup", "arm"])
    with pytest.raises(TypeError, match=r"must be a sequence of strings, not a str .'cup'."):
        scene.poses("cup")
