"""Accelerations and momenta against pinocchio and finite differences."""

from __future__ import annotations

import itertools

import numpy as np
import pinocchio
import pytest
from support.urdf_comparison import example_robot_data

import tmkit as tk
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.graph import (
    Expression,
    Free,
    Revolute,
    SceneGraph,
    acceleration,
    classical_acceleration,
    joints_between,
    momentum,
    twist,
)
from tmkit.relations import SemanticError
from tmkit.spatial import Pose

ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", "panda_hand"),
    "baxter": ("baxter_description/urdf/baxter.urdf", "left_gripper"),
    "talos": ("talos_data/robots/talos_reduced.urdf", "gripper_left_base_link"),
}


@pytest.mark.parametrize(("robot", "moves"), [*itertools.product(ROBOTS, (False, True))])
def test_it_agrees_with_pinocchio(robot: str, moves: bool) -> None:
    """Accelerations, momentum and energy of a robot equal those of pinocchio to 1e-10."""
    file, tip = ROBOTS[robot]
    path = str(example_robot_data() / file)
    scene = tk.load_scene(path, reading=tk.ReadingOptions(meshes="skip"))
    model = pinocchio.buildModelFromUrdf(
        path, *([pinocchio.JointModelFreeFlyer()] if moves else [])
    )
    root, rng, data = scene.root(tip), np.random.default_rng(7), model.createData()
    order = [name for name in model.names[1:] if name in scene.joint_names]
    index = [scene.joint_names.index(name) for name in order]
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, len(scene.joint_names)))
    place, base = Pose.exp(rng.normal(size=6)), rng.normal(size=6)
    if moves:
        scene = SceneGraph("ground").mount(scene, "ground", pose=place, joint=Free())
        scene = scene.set_twist(root, base, relative_to_body="ground")
        root = "ground"
    theirs, velocity, rate = pinocchio.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    for name, k in zip(order, index, strict=True):
        joint = model.joints[model.getJointId(name)]
        theirs[joint.idx_q : joint.idx_q + joint.nq] = (
            [np.cos(q[k]), np.sin(q[k])] if joint.nq == 2 else [q[k]]
        )
        velocity[joint.idx_v], rate[joint.idx_v] = qd[k], qdd[k]
    mimics = [n for n in model.names[1:] if n not in scene.joint_names and n != "root_joint"]
    for name in mimics:
        value, speed = _mimicked(scene, name, q), _mimicked(scene, name, qd, is_rate=True)
        joint = model.joints[model.getJointId(name)]
        theirs[joint.idx_q], velocity[joint.idx_v] = value, speed
        rate[joint.idx_v] = _mimicked(scene, name, qdd, is_rate=True)
    if moves:
        theirs[:7], velocity[:6] = [*place.translation, *place.quat_xyzw], base
    pinocchio.forwardKinematics(model, data, theirs, velocity, rate)
    pinocchio.updateFramePlacements(model, data)
    frames = [
        f
        for f in (tip, *(str(f) for f in rng.choice(scene.frame_names, 8)))
        if model.existFrame(f, pinocchio.FrameType.BODY)
    ]
    for frame in frames:
        number = model.getFrameId(frame, pinocchio.FrameType.BODY)
        for kind, at, axes in (
            (pinocchio.LOCAL, frame, frame),
            (pinocchio.LOCAL_WORLD_ALIGNED, frame, root),
            (pinocchio.WORLD, root, root),
        ):
            found = acceleration(
                scene, frame, q=q, qd=qd, qdd=qdd, expression=Expression(at=at, axes=axes)
            )
            expected = pinocchio.getFrameAcceleration(model, data, number, kind).vector
            np.testing.assert_allclose(found, expected, atol=1e-10 * (1 + np.abs(expected).max()))
        found = classical_acceleration(
            scene, frame, q=q, qd=qd, qdd=qdd, expression=Expression(axes=frame)
        )
        expected = pinocchio.getFrameClassicalAcceleration(
            model, data, number, pinocchio.LOCAL
        ).vector
        np.testing.assert_allclose(found, expected, atol=1e-10 * (1 + np.abs(expected).max()))
    pinocchio.computeCentroidalMomentum(model, data, theirs, velocity)
    total, energy = momentum(scene, root, q=q, qd=qd)
    about = np.concatenate([total[:3], total[3:] - np.cross(data.com[0], total[:3])])
    fixed = model.inertias[0].mass  # what does not move has no momentum, and no part in pinocchio's
    assert fixed >= 0.0
    if moves or fixed == 0.0:
        np.testing.assert_allclose(about, data.hg.vector, atol=1e-10 * (1 + np.abs(total).max()))
    np.testing.assert_allclose(
        total[:3], data.hg.vector[:3], atol=1e-10 * (1 + np.abs(total).max())
    )
    assert energy == pytest.approx(
        pinocchio.computeKineticEnergy(model, data, theirs, velocity), rel=1e-10
    )


def _mimicked(scene: SceneGraph, name: str, values: np.ndarray, *, is_rate: bool = False) -> float:
    """Return the value of a joint that mimics another."""
    frame = next((f for f in scene.frame_names if scene.joint(f).name == name), None)
    if frame is None or scene.joint(frame).mimic is None:
        return 0.0
    rule = scene.joint(frame).mimic
    leader = float(values[scene.joint_names.index(rule.joint)])
    return rule.multiplier * leader + (0.0 if is_rate else rule.offset)


