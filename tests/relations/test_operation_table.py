"""Operations of all relations: operands, results, and numbers by two methods.

The table below is that of the operations of De Laet et al., with what follows from it for forces. A
row says which names have to be one (``0.ref_point=1.point``: the reference point of the first
operand is the point of the second) and what the result speaks of. The tests break each of these
equations alone, from either side; change every name that stands in none; and compare the numbers
with two models of rigid bodies that share nothing. An operation without a row fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio
import pytest
from support.rigid_world import RigidWorld, by_matrices, by_motion, relation, rigid_world

from tmkit import relations
from tmkit.relations import (
    AngularVelocityCoord,
    ForceCoord,
    LinearVelocityCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    SemanticError,
    TorqueCoord,
    TwistCoord,
    WrenchCoord,
    apply,
)
from tmkit.relations.by_name import OPERATIONS
from tmkit.relations.semantics import Coord

POSITION, BODY_STEP = PositionCoord("e|C", "f|D", "[r]"), PositionCoord("e2|C", "e|C", "[r]")
FREE, OWN = OrientationCoord("[a]|C", "[b]|D", "[r]"), OrientationCoord("[a]|C", "[b]|D", "[b]")
POSE, LOOSE = PoseCoord("{a}|C", "{b}|D", "[b]"), PoseCoord("(e,[a])|C", "(f,[b])|D", "[b]")
LINEAR, ANGULAR = LinearVelocityCoord("e|C", "D", "[r]"), AngularVelocityCoord("C", "D", "[r]")
TWIST, WRENCH = TwistCoord("e|C", "D", "[r]"), WrenchCoord("e|C", "D", "[r]")
FORCE, TORQUE = ForceCoord("C", "D", "[r]"), TorqueCoord("e|C", "D", "[r]")
# of the coordinate frame; its bodies do not matter
TURN = OrientationCoord("[r]|X", "[s]|D", "[s]")
TURNED = "1.ori=0.coord 1.coord=1.ref_ori"
STEP = "1.ref_point=0.point 1.ref_body=0.body 1.body=0.body 1.coord=0.coord"
BACK_STEP = "1.point=0.ref_point 1.body=0.ref_body 1.ref_body=0.ref_body 1.coord=0.coord"
CHAIN, RESULTANT = (
    "0.ref_body=1.body 0.coord=1.coord",
    "0.body=1.body 0.ref_body=1.ref_body 0.coord=1.coord",
)
FREE_PART = "2.body=0.body 2.ref_body=0.ref_body 2.coord=0.coord"
OWN_AXES = "0.coord=0.ref_ori 1.coord=1.ref_ori"


@dataclass(frozen=True)
class Row:
    """One operation.

    Attributes:
        op: its name.
        operands: coordinates that fit.
        equations: which names have to be one, ``operand.field=operand.field``.
        result: what the result speaks of, or None.
        more: operands besides, that are no relations.
    """

    op: str
    operands: tuple[Any, ...]
    equations: str
    result: Any
    more: tuple[Any, ...] = ()

    @property
    def relation(self) -> str:
        """The relation that the operation is of."""
        return str(self.operands[0].relation)


def row(op: str, *operands: Any, asks: str = "", gives: Any, more: tuple[Any, ...] = ()) -> Row:
    """Return a row of the table."""
    return Row(op, operands, asks, gives, more)


ROWS = [
    # --- position
    row("inverse", POSITION, gives=PositionCoord("f|D", "e|C", "[r]")),
    row(
        "compose",
        PositionCoord("e|C", "k|E", "[r]"),
        PositionCoord("k|E", "f|D", "[r]"),
        asks=f"0.ref_point=1.point {CHAIN}",
        gives=POSITION,
    ),
    row("change_point", POSITION, BODY_STEP, asks=STEP, gives=PositionCoord("e2|C", "f|D", "[r]")),
    row(
        "change_reference_point",
        POSITION,
        PositionCoord("f|D", "f2|D", "[r]"),
        asks=BACK_STEP,
        gives=PositionCoord("e|C", "f2|D", "[r]"),
    ),
    row(
        "change_coordinate_frame",
        POSITION,
        TURN,
        asks=TURNED,
        gives=PositionCoord("e|C", "f|D", "[s]"),
    ),
    row(
        "change_point_body",
        POSITION,
        PositionCoord("c|C2", "e|C", "[r]"),
        asks="1.ref_point=0.point 1.ref_body=0.body 1.coord=0.coord",
        gives=PositionCoord("c|C2", "f|D", "[r]"),
    ),
    row(
        "change_reference_point_body",
        POSITION,
        PositionCoord("f|D", "d|D2", "[r]"),
        asks="1.point=0.ref_point 1.body=0.ref_body 1.coord=0.coord",
        gives=PositionCoord("e|C", "d|D2", "[r]"),
    ),
    row(
        "change_body",
        POSITION,
        PoseCoord("{c}|C2", "{a}|C", "[a]"),
        asks="1.ref_body=0.body",
        gives=None,
    ),
    row(
        "change_reference_body",
        POSITION,
        PoseCoord("{b}|D", "{d}|D2", "[d]"),
        asks="1.body=0.ref_body",
        gives=None,
    ),
    row(
        "differentiate",
        POSITION,
        POSITION,
        asks=(
            "0.point=1.point 0.body=1.body 0.ref_point=1.ref_point 0.ref_body=1.ref_body"
            " 0.coord=1.coord"
        ),
        gives=LINEAR,
        more=(0.1,),
    ),
    # --- orientation
    row("inverse", FREE, gives=OrientationCoord("[b]|D", "[a]|C", "[r]")),
    row("inverse2", OWN, asks="0.coord=0.ref_ori", gives=OrientationCoord("[b]|D", "[a]|C", "[a]")),
    row(
        "compose",
        OrientationCoord("[a]|C", "[k]|E", "[k]"),
        OrientationCoord("[k]|E", "[b]|D", "[b]"),
        asks=f"0.ref_ori=1.ori 0.ref_body=1.body {OWN_AXES}",
        gives=OWN,
    ),
    row(
        "compose",
        OrientationCoord("[a]|C", "[k]|E", "[r]"),
        OrientationCoord("[k]|E", "[b]|D", "[r]"),
        asks=f"0.ref_ori=1.ori {CHAIN}",
        gives=FREE,
    ),
    row(
        "change_orientation_frame",
        OWN,
        OrientationCoord("[a2]|C", "[a]|C", "[a]"),
        asks=f"1.ref_ori=0.ori 1.ref_body=0.body 1.body=0.body {OWN_AXES}",
        gives=OrientationCoord("[a2]|C", "[b]|D", "[b]"),
    ),
    row(
        "change_reference_orientation_frame",
        OWN,
        OrientationCoord("[b]|D", "[b2]|D", "[b2]"),
        asks=f"1.ori=0.ref_ori 1.body=0.ref_body 1.ref_body=0.ref_body {OWN_AXES}",
        gives=OrientationCoord("[a]|C", "[b2]|D", "[b2]"),
    ),
    row(
        "change_coordinate_frame",
        FREE,
        TURN,
        asks=TURNED,
        gives=OrientationCoord("[a]|C", "[b]|D", "[s]"),
    ),
    row(
        "change_body",
        OWN,
        OrientationCoord("[c]|C2", "[a]|C", "[a]"),
        asks="1.ref_body=0.body",
        gives=None,
    ),
    row(
        "change_reference_body",
        OWN,
        PoseCoord("{d}|D2", "{b}|D", "[b]"),
        asks="1.ref_body=0.ref_body",
        gives=None,
    ),
    row(
        "differentiate",
        OWN,
        OWN,
        asks=f"0.ori=1.ori 0.body=1.body 0.ref_ori=1.ref_ori 0.ref_body=1.ref_body {OWN_AXES}",
        gives=AngularVelocityCoord("C", "D", "[b]"),
        more=(0.1,),
    ),
    # --- pose
    row(
        "inverse",
        PoseCoord("(e,[a])|C", "(f,[b])|D", "[r]"),
        gives=PoseCoord("(f,[b])|D", "(e,[a])|C", "[r]"),
    ),
    row("inverse2", POSE, asks="0.coord=0.ref_ori", gives=PoseCoord("{b}|D", "{a}|C", "[a]")),
    row(
        "compose",
        PoseCoord("(e,[a])|C", "{k}|E", "[k]"),
        PoseCoord("{k}|E", "(f,[b])|D", "[b]"),
        asks=f"0.ref_point=1.point 0.ref_ori=1.ori 0.ref_body=1.body {OWN_AXES}",
        gives=LOOSE,
    ),
    row(
        "change_point",
        POSE,
        PositionCoord("e|C", "a|C", "[b]"),
        asks=STEP,
        gives=PoseCoord("(e,[a])|C", "{b}|D", "[b]"),
    ),
    row(
        "change_reference_point",
        POSE,
        PositionCoord("b|D", "f|D", "[b]"),
        asks=BACK_STEP,
        gives=PoseCoord("{a}|C", "(f,[b])|D", "[b]"),
    ),
    row(
        "change_orientation_frame",
        LOOSE,
        OrientationCoord("[a2]|C", "[a]|C", "[a]"),
        asks=f"1.ref_ori=0.ori 1.ref_body=0.body 1.body=0.body {OWN_AXES}",
        gives=PoseCoord("(e,[a2])|C", "(f,[b])|D", "[b]"),
    ),
    row(
        "change_reference_orientation_frame",
        LOOSE,
        OrientationCoord("[b]|D", "[b2]|D", "[b2]"),
        asks=f"1.ori=0.ref_ori 1.body=0.ref_body 1.ref_body=0.ref_body {OWN_AXES}",
        gives=PoseCoord("(e,[a])|C", "(f,[b2])|D", "[b2]"),
    ),
    row(
        "change_coordinate_frame",
        PoseCoord("(e,[a])|C", "(f,[b])|D", "[r]"),
        TURN,
        asks=TURNED,
        gives=PoseCoord("(e,[a])|C", "(f,[b])|D", "[s]"),
    ),
    row("change_body", POSE, PositionCoord("a|C", "c|C2", "[r]"), asks="1.body=0.body", gives=None),
    row(
        "change_reference_body",
        POSE,
        PoseCoord("{b}|D", "{d}|D2", "[d]"),
        asks="1.body=0.ref_body",
        gives=None,
    ),
    row("position", LOOSE, gives=PositionCoord("e|C", "f|D", "[b]")),
    row("orientation", LOOSE, gives=OWN),
    row(
        "differentiate",
        POSE,
        POSE,
        asks=(
            "0.point=0.ori 0.ref_point=0.ref_ori 0.coord=0.ref_ori 0.body=1.body"
            " 0.ref_body=1.ref_body 0.point=1.point 0.ori=1.ori 0.ref_point=1.ref_point"
            " 0.ref_ori=1.ref_ori 0.coord=1.coord"
        ),
        gives=TwistCoord("a|C", "D", "[a]"),
        more=(0.1,),
    ),
    row("pose", PositionCoord("e|C", "f|D", "[b]"), OWN, asks=RESULTANT, gives=LOOSE),
    row("twist", LINEAR, ANGULAR, asks=RESULTANT, gives=TWIST),
    row("wrench", FORCE, TORQUE, asks=RESULTANT, gives=WRENCH),
    # --- velocities
    row("inverse", LINEAR, gives=LinearVelocityCoord("e|D", "C", "[r]")),
    row(
        "compose",
        LinearVelocityCoord("e|C", "E", "[r]"),
        LinearVelocityCoord("e|E", "D", "[r]"),
        asks=f"0.point=1.point {CHAIN}",
        gives=LINEAR,
    ),
    row(
        "change_point",
        LINEAR,
        BODY_STEP,
        ANGULAR,
        asks=f"{STEP} {FREE_PART}",
        gives=LinearVelocityCoord("e2|C", "D", "[r]"),
    ),
    row(
        "change_coordinate_frame",
        LINEAR,
        TURN,
        asks=TURNED,
        gives=LinearVelocityCoord("e|C", "D", "[s]"),
    ),
    row(
        "change_reference_body",
        LINEAR,
        LinearVelocityCoord("e|D", "E", "[r]"),
        asks=f"0.point=1.point {CHAIN}",
        gives=LinearVelocityCoord("e|C", "E", "[r]"),
    ),
    row("integrate", LINEAR, gives=PositionCoord("e|C", "e|D", "[r]"), more=(0.1,)),
    row("inverse", ANGULAR, gives=AngularVelocityCoord("D", "C", "[r]")),
    row(
        "compose",
        AngularVelocityCoord("C", "E", "[r]"),
        AngularVelocityCoord("E", "D", "[r]"),
        asks=CHAIN,
        gives=ANGULAR,
    ),
    row(
        "change_coordinate_frame",
        ANGULAR,
        TURN,
        asks=TURNED,
        gives=AngularVelocityCoord("C", "D", "[s]"),
    ),
    row(
        "change_reference_body",
        ANGULAR,
        AngularVelocityCoord("D", "E", "[r]"),
        asks=CHAIN,
        gives=AngularVelocityCoord("C", "E", "[r]"),
    ),
    row("integrate", ANGULAR, gives=OrientationCoord("[r]|C", "[r]|D", "[r]"), more=(0.1,)),
    row("inverse", TWIST, gives=TwistCoord("e|D", "C", "[r]")),
    row(
        "compose",
        TwistCoord("e|C", "E", "[r]"),
        TwistCoord("e|E", "D", "[r]"),
        asks=f"0.point=1.point {CHAIN}",
        gives=TWIST,
    ),
    row("change_point", TWIST, BODY_STEP, asks=STEP, gives=TwistCoord("e2|C", "D", "[r]")),
    row(
        "change_point_body",
        TWIST,
        PositionCoord("c|C2", "e|C", "[r]"),
        asks="1.ref_point=0.point 1.ref_body=0.body 1.coord=0.coord",
        gives=TwistCoord("c|C2", "D", "[r]"),
    ),
    row("change_coordinate_frame", TWIST, TURN, asks=TURNED, gives=TwistCoord("e|C", "D", "[s]")),
    row(
        "change_reference_body",
        TWIST,
        TwistCoord("e|D", "E", "[r]"),
        asks=f"0.point=1.point {CHAIN}",
        gives=TwistCoord("e|C", "E", "[r]"),
    ),
    row(
        "integrate", TwistCoord("g|C", "D", "[g]"), asks="0.point=0.coord", gives=None, more=(0.1,)
    ),
    # --- forces
    row("inverse", FORCE, gives=ForceCoord("D", "C", "[r]")),
    row("compose", FORCE, FORCE, asks=RESULTANT, gives=FORCE),
    row("change_coordinate_frame", FORCE, TURN, asks=TURNED, gives=ForceCoord("C", "D", "[s]")),
    row("inverse", TORQUE, gives=TorqueCoord("e|D", "C", "[r]")),
    row("compose", TORQUE, TORQUE, asks=f"0.point=1.point {RESULTANT}", gives=TORQUE),
    row(
        "change_point",
        TORQUE,
        BODY_STEP,
        FORCE,
        asks=f"{STEP} {FREE_PART}",
        gives=TorqueCoord("e2|C", "D", "[r]"),
    ),
    row("change_coordinate_frame", TORQUE, TURN, asks=TURNED, gives=TorqueCoord("e|C", "D", "[s]")),
    row("inverse", WRENCH, gives=WrenchCoord("e|D", "C", "[r]")),
    row("compose", WRENCH, WRENCH, asks=f"0.point=1.point {RESULTANT}", gives=WRENCH),
    row("change_point", WRENCH, BODY_STEP, asks=STEP, gives=WrenchCoord("e2|C", "D", "[r]")),
    row("change_coordinate_frame", WRENCH, TURN, asks=TURNED, gives=WrenchCoord("e|C", "D", "[s]")),
    row("dot", WRENCH, TWIST, asks=f"0.point=1.point {RESULTANT}", gives=None),
]
RESULTS = {  # of rows in which only a body changes
    "change_body": lambda c: c.replace(body="C2"),
    "change_reference_body": lambda c: c.replace(ref_body="D2"),
    "integrate": lambda c: PoseCoord(f"{{{c.point}}}|C", f"{{{c.point}}}|D", f"[{c.point}]"),
    "dot": lambda _: None,
}
IDS = [f"{each.op} {each.relation}" for each in ROWS]


def result_of(each: Row) -> Any:
    """Return what the result of a row speaks of."""
    return each.result if each.result is not None else RESULTS[each.op](each.operands[0])


def slots(each: Row) -> list[tuple[str, str]]:
    """Return the equations of a row as pairs of places, ``("0.ref_point", "1.point")``."""
    return [
        (left, right)
        for left, right in (equation.split("=") for equation in each.equations.split())
    ]


def with_name(each: Row, place: str, name: str) -> list[Any]:
    """Return the operands of a row with another name in one place."""
    which, field = place.split(".")
    operands = list(each.operands)
    operands[int(which)] = operands[int(which)].replace(**{field: name})
    return operands


def test_every_operation_of_every_relation_has_a_row() -> None:
    """The table has every operation of every relation."""
    known = {(each.relation, each.op) for each in ROWS} | {("Pose", "pose"), ("Twist", "dot")}
    for name in (
        each
        for each in relations.__all__
        if each.startswith("Semantic") and each != "SemanticError"
    ):
        cls = getattr(relations, name)
        for op in OPERATIONS:
            if hasattr(cls, op):
                assert (cls.coord_class.relation, op) in known, (
                    f"{op} of a {cls.coord_class.relation} has no row"
                )
    assert {each.op for each in ROWS} == set(OPERATIONS)


@pytest.mark.parametrize("each", ROWS, ids=IDS)
def test_what_is_accepted(each: Row) -> None:
    """The operands fit, and the result speaks of what the table says."""
    assert apply(each.op, *each.operands, *each.more) == result_of(each)


@pytest.mark.parametrize("each", ROWS, ids=IDS)
def test_each_equation_is_asked(each: Row) -> None:
    """An equation that does not hold is rejected, from whichever side, and both names are told."""
    for equation in slots(each):
        for place in equation:
            operands = with_name(each, place, "zz")
            with pytest.raises(SemanticError) as caught:
                apply(each.op, *operands, *each.more)
            sides = [f"{broken.left} {broken.right}" for broken in caught.value.violations]
            assert any("zz" in side.split() for side in sides), (place, sides)
            assert all(broken.rule for broken in caught.value.violations)


@pytest.mark.parametrize("each", ROWS, ids=IDS)
def test_nothing_else_is_asked(each: Row) -> None:
    """A name without an equation is arbitrary."""
    asked = {place for equation in slots(each) for place in equation}
    expected = result_of(each)
    for which, operand in enumerate(each.operands):
        for field in operand.fields:
            if f"{which}.{field}" in asked:
                continue
            result = apply(each.op, *with_name(each, f"{which}.{field}", "zz"), *each.more)
            if result != expected:
                old = getattr(operand, field)
                changed = [f for f in expected.fields if getattr(result, f) != getattr(expected, f)]
                assert changed
                assert all(
                    getattr(result, f) == "zz" and getattr(expected, f) == old for f in changed
                )


SUMS = {("compose", relation) for relation in ("Force", "Torque", "Wrench")}
PLAIN = [each for each in ROWS if each.op not in ("integrate", "differentiate", "dot")]
PLAIN = [each for each in PLAIN if (each.op, each.relation) not in SUMS]


def ids(rows: list[Row]) -> list[str]:
    """Return what tests of rows are called."""
    return [f"{each.op} {each.relation}" for each in rows]


@pytest.mark.parametrize("each", PLAIN, ids=ids(PLAIN))
def test_numbers_agree_with_two_models(each: Row) -> None:
    """Numbers equal those of matrices, of pinocchio and of finite differences."""
    world = rigid_world(1)
    made = apply(each.op, *(relation(world, coord) for coord in each.operands))
    expected = result_of(each)
    assert made.coord == expected
    if each.result is None:
        expected = each.operands[0]  # another name for the same numbers
    for model, tolerance in ((by_matrices, 1e-12), (by_motion, 1e-8)):
        for ours, theirs in zip(made.numbers, model(world, expected), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=tolerance)


@pytest.mark.parametrize("coord", [FORCE, TORQUE, WRENCH], ids=lambda coord: coord.relation)
def test_forces_on_one_body_are_added(coord: Any) -> None:
    """Two forces together are their sum, and have the sum of their powers."""
    first, second = relation(rigid_world(1), coord), relation(rigid_world(7), coord)
    made = first.compose(second)
    probe = np.array([0.3, -0.7, 0.2])
    for ours, a, b in zip(made.numbers, first.numbers, second.numbers, strict=True):
        np.testing.assert_allclose(ours, a + b, atol=1e-12)
        assert ours @ probe == pytest.approx(a @ probe + b @ probe)


@pytest.mark.parametrize(
    "coord", [LINEAR, ANGULAR, TwistCoord("g|C", "D", "[g]")], ids=lambda coord: coord.relation
)
def test_integrals_agree_with_two_models(coord: Any) -> None:
    """Integration equals pinocchio's exponential and many small steps."""
    dt, steps = 0.1, 2000
    velocity: Any = relation(rigid_world(1), coord)
    zero = np.zeros(3)
    linear = velocity.numbers[0] if coord.relation != "AngularVelocity" else zero
    angular = velocity.numbers[-1] if coord.relation != "LinearVelocity" else zero
    small = np.eye(4)
    small[:3, :3] += np.cross(np.eye(3), angular) * dt / steps
    small[:3, 3] = linear * dt / steps
    exact = pinocchio.exp6(pinocchio.Motion(linear * dt, angular * dt)).homogeneous
    made = apply("integrate", velocity, dt)
    assert made.coord == apply("integrate", coord)
    for model, tolerance in ((exact, 1e-12), (np.linalg.matrix_power(small, steps), 1e-4)):
        place, turned = model[:3, 3], model[:3, :3]
        wanted = {"Position": (place,), "Orientation": (turned,), "Pose": (place, turned)}[
            made.coord.relation
        ]
        for ours, theirs in zip(made.numbers, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=tolerance)


