"""Relations in time: joint velocities, integration of twists, and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

import tmkit as tk
from tmkit.errors import ConfigurationError, DisconnectedError, SceneError, UnknownNameError
from tmkit.graph import Revolute, SceneGraph, add_pose, add_twist, integrate, relate
from tmkit.graph.semantic_edges.edges import update_twist
from tmkit.graph.semantic_edges.integration import finite_difference
from tmkit.relations import (
    AngularVelocityCoord,
    LinearVelocityCoord,
    PoseCoord,
    SemanticError,
    SemanticPose,
    SemanticTwist,
    TwistCoord,
)
from tmkit.relations.representations import (
    InstantaneousScrewAxis,
    TwistVector,
    VectorAndRotationVector,
    WrenchVector,
)
from tmkit.spatial import Pose

NUMBER = st.integers(-1_000_000, 1_000_000).map(lambda number: number / 1e6)
SIX = st.lists(NUMBER, min_size=6, max_size=6).map(np.array)


def carried() -> SceneGraph:
    """Return a tray on a base, a cup on the tray with a handle, and a lamp on a wall of its own."""
    scene = SceneGraph(root=None).add_body("Base").add_frame("base", body="Base")
    scene = scene.add_body("Tray").add_body("Cup")
    scene = scene.add_frame(
        "tray", "base", pose=Pose.from_rpy([0.1, 0.2, 0.3], [0.5, 0.4, 0.3]), body="Tray"
    )
    scene = scene.add_frame(
        "cup", "tray", pose=Pose.from_rpy([0.3, 0.2, 0.1], [0.0, 0.4, -0.3]), body="Cup"
    )
    scene = scene.add_frame(
        "handle", "cup", pose=Pose.from_rpy([0.05, 0, 0], [0.2, 0, 0]), body="Cup"
    )
    return (
        scene.add_body("Wall")
        .add_frame("wall", body="Wall")
        .add_frame("lamp", "wall", pose=Pose([0, 0, 2]))
    )


# --- joints


def test_twists_of_joints_are_differences_of_poses() -> None:
    """Between any two frames, in any axes; without a reference relative to the root."""
    scene = tk.load_scene("panda_table")
    rng = np.random.default_rng(5)
    q, qd = rng.uniform(-1, 1, len(scene.joint_names)), rng.uniform(-1, 1, len(scene.joint_names))
    at, step = scene.at(q, qd), 1e-6
    np.testing.assert_array_equal(at.qd, qd)
    for target, reference in (
        ("panda_hand", "panda_link3"),
        ("panda_link2", "panda_hand"),
        ("panda_hand", "world"),
    ):
        before, after = (
            scene.pose(target, relative_to=reference, q=q + sign * step * qd) for sign in (-1, 1)
        )
        linear = (after.translation - before.translation) / (2 * step)
        turned = (after.rotation @ before.rotation.T - np.eye(3)) / (2 * step)
        found = at.twist(target, relative_to=reference)
        np.testing.assert_allclose(found[:3], linear, atol=1e-6)
        np.testing.assert_allclose(found[3:], [turned[2, 1], turned[0, 2], turned[1, 0]], atol=1e-5)
        own = at.twist(target, relative_to=reference, axes=target)
        axes = scene.pose(reference, relative_to=target, q=q)
        np.testing.assert_allclose(
            own, [*axes.rotate(found[:3]), *axes.rotate(found[3:])], atol=1e-12
        )
    np.testing.assert_allclose(at.twist("panda_hand"), at.twist("panda_hand", relative_to="world"))
    np.testing.assert_allclose(at.twist("panda_hand"), at.jacobian("panda_hand") @ qd, atol=1e-12)


def test_what_joints_cannot_say() -> None:
    """Velocities are missing, too few, or there is no path."""
    scene = tk.load_scene("panda_table").add_root("elsewhere")
    q = scene.zero_configuration()
    assert scene.at(q).qd is None
    with pytest.raises(
        ConfigurationError, match=r"needs the velocities of the joints: scene.at\(q, qd\)"
    ):
        scene.at(q).twist("panda_hand")
    with pytest.raises(ConfigurationError, match="qd must hold"):
        scene.at(q, [1.0])
    with pytest.raises(DisconnectedError):
        scene.at(q, q).twist("panda_hand", relative_to="elsewhere")
    with pytest.raises(UnknownNameError, match="panda_hand"):
        scene.at(q, q).twist("panda_hnd")


def test_relations_at_a_configuration() -> None:
    """A scene at q and qd returns poses and the velocities of its joints."""
    scene = SceneGraph(root=None).add_body("Base").add_body("Link").add_root("base", body="Base")
    scene = scene.add_frame(
        "link", "base", pose=Pose([0, 0, 0.5]), joint=Revolute([0, 0, 1]), body="Link"
    )
    scene = scene.add_frame("tool", "link", pose=Pose([0.3, 0, 0]), body="Link")
    at = scene.at([0.0], [2.0])
    twist = relate(at, TwistCoord("tool|Link", "Base", "[base]"))
    np.testing.assert_allclose(np.concatenate(twist.numbers), [0, 0.6, 0, 0, 0, 2.0], atol=1e-12)
    velocity = relate(at, LinearVelocityCoord("tool|Link", "Base", "[base]"))
    np.testing.assert_allclose(velocity.numbers[0], [0, 0.6, 0], atol=1e-12)
    np.testing.assert_allclose(
        relate(at, AngularVelocityCoord("Link", "Base", "[tool]")).numbers[0], [0, 0, 2.0]
    )
    # the point of the link that is where the base is, for the instant: it lies on the axis
    screw = relate(at, TwistCoord("base|Link", "Base", "[base]"))
    np.testing.assert_allclose(np.concatenate(screw.numbers), [0, 0, 0, 0, 0, 2.0], atol=1e-12)
    pose = relate(at, PoseCoord("{tool}|Link", "{base}|Base", "[base]"))
    np.testing.assert_allclose(pose.numbers[0], [0.3, 0, 0.5])


# --- points and axes


@given(SIX)
@settings(max_examples=scaled_examples(0.3))
def test_twists_at_any_point_lead_to_one_edge(six: Any) -> None:
    """A twist at another frame of the body, or of the reference, gives the same edge."""
    scene = add_twist(carried(), SemanticTwist(TwistCoord("cup|Cup", "Base", "[cup]"), six))
    for coord in (
        TwistCoord("handle|Cup", "Base", "[tray]"),
        TwistCoord("base|Cup", "Base", "[base]"),
        TwistCoord("base|Cup", "Base", "[handle]"),
    ):
        again = add_twist(carried(), relate(scene, coord), frame="cup")
        np.testing.assert_allclose(again.twist_edge("cup")[1], six, atol=1e-12)  # type: ignore[index]
        changed = update_twist(again, relate(scene, coord), frame="cup")
        np.testing.assert_allclose(changed.twist_edge("cup")[1], six, atol=1e-12)  # type: ignore[index]
    inverse = relate(scene, TwistCoord("cup|Cup", "Base", "[tray]")).inverse()
    np.testing.assert_allclose(
        np.concatenate(relate(scene, inverse.coord).numbers),
        np.concatenate(inverse.numbers),
        atol=1e-12,
    )


def test_the_frame_of_an_edge_is_on_the_body_that_moves() -> None:
    """A frame of another body is rejected; a point of the reference body needs a frame."""
    scene = carried()
    twist = SemanticTwist(TwistCoord("cup|Cup", "Base", "[cup]"), np.ones(6))
    with pytest.raises(SemanticError, match="frame 'tray' is on body 'Tray' and body 'Cup' moves"):
        add_twist(scene, twist, frame="tray")
    screw = SemanticTwist(TwistCoord("base|Cup", "Base", "[base]"), np.ones(6))
    with pytest.raises(SemanticError, match="name the frame with frame="):
        add_twist(scene, screw)
    with pytest.raises(
        SemanticError, match="frame 'tray' is on body 'Tray' and body 'Cup' is named"
    ):
        relate(scene, TwistCoord("tray|Cup", "Base", "[cup]"))


def test_twists_that_poses_do_not_join_are_told_so() -> None:
    """A path of twists is of no use where its frames and the point stand in different trees."""
    scene = (
        carried()
        .add_frame("cup2", body="Cup")
        .set_twist("cup", np.ones(6), relative_to_body="Base")
    )
    with pytest.raises(
        SemanticError, match="there is one, but poses do not join its frames to 'cup2'"
    ):
        relate(scene, TwistCoord("cup2|Cup", "Base", "[cup2]"))
    spin = relate(scene, AngularVelocityCoord("Cup", "Base", "[cup]"))
    np.testing.assert_allclose(spin.numbers[0], [1, 1, 1])


def test_a_pose_in_any_axes() -> None:
    """In other axes than the reference's, a rotation vector represents the rotation."""
    scene = carried()
    coord = PoseCoord("(handle,[cup])|Cup", "(tray,[tray])|Tray", "[base]")
    found = relate(scene, coord)
    assert isinstance(found.representation, VectorAndRotationVector)
    whole = PoseCoord("{cup}|Cup", "{tray}|Tray", "[tray]")
    expected = scene.pose("cup", relative_to="tray")
    apart = add_pose(scene, SemanticPose(whole, Pose()))
    np.testing.assert_allclose(relate(scene, whole).numbers[0], expected.translation)
    again = add_pose(apart, relate(scene, PoseCoord("{cup}|Cup", "{tray}|Tray", "[base]")))
    assert again.pose("cup", relative_to="tray").is_close(expected)