def test_it_is_how_the_twist_changes() -> None:
    """Accelerations between moving frames equal finite differences of twists in fixed axes."""
    rng = np.random.default_rng(11)
    scene = tk.load_scene("baxter_trays")
    count = len(scene.joint_names)
    for _ in range(5):
        q, qd, qdd = rng.uniform(-0.5, 0.5, count), rng.normal(size=count), rng.normal(size=count)
        for frame, reference in (("left_gripper", "right_gripper"), ("left_gripper", "world")):
            step, found = 1e-6, []
            for sign in (-1, 1):
                then = q + sign * step * qd + 0.5 * step**2 * qdd
                now = qd + sign * step * qdd
                moving = twist(
                    scene,
                    frame,
                    relative_to=reference,
                    q=then,
                    qd=now,
                    expression=Expression(at=reference, axes=reference),
                )
                found.append(np.concatenate(moving.numbers))
            expected = (found[1] - found[0]) / (2 * step)
            ours = acceleration(
                scene,
                frame,
                relative_to=reference,
                q=q,
                qd=qd,
                qdd=qdd,
                expression=Expression(at=reference, axes=reference),
            )
            np.testing.assert_allclose(ours, expected, atol=1e-5 * (1 + np.abs(expected).max()))


def test_a_point_on_a_wheel() -> None:
    """At constant rotation the classical acceleration is centripetal, the spatial one zero."""
    scene = SceneGraph("world").add_frame("wheel", "world", joint=Revolute([0, 0, 1]))
    scene = scene.add_frame("rim", "wheel", pose=Pose([0.5, 0, 0]))
    given = {"q": [0.0], "qd": [2.0], "qdd": [0.0]}
    np.testing.assert_allclose(
        classical_acceleration(scene, "rim", **given), [-2, 0, 0, 0, 0, 0], atol=1e-15
    )
    np.testing.assert_allclose(acceleration(scene, "rim", **given), np.zeros(6), atol=1e-15)
    faster = acceleration(scene, "rim", q=[0.0], qd=[0.0], qdd=[3.0])
    np.testing.assert_allclose(faster, [0, 1.5, 0, 0, 0, 3], atol=1e-15)
    total, energy = momentum(
        scene.set_inertia("rim", tk.graph.Inertia(2.0)), "world", q=[0.0], qd=[2.0]
    )
    np.testing.assert_allclose(total, [0, 2, 0, 0, 0, 1], atol=1e-15)
    assert energy == pytest.approx(1.0)


def test_what_has_no_acceleration() -> None:
    """Unknown names and edges without a stated motion raise errors."""
    scene = (
        SceneGraph("world")
        .add_frame("cart", "world", joint=Free())
        .add_frame("tray", "cart", joint=Free())
    )
    with pytest.raises(UnknownNameError, match="did you mean 'cart'"):
        acceleration(scene, "carrt", q=[], qd=[], qdd=[])
    for call in (
        lambda: acceleration(scene, "tray", q=[], qd=[1.0], qdd=[]),
        lambda: momentum(scene, "tray", q=[], qd=[1.0]),
        lambda: tk.graph.twist(scene, "tray", qd=[1.0]),
        lambda: tk.graph.integrate(scene, 0.1, q=[], qd=[1.0]),
    ):
        with pytest.raises(
            ConfigurationError, match=r"qd must hold 0 numbers, but has shape \(1,\)"
        ):
            call()
    with pytest.raises(ConfigurationError, match="qdd must hold 0 numbers"):
        acceleration(scene, "tray", q=[], qd=[], qdd=[1.0])
    over_two = scene.set_twist("tray", np.ones(6), relative_to_body="world")
    np.testing.assert_allclose(acceleration(over_two, "tray", q=[], qd=[], qdd=[]), 0.0, atol=1e-15)
    with pytest.raises(SemanticError, match=r"nor do poses|a path of twists"):
        acceleration(over_two, "cart", q=[], qd=[], qdd=[])
    with pytest.raises(SemanticError, match=r"a path of (poses|twists)"):
        momentum(over_two.set_inertia("cart", tk.graph.Inertia(1.0)), "cart", q=[], qd=[])
    assert joints_between(scene, "world", "tray") == ()


def test_several_twists_over_one_edge() -> None:
    """A twist relative to a turning cart changes as integration predicts."""
    scene = (
        SceneGraph().add_frame("cart", "world").add_frame("pan", "cart", joint=Revolute([0, 0, 1]))
    )
    scene = scene.add_frame("ball", "world", pose=Pose([3, 0, 0])).add_frame(
        "eye", "cart", pose=Pose([1, 0, 1])
    )
    scene = scene.add_frame("arm", "ball", joint=Revolute([0, 1, 0]), pose=Pose([0.1, 0.2, 0]))
    scene = scene.set_twist("cart", [1, 0.2, 0, 0, 0.1, 1], relative_to_body="world")
    scene = scene.set_twist("ball", [0.5, 0, 0.1, 0.2, 0, 0.3], relative_to_body="cart")
    q, qd, qdd, step = np.array([0.2, 0.3]), np.array([0.7, -0.4]), np.array([0.3, 0.5]), 1e-4
    for frame in ("ball", "arm", "pan", "eye"):
        ends = []
        for h in (step, -step):
            then, values = tk.graph.integrate(scene, h, q=q, qd=qd)
            options = {"q": values + 0.5 * h * h * qdd, "qd": qd + h * qdd}
            ends.append(
                np.concatenate(
                    twist(
                        then, frame, expression=Expression(at="world", axes="world"), **options
                    ).numbers
                )
            )
        found = acceleration(
            scene, frame, q=q, qd=qd, qdd=qdd, expression=Expression(at="world", axes="world")
        )
        np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2 * step), atol=1e-7)
