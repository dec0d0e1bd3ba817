"""Allowed contacts of each phase of an action, and the resulting collision worlds."""

from __future__ import annotations

import math

import pytest
from support.gantry import GANTRY, SUCKER, gantry_scene, two_blocks, with_block

from tmkit.graph import SceneGraph
from tmkit.motion import CollisionRules
from tmkit.motion.collision_rules import ALLOWED_PENETRATION, AllowedContact
from tmkit.robots import movable_frames
from tmkit.spatial import Pose

RULES = CollisionRules(GANTRY)
FINGERS = {("left_finger", "right_finger"): GANTRY.contact_tolerance}


def pairs(allowed_contacts: tuple[AllowedContact, ...]) -> dict[tuple[str, str], float]:
    """Return the depths by pair of frames."""
    return {(e.frame_a, e.frame_b): e.penetration for e in allowed_contacts}


def on_red() -> SceneGraph:
    """Return two blocks, the green one on the red one."""
    return two_blocks().reparent("green", "red", pose=Pose([0.0, 0.0, 0.05]))


def test_an_object_may_touch_its_support() -> None:
    """In every phase, an object and its parent may overlap by a millimetre."""
    assert pairs(RULES.allowed_contacts(two_blocks())) == {
        ("red", "table"): ALLOWED_PENETRATION,
        ("green", "table"): ALLOWED_PENETRATION,
        **FINGERS,
    }
    assert pairs(RULES.allowed_contacts(on_red())) == {
        ("red", "table"): ALLOWED_PENETRATION,
        ("green", "red"): ALLOWED_PENETRATION,
        **FINGERS,
    }


def test_fingers_may_touch_only_the_handled_object() -> None:
    """Only contact links may overlap the handled object, up to the depth of the hand."""
    result = pairs(RULES.allowed_contacts(two_blocks(), contact_object="red"))
    assert {pair for pair, depth in result.items() if depth == GANTRY.contact_tolerance} == {
        ("left_finger", "red"),
        ("red", "right_finger"),
        *FINGERS,
    }


def test_a_held_object_may_touch_its_support() -> None:
    """A held object may touch the support of a lift or lowering, which is not its parent."""
    held = two_blocks().reparent("red", "hand", pose=Pose([0.0, 0.0, -0.12]))
    assert ("red", "table") not in pairs(RULES.allowed_contacts(held, contact_object="red"))
    assert (
        pairs(RULES.allowed_contacts(held, contact_object="red", support="table"))["red", "table"]
        == ALLOWED_PENETRATION
    )


def test_a_suction_cup_has_one_allowed_contact_with_the_held_object() -> None:
    """If the tip is a contact link, its pair with the held object is listed once."""
    held = two_blocks().reparent("red", "hand", pose=Pose([0.0, 0.0, -0.12]))
    assert (
        pairs(CollisionRules(SUCKER).allowed_contacts(held, contact_object="red"))["hand", "red"]
        == SUCKER.contact_tolerance
    )


def test_fingers_may_touch_each_other() -> None:
    """Fingers of a closed hand may touch each other, with or without an object."""
    scene = two_blocks()
    q = scene.configuration({"finger": 0.0}, base=GANTRY.ready_configuration(scene))
    assert not RULES.world(scene, RULES.allowed_contacts(scene), margin=0.001).is_in_collision(q)
    assert RULES.world(scene, (), margin=0.001).is_in_collision(q)


def test_allowed_contacts_are_sorted_and_reproducible() -> None:
    """The same version and phase give the same sorted tuple."""
    first = RULES.allowed_contacts(two_blocks(), contact_object="red", support="green")
    assert list(first) == sorted(first)
    assert first == RULES.allowed_contacts(two_blocks(), contact_object="red", support="green")


def test_movable_frames_of_both_spellings_in_insertion_order() -> None:
    """``movable`` and ``moveable`` mark objects. The order is that of insertion."""
    scene = SceneGraph().add_frame("b", "world", classes=["moveable"]).add_frame("c", "world")
    scene = scene.add_frame("a", "world", classes=["movable"])
    assert movable_frames(scene) == ("b", "a")
    assert movable_frames(SceneGraph()) == ()


def test_frames_of_an_allowed_contact_are_in_alphabetical_order() -> None:
    """A pair in either order gives the same allowed contact."""
    pair, reversed_pair = (
        AllowedContact.of(*pair, penetration=0.001, reason="r") for pair in (("b", "a"), ("a", "b"))
    )
    assert pair == reversed_pair
    assert str(pair) == "a and b: up to 1 mm (r)"
    assert (
        str(AllowedContact.of("a", "b", penetration=math.inf, reason="r"))
        == "a and b: not checked (r)"
    )


@pytest.mark.parametrize(("gap", "collides"), [(0.0005, True), (0.0015, False)])
def test_other_pairs_keep_the_margin(gap: float, collides: bool) -> None:
    """Two objects collide if they are nearer than the margin."""
    scene = with_block(gantry_scene(), "red", [0.2, 0.2, 0.025])
    scene = with_block(scene, "green", [0.2, 0.25 + gap, 0.025])
    world = RULES.world(scene, RULES.allowed_contacts(scene), margin=0.001)
    q = GANTRY.ready_configuration(scene)
    assert world.is_in_collision(q) is collides
    assert not RULES.world(scene, RULES.allowed_contacts(scene), margin=0.0).is_in_collision(q)


@pytest.mark.parametrize(("depth", "collides"), [(0.0008, False), (0.0012, True)])
def test_a_resting_object_may_overlap_by_a_millimetre(depth: float, collides: bool) -> None:
    """An object may overlap its support by up to 1 mm, with any margin."""
    scene = with_block(gantry_scene(), "red", [0.2, 0.2, 0.025 - depth])
    for margin in (0.0, 0.001):
        world = RULES.world(scene, RULES.allowed_contacts(scene), margin=margin)
        assert world.is_in_collision(GANTRY.ready_configuration(scene)) is collides


def test_allowed_contacts_of_missing_frames_have_no_effect() -> None:
    """An allowed contact of a plan may have a frame that another version lacks."""
    scene = two_blocks()
    extra = AllowedContact.of("red", "nowhere", penetration=math.inf, reason="r")
    world = RULES.world(scene, [*RULES.allowed_contacts(scene), extra], margin=0.0)
    assert not world.is_in_collision(GANTRY.ready_configuration(scene))