# --- time


@given(SIX, SIX, st.floats(0.01, 1.0))
@settings(max_examples=scaled_examples(0.3))
def test_two_versions_give_the_twists_that_led_from_one_to_the_other(
    tray: Any, cup: Any, dt: float
) -> None:
    """What twists do in a time gives them back, and to first order the pose moves by them."""
    scene = (
        carried()
        .set_twist("tray", tray, relative_to_body="Base")
        .set_twist("cup", cup, relative_to_body="Tray")
    )
    later = integrate(scene, dt)
    back = finite_difference(scene, later, dt)
    for frame, six in (("tray", tray), ("cup", cup)):
        np.testing.assert_allclose(back.twist_edge(frame)[1], six, atol=1e-9)  # type: ignore[index]
        assert later.local_pose(frame).is_close(scene.local_pose(frame) @ Pose.exp(six * dt))
    assert later.local_pose("handle") == scene.local_pose("handle")
    assert (
        integrate(scene, 0.0)
        .pose("cup", relative_to="base")
        .is_close(scene.pose("cup", relative_to="base"))
    )
    small = 1e-6
    moved = integrate(scene, small)
    velocity = relate(scene, LinearVelocityCoord("handle|Cup", "Base", "[base]")).numbers[0]
    step = (
        moved.pose("handle", relative_to="base").translation
        - scene.pose("handle", relative_to="base").translation
    )
    np.testing.assert_allclose(step / small, velocity, atol=1e-4)


