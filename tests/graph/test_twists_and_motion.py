"""Twist edges with joint velocities, stamped poses and grasps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tmkit import Pose, Revolute, SceneArrays, SceneGraph
from tmkit.errors import SceneError, UnknownNameError
from tmkit.graph import Expression, diff, integrate, is_rigid, relate, twist
from tmkit.plans.values import Attachment
from tmkit.relations import AngularVelocityCoord, LinearVelocityCoord, SemanticError, TwistCoord


def tracked_ball() -> SceneGraph:
    """Return a camera on a pan joint, and a ball with a lamp that moves at 2 m/s."""
    scene = SceneGraph().add_frame("pan", "world", joint=Revolute([0, 0, 1]))
    scene = scene.add_frame("camera", "pan", pose=Pose([0.1, 0, 0])).add_frame(
        "ball", "world", pose=Pose([1, 0, 0])
    )
    scene = scene.add_frame("lamp", "ball").add_frame("wall", "world")
    return scene.set_twist("ball", [0, 2, 0, 0, 0, 0], relative_to_body="world")


# --- joints

# the camera at (0.1, 0), the ball at (1, 0)
VELOCITIES: list[tuple[Callable[[SceneGraph], Any], list[float]]] = [
    (lambda s: s.at([0.0], [1.0]).twist("camera", relative_to="ball"), [0, -1.9, 0, 0, 0, 1]),
    (lambda s: s.at([0.0], [1.0]).twist("ball"), [0, 2, 0, 0, 0, 0]),
    (
        lambda s: s.at([0.0], [1.0]).twist("lamp", relative_to="camera", axes="wall"),
        [0, 1, 0, 0, 0, -1],
    ),
    (
        lambda s: relate(s, TwistCoord("camera|camera", "ball", "[world]"), q=[0.0], qd=[1.0]),
        [0, -1.9, 0, 0, 0, 1],
    ),
    (
        lambda s: relate(s, AngularVelocityCoord("camera", "lamp", "[world]"), q=[0.0], qd=[1.0]),
        [0, 0, 1],
    ),
    (
        lambda s: relate(
            s.at([0.0], [1.0]), LinearVelocityCoord("camera|camera", "ball", "[world]")
        ),
        [0, -1.9, 0],
    ),
]


@pytest.mark.parametrize(("velocity", "expected"), VELOCITIES)
def test_joints_and_twist_edges_count_together(
    velocity: Callable[[SceneGraph], Any], expected: list[float]
) -> None:
    """A camera on a joint and a rolling ball: joints alone would give a wrong velocity."""
    found = velocity(tracked_ball())
    numbers = found if isinstance(found, np.ndarray) else np.concatenate(found.numbers)
    np.testing.assert_allclose(numbers, expected, atol=1e-12)


def test_twists_elsewhere_change_nothing() -> None:
    """Without twist edges between frames, joints give the velocity, and vice versa."""
    scene = tracked_ball()
    at = scene.at([0.0], [1.0])
    np.testing.assert_allclose(
        at.twist("camera", relative_to="world"), [0, 0.1, 0, 0, 0, 1], atol=1e-15
    )
    np.testing.assert_allclose(at.twist("lamp", relative_to="ball"), np.zeros(6))
    np.testing.assert_allclose(
        at.twist("camera", relative_to="wall"), at.twist("camera", relative_to="world")
    )
    assert at.jacobian("ball").shape == (6, 1)
    linear = relate(scene, LinearVelocityCoord("ball|ball", "world", "[world]"), q=[0.0])
    np.testing.assert_allclose(linear.numbers[0], [0, 2, 0])


def test_a_twist_relative_to_what_no_pose_joins_counts_where_another_leads_back() -> None:
    """A motion that two twists constrain but do not determine raises an error."""
    scene = tracked_ball().remove_twist("ball").add_body("Sea").add_root("sea", body="Sea")
    one = scene.set_twist("ball", np.ones(6), relative_to_body="Sea")
    two = one.set_twist("sea", np.ones(6), relative_to_body="wall")
    at_one, at_two = (each.at([0.0], [1.0]) for each in (one, two))
    assert at_one.twist("camera", relative_to="ball")[5] == 1.0
    assert twist(one, "ball", relative_to="wall").numbers[0].tolist() == [0, 0, 0]
    assert at_two.twist("camera", relative_to="world")[5] == 1.0
    with pytest.raises(SceneError, match="relative to body 'wall'"):
        at_two.twist("ball", relative_to="wall")
    lead = "twist edges lead there by way of body 'Sea', which no poses join"
    for frame, reference in (("ball", "wall"), ("wall", "ball")):
        with pytest.raises(SemanticError, match=lead):
            twist(two, frame, relative_to=reference)
        with pytest.raises(SemanticError, match=lead):
            twist(two, frame, relative_to=reference, q=[0.0], qd=[1.0])
        assert not is_rigid(two, frame, reference)
    joined = two.attach("sea", "world", pose=Pose([3, 0, 0]))
    turn = joined.pose("sea", relative_to="ball").rotation
    assert turn is not None
    np.testing.assert_allclose(
        twist(
            joined, "ball", relative_to="wall", expression=Expression(at="ball", axes="ball")
        ).numbers[1],
        np.ones(3) + turn @ np.ones(3),
    )


def test_stamped_poses_do_not_leave_a_twist_out() -> None:
    """A twist from stamps is rejected across a twist edge without stamped poses."""
    scene = tracked_ball().add_frame("cart", "world", pose=Pose([0, 1, 0]))
    for stamp in (1.0, 2.0):
        scene = scene.add_stamped_pose("cart", Pose([stamp, 0, 0]), stamp=stamp)
    for variant in (scene, SceneArrays(scene)):
        np.testing.assert_allclose(
            variant.twist_from_stamps("cart", relative_to="wall", first=1, second=2),
            [1, 0, 0, 0, 0, 0],
        )
        for target, reference in (("cart", "ball"), ("ball", "cart"), ("lamp", "cart")):
            with pytest.raises(
                SceneError, match=r"twist edge of frame 'ball'.*poses at two stamps do not contain"
            ):
                variant.twist_from_stamps(target, relative_to=reference, first=1, second=2)
    # the same motion, measured twice
    both = scene.set_twist("cart", [1, 0, 0, 0, 0, 0], relative_to_body="world")
    for variant in (both, SceneArrays(both)):
        assert variant.twist_from_stamps("cart", relative_to="wall", first=1, second=2)[
            0
        ] == pytest.approx(1)


# --- grasps


def belt() -> SceneGraph:
    """Return a cup with a spinning lid on a belt, a fly, and a hand."""
    scene = SceneGraph().add_frame("belt", "world").add_frame("hand", "world", pose=Pose([0, 0, 1]))
    scene = scene.add_frame("cup", "belt", pose=Pose([0.5, 0, 0])).add_frame(
        "handle", "cup", body="cup"
    )
    scene = (
        scene.add_frame("lid", "cup")
        .add_frame("straw", "lid")
        .add_frame("fly", "world")
        .add_frame("dog", "world")
    )
    scene = scene.set_twist("handle", [1, 0, 0, 0, 0, 0], relative_to_body="belt").set_twist(
        "lid", [0, 0, 0, 0, 0, 3], relative_to_body="cup"
    )
    return scene.set_twist("fly", [0, 0, 1, 0, 0, 0], relative_to_body="lid").set_twist(
        "dog", [0, 1, 0, 0, 0, 0], relative_to_body="world"
    )


def check_held(scene: SceneGraph) -> None:
    """What moved relative to what stayed is gone; what moves inside, or elsewhere, goes on."""
    assert scene.twist_frames == ("lid", "dog")
    later = integrate(scene, 1.0)
    assert later.pose("cup", relative_to="hand").is_close(scene.pose("cup", relative_to="hand"))
    assert not later.pose("lid", relative_to="cup").is_close(scene.pose("lid", relative_to="cup"))
    assert later.pose("dog", relative_to="world").translation[1] == 1


def test_what_is_grasped_moves_with_the_hand() -> None:
    """Reparenting ends twists across the old edge, however it is done, and in arrays as well."""
    scene = belt()
    held = scene.reparent("cup", "hand")
    for variant in (
        held,
        scene.reparent("cup", "hand", pose=Pose()),
        Attachment("cup", "hand", Pose()).apply(scene, np.zeros(0)),
    ):
        check_held(variant)
    with scene.edit() as edit:
        edit.reparent("cup", "hand")
    assert edit.finish() == held
    arrays = SceneArrays(scene)
    arrays.reparent("cup", "hand")
    assert arrays.freeze() == held
    assert arrays._defects() == ""  # type: ignore[attr-defined]
    assert scene.apply(diff(scene, held)) == held
    assert held.apply(diff(held, scene)) == scene
    assert scene.twist_frames == ("handle", "lid", "fly", "dog")


def test_what_moves_nothing_ends_no_twist() -> None:
    """A pose set, the same parent again, or another parent on the same body keep all twists."""
    scene = belt().add_frame("rim", "cup", body="cup")
    at = scene.pose("handle", relative_to="rim")
    for variant in (
        scene.set_pose("cup", Pose([0.7, 0, 0])),
        scene.reparent("cup", "belt"),
        scene.reparent("cup", "belt", pose=Pose([0.7, 0, 0])),
        scene.reparent("handle", "rim", pose=at),
        scene.reparent("dog", "world"),
    ):
        assert variant.twist_frames == scene.twist_frames
    arrays = SceneArrays(scene)
    arrays.reparent("handle", "rim", pose=at)
    assert arrays.twist_frames == scene.twist_frames


def test_a_difference_keeps_what_was_said_again() -> None:
    """A difference includes a changed twist; a twist of another version is unchanged."""
    scene = belt()
    again = scene.reparent("cup", "hand").set_twist(
        "handle", [1, 0, 0, 0, 0, 0], relative_to_body="belt"
    )
    again = again.set_twist("fly", [0, 0, 1, 0, 0, 0], relative_to_body="lid")
    assert scene.apply(diff(scene, again)) == again
    assert again.apply(diff(again, scene)) == scene


# --- stamps and poses


def test_the_pose_now_and_the_poses_then() -> None:
    """A set pose is the present pose; the history at a stamp is unchanged."""
    scene = SceneGraph().add_frame("cup", "world")
    for stamp in (1.0, 2.0):
        scene = scene.add_stamped_pose("cup", Pose([stamp, 0, 0]), stamp=stamp)
    moved = scene.set_pose("cup", Pose([7, 0, 0]))
    arrays = SceneArrays(scene)
    arrays.set_pose("cup", Pose([7, 0, 0]))
    for variant in (moved, arrays):
        assert variant.pose("cup", relative_to="world").translation[0] == 7
        assert variant.pose("cup", relative_to="world", stamp=2.0).translation[0] == 2
    assert arrays.freeze() == moved
    assert (
        moved.add_stamped_pose("cup", Pose([1.5, 0, 0]), stamp=1.5).local_pose("cup").translation[0]
        == 7
    )
    assert (
        moved.add_stamped_pose("cup", Pose([3, 0, 0]), stamp=3.0).local_pose("cup").translation[0]
        == 3
    )


# --- bodies


def test_a_misspelt_body_is_rejected() -> None:
    """A frame is on an existing body, or on a new body of its name."""
    scene = SceneGraph().add_body("Cup").add_frame("cup", "world", body="Cup")
    with scene.edit() as edit:
        pass
    for variant in (scene, edit, SceneArrays(scene)):
        target: Any = variant
        for method, names in (
            (target.add_frame, ("handle", "cup")),
            (target.add_root, ("handle",)),
        ):
            with pytest.raises(
                UnknownNameError, match=r"unknown body 'Cupp'; did you mean 'Cup'.*add_body"
            ) as caught:
                method(*names, body="Cupp")
            assert caught.value.data["nearest"] == "Cup"
    arrays = SceneArrays(scene)
    arrays.add_frame("plate", "world", body="plate")
    assert (
        arrays.freeze()
        == scene.add_frame("plate", "world", body="plate")
        == scene.add_frame("plate", "world")
    )
    assert scene.add_frame("handle", "cup", body="Cup").body("handle") == "Cup"


def test_what_twists_are_relative_to_moves_as_they_say_together() -> None:
    """A tray moves by the gripper's twist and the cart's twist."""
    scene = SceneGraph().add_frame("cart", "world").add_frame("tray", "world", pose=Pose([1, 0, 0]))
    scene = scene.add_frame("gripper", "cart", body="cart").set_twist(
        "cart", [1, 0, 0, 0, 0, 0], relative_to_body="world"
    )
    scene = scene.set_twist("gripper", np.zeros(6), relative_to_body="tray")
    np.testing.assert_allclose(twist(scene, "tray").numbers[0], [1, 0, 0])
    after = integrate(scene, 0.5)
    np.testing.assert_allclose(after.pose("tray").translation, [1.5, 0, 0])
    np.testing.assert_allclose(after.pose("gripper", relative_to="tray").translation, [-1, 0, 0])


def test_each_twist_stays_constant_in_its_own_frame() -> None:
    """A ball observed by a panning camera on a turning cart has the stated motion."""
    scene = (
        SceneGraph().add_frame("cart", "world").add_frame("pan", "cart", joint=Revolute([0, 0, 1]))
    )
    scene = scene.add_frame("ball", "world", pose=Pose([3, 0, 0]))
    motion, of_ball = np.array([1, 0, 0, 0, 0, 1.0]), np.array([0.5, 0, 0.1, 0, 0, 0.3])
    scene = scene.set_twist("cart", motion, relative_to_body="world")
    scene = scene.add_frame("eye", "pan", pose=Pose([0.2, 0, 1]), body="pan")
    q, qd = np.array([0.2]), np.array([0.7])
    for dt in (0.1, 2.0):
        seen = scene.set_twist("ball", of_ball, relative_to_body="cart")
        after, then = integrate(seen, dt, q=q, qd=qd)
        cart = Pose.exp(dt * motion)
        ball = cart @ Pose([3, 0, 0]) @ Pose.exp(dt * of_ball)
        assert after.pose("cart", relative_to="world").is_close(cart)
        assert after.pose("ball", relative_to="world").is_close(ball)
        halves = integrate(integrate(seen, dt / 2), dt / 2)
        assert halves.pose("ball", relative_to="world").is_close(ball)
        eye = cart @ Pose.from_rpy([0, 0, 0], [0, 0, 0.2 + 0.7 * dt]) @ Pose([0.2, 0, 1])
        assert after.pose("eye", relative_to="world", q=then).is_close(eye)
