"""What may touch while an arm works: the exemptions of each phase, and the worlds that they make."""

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
    """Return two blocks of which green stands on red."""
    return two_blocks().reparent("green", "red", pose=Pose([0.0, 0.0, 0.05]))


def test_an_object_may_touch_what_it_rests_on() -> None:
    """In every phase each object and its parent may overlap by a millimetre."""
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


def test_the_fingers_may_touch_what_they_handle_and_nothing_else() -> None:
    """Only the contact links, and only for the object handled, may go as deep as the hand says."""
    found = pairs(RULES.allowed_contacts(two_blocks(), contact_object="red"))
    assert {pair for pair, depth in found.items() if depth == GANTRY.contact_tolerance} == {
        ("left_finger", "red"),
        ("red", "right_finger"),
        *FINGERS,
    }


def test_lift_and_lowering_let_the_object_touch_its_support() -> None:
    """The support of a held object may touch it when it is named, although it is not its parent."""
    held = two_blocks().reparent("red", "hand", pose=Pose([0.0, 0.0, -0.12]))
    assert ("red", "table") not in pairs(RULES.allowed_contacts(held, contact_object="red"))
    assert (
        pairs(RULES.allowed_contacts(held, contact_object="red", support="table"))["red", "table"]
        == ALLOWED_PENETRATION
    )


def test_a_suction_cup_that_holds_does_not_rest_on_what_it_holds() -> None:
    """Where the tip is itself a contact link, the held object is listed with it once."""
    held = two_blocks().reparent("red", "hand", pose=Pose([0.0, 0.0, -0.12]))
    assert (
        pairs(CollisionRules(SUCKER).allowed_contacts(held, contact_object="red"))["hand", "red"]
        == SUCKER.contact_tolerance
    )


def test_a_closed_hand_is_no_collision() -> None:
    """Fingers that touch each other are a closed hand, with an object in reach or not."""
    scene = two_blocks()
    q = scene.configuration({"finger": 0.0}, base=GANTRY.ready_configuration(scene))
    assert not RULES.world(scene, RULES.allowed_contacts(scene), margin=0.001).is_in_collision(q)
    assert RULES.world(scene, (), margin=0.001).is_in_collision(q)


def test_exemptions_are_sorted_and_repeatable() -> None:
    """The same version and phase give the same tuple, in order."""
    first = RULES.allowed_contacts(two_blocks(), contact_object="red", support="green")
    assert list(first) == sorted(first)
    assert first == RULES.allowed_contacts(two_blocks(), contact_object="red", support="green")


def test_movable_frames_of_both_spellings_in_insertion_order() -> None:
    """``movable`` and ``moveable`` mark objects; the order is that of insertion, whatever the class."""
    scene = SceneGraph().add_frame("b", "world", classes=["moveable"]).add_frame("c", "world")
    scene = scene.add_frame("a", "world", classes=["movable"])
    assert movable_frames(scene) == ("b", "a")
    assert movable_frames(SceneGraph()) == ()


def test_frames_of_an_exemption_are_in_alphabetical_order() -> None:
    """A pair given either way round is the same exemption."""
    one, two = (
        AllowedContact.of(*pair, penetration=0.001, reason="r") for pair in (("b", "a"), ("a", "b"))
    )
    assert one == two
    assert str(one) == "a and b: up to 1 mm (r)"
    assert (
        str(AllowedContact.of("a", "b", penetration=math.inf, reason="r"))
        == "a and b: not checked (r)"
    )


@pytest.mark.parametrize(("gap", "collides"), [(0.0005, True), (0.0015, False)])
def test_the_margin_is_kept_from_what_is_not_exempt(gap: float, collides: bool) -> None:
    """Two objects nearer than the margin collide; farther, they do not."""
    scene = with_block(gantry_scene(), "red", [0.2, 0.2, 0.025])
    scene = with_block(scene, "green", [0.2, 0.25 + gap, 0.025])
    world = RULES.world(scene, RULES.allowed_contacts(scene), margin=0.001)
    q = GANTRY.ready_configuration(scene)
    assert world.is_in_collision(q) is collides
    assert not RULES.world(scene, RULES.allowed_contacts(scene), margin=0.0).is_in_collision(q)


@pytest.mark.parametrize(("depth", "collides"), [(0.0008, False), (0.0012, True)])
def test_resting_may_go_a_millimetre_deep(depth: float, collides: bool) -> None:
    """An object may overlap with what it rests on by up to 1 mm, margin or not."""
    scene = with_block(gantry_scene(), "red", [0.2, 0.2, 0.025 - depth])
    for margin in (0.0, 0.001):
        world = RULES.world(scene, RULES.allowed_contacts(scene), margin=margin)
        assert world.is_in_collision(GANTRY.ready_configuration(scene)) is collides


def test_exemptions_for_frames_that_are_not_there_are_of_no_effect() -> None:
    """A plan's exemptions may name a frame that another version lacks."""
    scene = two_blocks()
    extra = AllowedContact.of("red", "nowhere", penetration=math.inf, reason="r")
    world = RULES.world(scene, [*RULES.allowed_contacts(scene), extra], margin=0.0)
    assert not world.is_in_collision(GANTRY.ready_configuration(scene))
