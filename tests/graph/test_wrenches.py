"""Force-torque sensors: bias per rigid group and payload, against pinocchio and numpy."""

from __future__ import annotations

import numpy as np
import pinocchio
import pytest
from support.urdf_comparison import example_robot_data

import tmkit as tk
from tmkit.errors import ConfigurationError, SceneError, UnknownNameError
from tmkit.formats import scene_from_dict, scene_to_dict
from tmkit.graph import (
    Inertia,
    Revolute,
    SceneArrays,
    SceneGraph,
    payload_wrench,
    set_wrench_bias,
    transport,
    wrench,
)
from tmkit.graph.semantic_edges.wrenches import wrench_bias
from tmkit.relations import SemanticError, SemanticWrench, WrenchCoord
from tmkit.relations.representations import WrenchVector
from tmkit.spatial import Pose

DOWN = np.array([0.0, 0.0, -9.81])


def _scene(rng: np.random.Generator) -> tuple[SceneGraph, np.ndarray, np.ndarray]:
    """Return an arm with a sensor, a tool and a gripper; q; and 4x4 world_from_sensor."""
    pose = {
        name: Pose.exp(rng.normal(size=6)) for name in ("arm", "sensor", "tool", "finger", "cup")
    }
    scene = SceneGraph("world").add_frame(
        "arm", "world", joint=Revolute([0, 1, 0]), pose=pose["arm"]
    )
    scene = scene.add_frame("sensor", "arm", pose=pose["sensor"]).add_frame(
        "tool", "sensor", pose=pose["tool"]
    )
    scene = scene.add_frame("finger", "tool", pose=pose["finger"], joint=Revolute([1, 0, 0]))
    scene = scene.add_frame("cup", "world", pose=pose["cup"])
    for name, mass in (("arm", 3.0), ("tool", 0.8), ("finger", 0.2), ("cup", 0.5)):
        scene = scene.set_inertia(name, Inertia(mass, rng.normal(size=3), matrix=mass * np.eye(3)))
    q = rng.uniform(-1.0, 1.0, 2)
    return scene, q, scene.pose("sensor", q=q).as_matrix()


@pytest.mark.parametrize("seed", range(5))
def test_a_reading_is_the_touch_and_the_weight_and_the_bias(seed: int) -> None:
    """The contact wrench follows from the reading, for any payload and pose."""
    rng = np.random.default_rng(seed)
    scene, q, sensor = _scene(rng)
    scene = set_wrench_bias(
        scene.reparent("cup", "tool", q=q), "sensor", bias := rng.normal(size=6)
    )
    force, at_tool = rng.normal(size=(2, 3))
    torque = np.zeros(3)  # all in the world, about the sensor's origin
    pulls = [(scene.pose("tool", q=q).as_matrix()[:3, 3], scene.pose("tool", q=q).rotate(force))]
    for name, mass in (("tool", 0.8), ("finger", 0.2), ("cup", 0.5)):
        pulls.append(
            (scene.pose(name, q=q).apply(scene.specification(name).inertia.center), mass * DOWN)
        )
    for place, pull in pulls:
        torque = torque + np.cross(place - sensor[:3, 3], pull)
    torque = torque + scene.pose("tool", q=q).rotate(at_tool)
    reading = (
        np.concatenate(
            [sensor[:3, :3].T @ sum(pull for _, pull in pulls), sensor[:3, :3].T @ torque]
        )
        + bias
    )
    found = wrench(scene, "sensor", reading, at="tool", axes="tool", gravity=DOWN, q=q)
    assert found.coord == WrenchCoord("tool|tool", "world", "[tool]")
    np.testing.assert_allclose(np.concatenate(found.numbers), [*force, *at_tool], atol=1e-12)
    many = wrench(
        scene.at(q), "sensor", np.tile(reading, (3, 1)), at="tool", axes="tool", gravity=DOWN
    )
    np.testing.assert_allclose(np.concatenate(many[1].numbers), [*force, *at_tool], atol=1e-12)
    raw = wrench(scene, "sensor", reading)
    np.testing.assert_allclose(np.concatenate(raw.numbers), reading - bias, atol=1e-15)


