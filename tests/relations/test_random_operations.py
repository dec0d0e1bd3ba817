"""Random sequences of operations give relations of their world; a wrong name is found.

Hypothesis walks through relations: it takes one that holds in a world of rigid bodies, and applies
operations with operands that hold there too. Whatever is accepted must have the numbers that plain
matrices give for what the result says it is. Then one name of one operand is made false, its
numbers as they were: the operation is rejected, or its result says the false name, or nothing that
was asked depends on the name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import assume, given, settings, strategies as st
from support.effort import scaled_examples
from support.rigid_world import BODIES, FRAMES, RigidWorld, by_matrices, relation, rigid_world

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
from tmkit.relations.rules import compose
from tmkit.relations.semantic.base import SemanticRelation

KINDS = [
    PositionCoord,
    OrientationCoord,
    PoseCoord,
    LinearVelocityCoord,
    AngularVelocityCoord,
    TwistCoord,
    ForceCoord,
    TorqueCoord,
    WrenchCoord,
]
TWINS = {"C": "C2", "C2": "C", "D": "D2", "D2": "D"}  # bodies that are rigidly joined
MOVING = ["C", "D", "E", "X"]


class Names:
    """Names drawn so that frames are on their bodies."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def body(self, *, but: str = "") -> str:
        """Draw a body, another than one and than its twin."""
        return self.draw(
            st.sampled_from([body for body in MOVING if body not in (but, TWINS.get(but))])
        )

    def frame(self, body: str | None = None) -> str:
        """Draw a frame, of one body or of any."""
        return self.draw(st.sampled_from(list(BODIES) if body is None else list(FRAMES[body])))

    def coord(self, kind: type) -> Any:
        """Draw coordinates of a relation."""
        body = self.body()
        other = self.body(but=body)
        point, ori, ref_point, ref_ori = (
            self.frame(body),
            self.frame(body),
            self.frame(other),
            self.frame(other),
        )
        known = {
            "point": point,
            "ori": ori,
            "body": body,
            "ref_point": ref_point,
            "ref_ori": ref_ori,
        }
        known |= {"ref_body": other, "coord": self.draw(st.sampled_from([ref_ori, self.frame()]))}
        return kind.from_names(**{name: known[name] for name in kind.fields})  # type: ignore[attr-defined]


def operand(names: Names, op: str, c: Any) -> tuple[Any, ...] | None:
    """Return coordinates of operands that fit an operation, or None if it is undefined."""
    chained = isinstance(c, (PositionCoord, OrientationCoord, PoseCoord))
    velocity = isinstance(c, (LinearVelocityCoord, AngularVelocityCoord, TwistCoord))
    if op in ("inverse", "inverse2"):
        return () if op == "inverse" or isinstance(c, (OrientationCoord, PoseCoord)) else None
    if op == "compose" and (chained or velocity):
        new = names.coord(type(c)).replace(body=c.ref_body)
        links = {"point": "ref_point", "ori": "ref_ori"} if chained else {"point": "point"}
        new = new.replace(
            **{
                to: getattr(c, link)
                for to, link in links.items()
                if to in c.fields and link in c.fields
            }
        )
        own = isinstance(c, PoseCoord) or (isinstance(c, OrientationCoord) and c.coord == c.ref_ori)
        return (new.replace(coord=new.ref_ori if own else c.coord),)
    if op == "change_reference_body" and velocity:
        new = names.coord(type(c)).replace(body=c.ref_body, coord=c.coord)
        return (new.replace(point=c.point) if "point" in c.fields else new,)
    if op == "change_coordinate_frame":
        to = names.frame()
        return (OrientationCoord(f"[{c.coord}]|X", f"[{to}]|Y", f"[{to}]"),)
    if op in ("change_point", "change_point_body") and "point" in c.fields:
        body = c.body if op == "change_point" else TWINS.get(c.body, "")
        if not body or (
            op == "change_point_body" and not isinstance(c, (PositionCoord, TwistCoord))
        ):
            return None
        free = {LinearVelocityCoord: AngularVelocityCoord, TorqueCoord: ForceCoord}.get(type(c))
        way = PositionCoord(f"{names.frame(body)}|{body}", f"{c.point}|{c.body}", f"[{c.coord}]")
        return (
            (way, free.from_names(body=c.body, ref_body=c.ref_body, coord=c.coord))
            if free
            else (way,)
        )
    if op in ("change_reference_point", "change_reference_point_body") and "ref_point" in c.fields:
        body = c.ref_body if op == "change_reference_point" else TWINS.get(c.ref_body, "")
        if not body or (op == "change_reference_point_body" and not isinstance(c, PositionCoord)):
            return None
        return (
            PositionCoord(
                f"{c.ref_point}|{c.ref_body}", f"{names.frame(body)}|{body}", f"[{c.coord}]"
            ),
        )
    if op == "change_orientation_frame" and "ori" in c.fields:
        return (
            OrientationCoord(
                f"[{names.frame(c.body)}]|{c.body}", f"[{c.ori}]|{c.body}", f"[{c.ori}]"
            ),
        )
    if op == "change_reference_orientation_frame" and "ori" in c.fields:
        to = names.frame(c.ref_body)
        return (OrientationCoord(f"[{c.ref_ori}]|{c.ref_body}", f"[{to}]|{c.ref_body}", f"[{to}]"),)
    return None