@pytest.mark.parametrize("coord", [POSITION, OWN, POSE], ids=lambda coord: coord.relation)
def test_differences_agree_with_two_models(coord: Any) -> None:
    """Differences in time give the velocity of the world, and integrate back."""
    world, later, dt = rigid_world(1), RigidWorld(1), 1e-6
    # the coordinate frame with the reference body
    going_along = {"a": "C", "e": "C", "b": "D", "f": "D", "r": "D"}
    later.frames = {frame: world.at(frame, body, dt) for frame, body in going_along.items()}
    before, after = relation(world, coord), relation(later, coord)
    made = apply("differentiate", before, after, dt)
    assert made.coord == apply("differentiate", coord)
    for ours, theirs in zip(made.numbers, by_matrices(world, made.coord), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    there = made.integrate(dt).numbers
    if coord.relation == "Position":
        np.testing.assert_allclose(before.numbers[0] + there[0], after.numbers[0], atol=1e-12)
    elif coord.relation == "Orientation":
        np.testing.assert_allclose(there[0] @ before.numbers[0], after.numbers[0], atol=1e-12)
    else:
        start, motion = (
            pinocchio.SE3(numbers[1], numbers[0]) for numbers in (before.numbers, there)
        )
        np.testing.assert_allclose(
            (start * motion).homogeneous[:3, 3], after.numbers[0], atol=1e-12
        )
        np.testing.assert_allclose((start * motion).rotation, after.numbers[1], atol=1e-12)


def test_power_agrees_with_two_models() -> None:
    """The power of a wrench is the sum over both parts, and the work of three forces."""
    world, step = rigid_world(1), 1e-6
    wrench, twist = relation(world, WRENCH), relation(world, TWIST)
    made = apply("dot", wrench, twist)
    assert made == pytest.approx(
        sum(float(a @ b) for a, b in zip(wrench.numbers, twist.numbers, strict=True))
    )
    frames = ("o", "e", "g")
    ways = [
        world.at(frame, "C", step)[:3, 3] - world.at(frame, "D", step)[:3, 3] for frame in frames
    ]
    points = [world.frames[frame][:3, 3] for frame in frames]
    balance = np.vstack(
        [np.hstack([np.eye(3)] * 3), np.hstack([np.cross(np.eye(3), point) for point in points])]
    )
    forces = np.linalg.lstsq(balance, world.wrenches["C", "D"], rcond=None)[0].reshape(3, 3)
    work = sum(float(force @ way) for force, way in zip(forces, ways, strict=True))
    assert work / step == pytest.approx(made, abs=1e-4)


def test_the_table_speaks_of_all_relations() -> None:
    """There are nine."""
    assert {each.relation for each in ROWS} == {cls.relation for cls in Coord.__args__}