def test_twists_move_the_edge_between_bodies() -> None:
    """A twist on a lower frame moves its whole body, also as the inverse twist."""
    six = np.array([0.1, 0.2, -0.1, 0.3, -0.2, 0.4])
    on_handle = carried().set_twist("handle", six, relative_to_body="Tray")
    moved = integrate(on_handle, 0.5)
    turned = on_handle.local_pose("handle")
    expected = on_handle.pose("handle", relative_to="tray") @ Pose.exp(six * 0.5)
    assert moved.pose("handle", relative_to="tray").is_close(expected)
    assert moved.local_pose("handle") == turned
    reverse = carried().set_twist("tray", six, relative_to_body="Cup")
    assert (
        integrate(reverse, 0.5)
        .pose("tray", relative_to="cup")
        .is_close(reverse.pose("tray", relative_to="cup") @ Pose.exp(six * 0.5))
    )
    assert integrate(carried(), 0.5) is not None
    with pytest.raises(
        SemanticError, match="poses join frame 'cup' to body 'Wall', as its twist requires"
    ):
        integrate(carried().set_twist("cup", six, relative_to_body="Wall"), 0.5)
    # which of the two edges between moves?
    with pytest.raises(SemanticError, match="a path of twists leads"):
        integrate(carried().set_twist("cup", six, relative_to_body="Base"), 0.5)


def test_invalid_finite_differences_raise_errors() -> None:
    """Another parent, a root, a joint, a frame that is new, and no time."""
    scene = carried()
    moved = scene.set_pose("cup", Pose([0.4, 0, 0]))
    with pytest.raises(SceneError, match="has parent 'base', and had parent 'tray' before"):
        finite_difference(scene, scene.reparent("cup", "base"), 1.0, frames=["cup"])
    with pytest.raises(SceneError, match="is a root"):
        finite_difference(scene, moved, 1.0, frames=["base"])
    with pytest.raises(UnknownNameError, match="saucer"):
        finite_difference(scene, moved.add_frame("saucer", "tray"), 1.0, frames=["saucer"])
    with pytest.raises(SemanticError, match="the time between the two is not zero"):
        finite_difference(scene, moved, 0.0)
    jointed = scene.add_body("Lid").add_frame(
        "lid", "cup", joint=Revolute([0, 0, 1], name="hinge"), body="Lid"
    )
    with pytest.raises(SceneError, match="moves by joint 'hinge', whose velocity gives its twist"):
        finite_difference(jointed, jointed, 1.0, frames=["lid"])
    with pytest.raises(SceneError, match="has a twist relative to body 'Base' already"):
        finite_difference(scene, moved.set_twist("cup", np.zeros(6), relative_to_body="Base"), 1.0)
    rested = finite_difference(scene, moved, 1.0, frames=["tray", "cup"])
    np.testing.assert_array_equal(rested.twist_edge("tray")[1], np.zeros(6))  # type: ignore[index]


def test_times_and_numbers_with_units() -> None:
    """Quantities are converted on the way in, times too."""
    unit = pytest.importorskip("pint").UnitRegistry()
    scene = carried().set_twist("tray", [0.1, 0, 0, 0, 0, 0.2], relative_to_body="Base")
    assert integrate(scene, 500 * unit.ms) == integrate(scene, 0.5)
    with pytest.raises(SemanticError, match=r"time: it is a time in s .a quantity in meter of dim"):
        integrate(scene, 3 * unit.metre)
    parts = TwistVector.of_parts([10, 0, 0] * unit.cm / unit.s, [0, 0, 30] * unit.degree / unit.s)
    np.testing.assert_allclose(parts.vector, [0.1, 0, 0, 0, 0, np.pi / 6])
    push = WrenchVector.of_parts([1, 0, 0] * unit.kilonewton, [0, 0, 5])
    np.testing.assert_allclose(push.vector, [1000, 0, 0, 0, 0, 5])
    axis = InstantaneousScrewAxis(
        [0, 0, 1], [0, 0, 0] * unit.mm, about=180 * unit.degree / unit.s, along=1.0
    )
    assert axis.about == pytest.approx(np.pi)
    with pytest.raises(SemanticError, match=r"it is a velocity in m/s"):
        TwistVector.of_parts([1, 0, 0] * unit.newton, [0, 0, 0])