OPERATIONS = [
    "inverse",
    "inverse2",
    "compose",
    "change_point",
    "change_point_body",
    "change_reference_point",
    "change_reference_point_body",
    "change_orientation_frame",
    "change_reference_orientation_frame",
    "change_coordinate_frame",
    "change_reference_body",
]
KIND = st.sampled_from(KINDS)


def holds(world: RigidWorld, made: Any) -> None:
    """Assert that a relation has the numbers that matrices give for what it says."""
    for ours, theirs in zip(made.numbers, by_matrices(world, made.coord), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


@given(st.data(), KIND, st.integers(0, 20))
@settings(max_examples=scaled_examples(1.5))
def test_any_sequence_of_operations_gives_what_matrices_give(
    data: st.DataObject, kind: type, seed: int
) -> None:
    """Valid operations on relations of a world give relations of that world."""
    world, names = rigid_world(seed), Names(lambda strategy: data.draw(strategy))
    now: SemanticRelation = relation(world, names.coord(kind))
    steps = 0
    for _ in range(8):
        op = data.draw(st.sampled_from(OPERATIONS))
        others = operand(names, op, now.coord)
        if others is None:
            continue
        try:
            made = apply(op, now, *(relation(world, coord) for coord in others))
        except SemanticError:
            continue
        holds(world, made)
        now, steps = relation(world, made.coord), steps + 1  # in any representation that can say it
    assume(steps > 0)


@given(st.data(), KIND, st.integers(0, 5))
@settings(max_examples=scaled_examples(3))
def test_a_false_name_is_rejected_or_makes_no_difference(
    data: st.DataObject, kind: type, seed: int
) -> None:
    """A wrong name in one operand is rejected, or gives the relation of that name."""
    world, names = rigid_world(seed), Names(lambda strategy: data.draw(strategy))
    first = names.coord(kind)
    op = data.draw(
        st.sampled_from([op for op in OPERATIONS if operand(names, op, first) is not None])
    )
    others = operand(names, op, first)
    assert others is not None
    operands: list[Any] = [relation(world, coord) for coord in (first, *others)]
    try:
        good = apply(op, *operands)
    except SemanticError:
        assume(False)
    holds(world, good)
    before = [operand.coord for operand in operands]
    which = data.draw(st.integers(0, len(operands) - 1))
    field = data.draw(st.sampled_from(operands[which].coord.fields))
    true = getattr(operands[which].coord, field)
    pool = [*FRAMES, "ZZ"] if field.endswith("body") else [*BODIES, "zz"]
    false = data.draw(st.sampled_from([name for name in pool if name != true]))
    try:
        wrong = operands[which].coord.replace(**{field: false})
        operands[which] = type(operands[which])(wrong, operands[which].representation)
        result = apply(op, *operands)
    except SemanticError:
        return
    if (
        op == "compose"
        and compose(*before)[1] != compose(*(operand.coord for operand in operands))[1]
    ):
        # a relation and its way back: with the false name they chain the other way round, which is
        # said
        return
    changed = [
        name
        for name in good.coord.fields
        if getattr(result.coord, name) != getattr(good.coord, name)
    ]
    # where the false name is told, it stands in the place of the true one and nowhere else
    assert all(
        getattr(result.coord, name) == false and getattr(good.coord, name) == true
        for name in changed
    )
    for ours, theirs in zip(result.numbers, good.numbers, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    # nobody asked: the bodies of the orientation by which a coordinate frame is changed
    if not changed:
        assert (op, which, field) in {
            ("change_coordinate_frame", 1, "body"),
            ("change_coordinate_frame", 1, "ref_body"),
        }