@pytest.mark.parametrize(("robot", "joint"), [("panda", "panda_joint5"), ("baxter", "left_w0")])
def test_the_weight_is_that_of_pinocchio(robot: str, joint: str) -> None:
    """The weight at a joint's frame equals that of pinocchio's inertias."""
    path = str(example_robot_data() / f"{robot}_description/urdf/{robot}.urdf")
    scene, model = (
        tk.load_scene(path, reading=tk.ReadingOptions(meshes="skip")),
        pinocchio.buildModelFromUrdf(path),
    )
    data, q = (
        model.createData(),
        np.random.default_rng(1).uniform(-1.0, 1.0, len(scene.joint_names)),
    )
    theirs = pinocchio.neutral(model)
    for name in model.names[1:]:
        rule = next(
            (scene.joint(f).mimic for f in scene.frame_names if scene.joint(f).name == name), None
        )
        value = q[scene.joint_names.index(rule.joint if rule else name)]
        theirs[model.joints[model.getJointId(name)].idx_q] = (
            rule.multiplier * value + rule.offset if rule else value
        )
    pinocchio.forwardKinematics(model, data, theirs)
    top = model.getJointId(joint)
    expected = pinocchio.Force.Zero()
    for below in model.subtrees[top]:
        own = model.inertias[below]
        weight = own.mass * data.oMi[below].rotation.T @ DOWN
        pull = pinocchio.Force(weight, np.cross(own.lever, weight))
        expected += data.oMi[top].actInv(data.oMi[below].act(pull))
    ours = payload_wrench(scene, scene.joint_frame(joint), gravity=DOWN, q=q)
    np.testing.assert_allclose(np.concatenate(ours.numbers), expected.vector, atol=1e-10)


def test_biases_add_up_in_a_group_and_go_with_it() -> None:
    """As masses do: over fixed edges, through a tool change, in JSON and in arrays."""
    rng = np.random.default_rng(3)
    scene, q, _ = _scene(rng)
    a, b = rng.normal(size=(2, 6))
    scene = set_wrench_bias(set_wrench_bias(scene, "sensor", a), "tool", b)
    pose = scene.pose("tool", relative_to="sensor").as_matrix()
    force, torque = pose[:3, :3] @ b[:3], pose[:3, :3] @ b[3:]
    expected = a + np.concatenate([force, torque + np.cross(pose[:3, 3], force)])
    np.testing.assert_allclose(
        np.concatenate(wrench_bias(scene, "sensor").numbers), expected, atol=1e-14
    )
    at_tool = transport(scene, wrench_bias(scene, "sensor"), point="tool", axes="tool")
    np.testing.assert_allclose(
        np.concatenate(wrench_bias(scene, "tool").numbers), np.concatenate(at_tool.numbers)
    )
    assert not np.any(wrench_bias(scene, "finger").numbers)  # beyond a joint
    changed = scene.reparent("tool", "world", q=q)  # a tool change takes its own bias along
    np.testing.assert_allclose(np.concatenate(wrench_bias(changed, "sensor").numbers), a)
    np.testing.assert_allclose(np.concatenate(wrench_bias(changed, "tool").numbers), b)
    assert scene_from_dict(scene_to_dict(scene)) == scene == SceneArrays(scene).freeze()
    assert (
        set_wrench_bias(set_wrench_bias(scene, "sensor", None), "tool", None)
        == _scene(np.random.default_rng(3))[0]
    )


def test_a_bias_may_be_given_elsewhere_and_covariances_stay() -> None:
    """A wrench says about which point and in which axes it is."""
    rng = np.random.default_rng(5)
    scene, _, _ = _scene(rng)
    covariance = np.diag([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    told = SemanticWrench(
        WrenchCoord("tool|tool", "world", "[tool]"), rng.normal(size=6), covariance=covariance
    )
    biased = set_wrench_bias(scene, "sensor", told)
    np.testing.assert_allclose(
        np.concatenate(wrench_bias(biased, "tool").numbers),
        np.concatenate(told.numbers),
        atol=1e-12,
    )
    left = wrench(biased, "sensor", told, at="tool", axes="tool")
    np.testing.assert_allclose(np.concatenate(left.numbers), 0.0, atol=1e-12)
    assert left.covariance is not None
    np.testing.assert_allclose(left.covariance, covariance, atol=1e-9)


def test_invalid_wrenches_raise_errors() -> None:
    """By the name of what is wrong."""
    scene, q, _ = _scene(np.random.default_rng(0))
    with pytest.raises(SemanticError, match=r"shape \(3,\)"):
        set_wrench_bias(scene, "sensor", [1, 2, 3])
    with pytest.raises(SemanticError, match="one wrench"):
        set_wrench_bias(scene, "sensor", np.zeros((2, 6)))
    with pytest.raises(UnknownNameError, match="did you mean 'sensor'"):
        set_wrench_bias(scene, "sensro", np.zeros(6))
    with pytest.raises(SemanticError, match="'finger' is not fixed"):
        wrench(scene, "sensor", np.zeros(6), at="finger")
    with pytest.raises(ConfigurationError):
        wrench(scene, "sensor", np.zeros(6), gravity=DOWN)
    with pytest.raises(SceneError, match="gravity must be three finite numbers"):
        wrench(scene, "sensor", np.zeros(6), gravity=[9.81], q=q)
    assert wrench(scene, "sensor", WrenchVector.of_parts([1, 0, 0], [0, 0, 2])).numbers[1][2] == 2.0
