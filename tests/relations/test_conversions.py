"""Conversion of relations from and to ROS, pinocchio, KDL and Drake, and rejected values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, strategies as st

import tmkit as tk
from tmkit.errors import UnknownNameError
from tmkit.relations import (
    ForceCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    SemanticAngularVelocity,
    SemanticError,
    SemanticForce,
    SemanticLinearVelocity,
    SemanticOrientation,
    SemanticPose,
    SemanticPosition,
    SemanticTorque,
    SemanticTwist,
    SemanticWrench,
    TwistCoord,
    WrenchCoord,
)
from tmkit.relations.conversions import (
    from_drake,
    from_kdl,
    from_pinocchio,
    from_ros,
    to_drake,
    to_kdl,
    to_pinocchio,
    to_ros,
)
from tmkit.relations.conversions.libraries import drake_name, pinocchio_twist, pinocchio_wrench
from tmkit.relations.representations import RotationVector, VectorAndMatrix
from tmkit.relations.semantic.base import SemanticRelation
from tmkit.relations.semantics import AngularVelocityCoord, Coord, LinearVelocityCoord, TorqueCoord

NUMBERS = st.integers(-2_000_000, 2_000_000).map(lambda number: number / 1e6)
SIX = st.tuples(*[NUMBERS] * 6).map(np.array)
MATRIX = tk.Pose.from_rpy([0.3, -0.7, 1.1], [0.9, -0.4, 0.6]).as_matrix()
POSE = SemanticPose(PoseCoord("{g}|C", "{h}|D", "[h]"), MATRIX)
ORIENTATION = SemanticOrientation(OrientationCoord("[g]|C", "[h]|D", "[h]"), MATRIX[:3, :3])
TWIST = SemanticTwist(TwistCoord("g|C", "D", "[h]"), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
WRENCH = SemanticWrench(WrenchCoord("g|C", "D", "[g]"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
VECTORS: list[SemanticRelation] = [
    SemanticPosition(PositionCoord("e|C", "h|D", "[h]"), [1.0, 2.0, 3.0]),
    SemanticLinearVelocity(LinearVelocityCoord("e|C", "D", "[h]"), [1.0, 2.0, 3.0]),
    SemanticAngularVelocity(AngularVelocityCoord("C", "D", "[h]"), [1.0, 2.0, 3.0]),
    SemanticForce(ForceCoord("C", "D", "[h]"), [1.0, 2.0, 3.0]),
    SemanticTorque(TorqueCoord("e|C", "D", "[h]"), [1.0, 2.0, 3.0]),
]
OFF_FRAME = SemanticPose(
    PoseCoord("(e,[g])|C", "{h}|D", "[h]"), VectorAndMatrix(MATRIX[:3, 3], MATRIX[:3, :3])
)


def same(found: SemanticRelation, relation: SemanticRelation) -> None:
    """Require two relations to be the same, numbers and all."""
    assert found.coord == relation.coord
    for left, right in zip(found.numbers, relation.numbers, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-15)


# ---------------------------------------------------------------------------------------- pinocchio


def test_pinocchio_keeps_poses_twists_and_wrenches() -> None:
    """Objects of pinocchio convert back, with pinocchio's own numbers."""
    placement = to_pinocchio(POSE, pin.SE3)
    np.testing.assert_array_equal(placement.homogeneous, MATRIX)
    same(from_pinocchio(placement, POSE.coord), POSE)
    motion = to_pinocchio(TWIST, pin.Motion)
    np.testing.assert_array_equal(motion.vector, np.concatenate(TWIST.numbers))
    same(from_pinocchio(motion, TWIST.coord), TWIST)
    force = to_pinocchio(WRENCH, pin.Force)
    np.testing.assert_array_equal(force.linear, WRENCH.numbers[0])
    same(from_pinocchio(force, WRENCH.coord), WRENCH)
    same(from_pinocchio(placement.rotation, ORIENTATION.coord), ORIENTATION)
    same(from_pinocchio(np.array([1.0, 2.0, 3.0]), VECTORS[0].coord), VECTORS[0])


def test_pinocchios_reference_frames_mean_what_their_coordinates_say() -> None:
    """Rules convert a velocity between reference frames to the numbers of pinocchio."""
    model = pin.buildSampleModelManipulator()
    data = model.createData()
    rng = np.random.default_rng(0)
    q, v = pin.randomConfiguration(model), rng.normal(size=model.nv)
    pin.forwardKinematics(model, data, q, v)
    pin.updateFramePlacements(model, data)
    tip = model.nframes - 1
    placement = data.oMf[tip]
    found = {
        reference: from_pinocchio(
            pin.getFrameVelocity(model, data, tip, reference),
            pinocchio_twist(reference, frame="{g}|C", world="{h}|D"),
        )
        for reference in (pin.LOCAL, pin.WORLD, pin.LOCAL_WORLD_ALIGNED)
    }
    assert [twist.coord for twist in found.values()] == [
        TwistCoord("g|C", "D", "[g]"),
        TwistCoord("h|C", "D", "[h]"),
        TwistCoord("g|C", "D", "[h]"),
    ]
    turned = SemanticOrientation(OrientationCoord("[g]|C", "[h]|D", "[h]"), placement.rotation)
    aligned = found[pin.LOCAL].change_coordinate_frame(turned)
    np.testing.assert_allclose(
        aligned.representation.vector, found[pin.LOCAL_WORLD_ALIGNED].representation.vector
    )
    to_origin = SemanticPosition(PositionCoord("h|C", "g|C", "[h]"), -placement.translation)
    spatial = aligned.change_point(to_origin)
    np.testing.assert_allclose(
        spatial.representation.vector, found[pin.WORLD].representation.vector, atol=1e-12
    )


@given(SIX, SIX, SIX)
def test_pinocchios_transforms_are_changes_of_axes_and_point(xi: Any, six: Any, other: Any) -> None:
    """``SE3.act`` on a motion or force changes axes and point at once."""
    pose = SemanticPose(PoseCoord("{g}|C", "{h}|D", "[h]"), tk.Pose.exp(list(xi)))
    placement = to_pinocchio(pose, pin.SE3)
    way = SemanticPosition(PositionCoord("h|C", "g|C", "[h]"), -pose.numbers[0])
    local = SemanticTwist(pinocchio_twist("LOCAL", frame="{g}|C", world="{h}|D"), six)
    acted = placement.act(to_pinocchio(local, pin.Motion))
    world = local.change_coordinate_frame(pose.orientation).change_point(way)
    assert world.coord == pinocchio_twist("WORLD", frame="{g}|C", world="{h}|D")
    np.testing.assert_allclose(acted.vector, np.concatenate(world.numbers), atol=1e-9)
    on = SemanticWrench(pinocchio_wrench("LOCAL", frame="{g}|C", world="{h}|D", by="D"), other)
    acted = placement.act(to_pinocchio(on, pin.Force))
    about = on.change_coordinate_frame(pose.orientation).change_point(way)
    assert about.coord == pinocchio_wrench("WORLD", frame="{g}|C", world="{h}|D", by="D")
    np.testing.assert_allclose(acted.vector, np.concatenate(about.numbers), atol=1e-9)
    assert on.dot(local) == pytest.approx(about.dot(world), abs=1e-9)


def test_what_pinocchio_cannot_hold_is_rejected() -> None:
    """Poses not between frames, other relations and unknown reference frames are rejected."""
    with pytest.raises(
        SemanticError, match=r"a homogeneous matrix is .*: with_representation\(VectorAndMatrix\)"
    ):
        to_pinocchio(OFF_FRAME, pin.SE3)
    with pytest.raises(
        SemanticError, match=r"poses, twists and wrenches \(a SemanticForce\); use numbers\[0\]"
    ):
        to_pinocchio(VECTORS[3], pin.Force)
    with pytest.raises(
        SemanticError, match=r"it has linear and angular \(a SE3 has no linear, no angular\)"
    ):
        from_pinocchio(pin.SE3.Identity(), TWIST.coord)
    with pytest.raises(SemanticError, match="coordinates give the semantics of the numbers"):
        from_pinocchio(pin.SE3.Identity(), "hand")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match=r"reference frame of pinocchio 'LOCALE'.*'LOCAL'"):
        pinocchio_twist("LOCALE", frame="{g}|C", world="{h}|D")


# ---------------------------------------------------------------------------------------------- ROS


def vector() -> SimpleNamespace:
    """Return an empty Vector3 or Point."""
    return SimpleNamespace(x=0.0, y=0.0, z=0.0)


def message(**members: Any) -> SimpleNamespace:
    """Return a message with a header and members."""
    return SimpleNamespace(header=SimpleNamespace(frame_id="", stamp=12), **members)


def quaternion() -> SimpleNamespace:
    """Return an empty Quaternion."""
    return SimpleNamespace(x=0.0, y=0.0, z=0.0, w=0.0)


def pose_message() -> SimpleNamespace:
    """Return an empty Pose."""
    return SimpleNamespace(position=vector(), orientation=quaternion())


def transform_stamped() -> SimpleNamespace:
    """Return an empty TransformStamped."""
    return message(
        child_frame_id="", transform=SimpleNamespace(translation=vector(), rotation=quaternion())
    )


def twist_message() -> SimpleNamespace:
    """Return an empty Twist."""
    return SimpleNamespace(linear=vector(), angular=vector())


def odometry() -> SimpleNamespace:
    """Return an empty Odometry."""
    return message(
        child_frame_id="",
        pose=SimpleNamespace(pose=pose_message(), covariance=[7.0] * 36),
        twist=SimpleNamespace(twist=twist_message(), covariance=[8.0] * 36),
    )


@pytest.mark.parametrize(
    ("relation", "empty"),
    [
        (POSE, pose_message()),
        (POSE, message(pose=pose_message())),
        (POSE, message(pose=SimpleNamespace(pose=pose_message(), covariance=[]))),
        (POSE, transform_stamped()),
        (POSE, odometry()),
        (POSE, None),
        (ORIENTATION, quaternion()),
        (ORIENTATION, message(quaternion=quaternion())),
        (ORIENTATION, None),
        (TWIST, twist_message()),
        (TWIST, message(twist=twist_message())),
        (TWIST, message(body_frame_id="", reference_frame_id="d", velocity=twist_message())),
        (TWIST, None),
        (WRENCH, message(wrench=SimpleNamespace(force=vector(), torque=vector()))),
        (WRENCH, {"force": dict.fromkeys("xyz", 0.0), "torque": dict.fromkeys("xyz", 0.0)}),
        (WRENCH, None),
        *(
            (relation, empty)
            for relation in VECTORS
            for empty in (vector(), message(vector=vector()), None)
        ),
        (VECTORS[0], message(point=vector())),
    ],
)
def test_messages_hold_relations(relation: SemanticRelation, empty: Any) -> None:
    """Filled messages have frame ids, convert back, and keep their other fields."""
    filled = to_ros(relation, empty)
    assert empty is None or filled is empty
    same(from_ros(filled, relation.coord), relation)
    if hasattr(filled, "header"):
        assert filled.header.frame_id == relation.coord.coord
        assert filled.header.stamp == 12
    if empty is None:
        assert filled["header"]["frame_id"] == relation.coord.coord
        assert "quaternion" in filled or not isinstance(relation, SemanticOrientation)
        assert all(type(value) is float for value in _leaves(filled))


def _leaves(part: dict[str, Any]) -> list[Any]:
    """Return the numbers in a dictionary."""
    return [
        leaf
        for name, value in part.items()
        if name != "header"
        for leaf in (_leaves(value) if isinstance(value, dict) else [value])
    ]


def test_an_odometry_has_its_pose_in_the_parent_and_its_twist_in_the_child() -> None:
    """Coordinates select one of two relations in a message."""
    body = TwistCoord("g|C", "D", "[g]")
    filled = to_ros(SemanticTwist(body, TWIST.representation), to_ros(POSE, odometry()))
    assert (filled.header.frame_id, filled.child_frame_id) == ("h", "g")
    same(from_ros(filled, POSE.coord), POSE)
    np.testing.assert_array_equal(
        from_ros(filled, body).representation.vector, TWIST.representation.vector
    )
    with pytest.raises(
        SemanticError,
        match=r"that of its child_frame_id, in its axes \(it is 'g' and the coordinate ",
    ):
        from_ros(filled, TwistCoord("g|C", "D", "[h]"))
    with pytest.raises(
        SemanticError, match="the twist of an Odometry is that of its child_frame_id"
    ):
        to_ros(TWIST, odometry())


def test_frames_that_a_message_names_are_compared() -> None:
    """All that a message says and its coordinates do not is told at once."""
    filled = to_ros(POSE, transform_stamped())
    with pytest.raises(SemanticError) as caught:
        from_ros(filled, PoseCoord("{e}|C", "{f}|D", "[f]"))
    assert [str(broken) for broken in caught.value.violations] == [
        "header.frame_id names the axes (it is 'h' and the coordinate frame is 'f')",
        (
            "header.frame_id names the frame whose origin is the reference point"
            " (it is 'h' and the reference point is 'f')"
        ),
        "child_frame_id names the frame of a pose (it is 'g' and the orientation frame is 'e')",
        "child_frame_id names the frame of a pose (it is 'g' and the point is 'e')",
    ]
    velocity = message(body_frame_id="g", reference_frame_id="d", velocity=twist_message())
    velocity.header.frame_id = "h"
    with pytest.raises(
        SemanticError, match=r"body_frame_id names the frame .* \(it is 'g' and the point is 'e'\)"
    ):
        from_ros(velocity, TwistCoord("e|C", "D", "[h]"))
    with pytest.raises(SemanticError, match=r"the origin is|whose origin is the reference point"):
        from_ros(to_ros(VECTORS[0]), PositionCoord("e|C", "f|D", "[h]"))


def test_what_a_message_cannot_say_is_rejected() -> None:
    """Relations that a message cannot represent are rejected."""
    with pytest.raises(
        SemanticError,
        match=r"that of a frame \(point e and orientation frame g\); change the point",
    ):
        to_ros(OFF_FRAME)
    elsewhere = SemanticWrench(WrenchCoord("e|C", "D", "[g]"), WRENCH.representation)
    with pytest.raises(
        SemanticError, match="with a header is taken to act at the origin of its frame"
    ):
        to_ros(elsewhere)
    assert to_ros(elsewhere, SimpleNamespace(force=vector(), torque=vector())).torque.z == 6.0
    with pytest.raises(
        SemanticError, match="set reference_frame_id to a frame of the reference body first"
    ):
        to_ros(TWIST, message(body_frame_id="", reference_frame_id="", velocity=twist_message()))
    with pytest.raises(
        SemanticError, match=r"relative to the origin of its frame .* or send a Vector3Stamped"
    ):
        to_ros(SemanticPosition(PositionCoord("e|C", "f|D", "[h]"), [1.0, 2.0, 3.0]))
    with pytest.raises(
        SemanticError, match=r"has the members linear, angular, itself or in twist or velocity"
    ):
        to_ros(TWIST, pose_message())
    with pytest.raises(
        SemanticError, match=r"has the members x, y, z, itself or in vector \(a Simple"
    ):
        from_ros(quaternion(), VECTORS[1].coord)
    with pytest.raises(SemanticError, match=r"all four numbers are 0\); the sender did not set it"):
        from_ros(pose_message(), POSE.coord)
    two, three = {"x": 1.0, "y": 2.0}, {"x": 1.0, "y": 2.0, "z": 3.0}
    with pytest.raises(SemanticError, match=r"it has the members x, y, z \(a dict has no z\)"):
        from_ros({"linear": three, "angular": two}, TWIST.coord)
    with pytest.raises(
        SemanticError, match=r"the argument is a relation with numbers \(TwistCoord"
    ):
        to_ros(TWIST.coord)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------ KDL and Drake


class Kdl:
    """Classes with the members of PyKDL's."""

    class Vector(list[float]):
        """Three numbers."""

        def __init__(self, *numbers: float) -> None:
            super().__init__(numbers)

    class Rotation:
        """Nine numbers, row by row."""

        def __init__(self, *numbers: float) -> None:
            self.matrix = np.reshape(numbers, (3, 3))

        def __getitem__(self, index: tuple[int, int]) -> float:
            return float(self.matrix[index])

    class Frame:
        """A rotation and a vector."""

        def __init__(self, rotation: Any, vector: Any) -> None:
            self.M, self.p = rotation, vector

    class Twist:
        """Two vectors."""

        def __init__(self, vel: Any, rot: Any) -> None:
            self.vel, self.rot = vel, rot

    class Wrench:
        """Two vectors."""

        def __init__(self, force: Any, torque: Any) -> None:
            self.force, self.torque = force, torque


@pytest.mark.parametrize(
    "relation", [POSE, ORIENTATION, TWIST, WRENCH, *VECTORS], ids=lambda x: x.coord.relation
)
def test_kdl_keeps_relations(relation: SemanticRelation) -> None:
    """Each relation has a class in KDL that holds its numbers."""
    made = to_kdl(relation, Kdl)
    same(from_kdl(made, relation.coord), relation)


def test_kdl_has_the_linear_part_first() -> None:
    """The halves of a twist go by name, and those of a frame too."""
    assert (to_kdl(TWIST, Kdl).vel, to_kdl(TWIST, Kdl).rot) == ([0.1, 0.2, 0.3], [0.4, 0.5, 0.6])
    frame = to_kdl(POSE, Kdl)
    np.testing.assert_array_equal(frame.M.matrix, MATRIX[:3, :3])
    assert frame.p == MATRIX[:3, 3].tolist()


def test_what_kdl_cannot_hold_is_rejected() -> None:
    """Poses off their frames, rotations in other axes, objects of another kind."""
    with pytest.raises(SemanticError, match="the point of a homogeneous matrix"):
        to_kdl(OFF_FRAME, Kdl)
    turned = SemanticOrientation(
        OrientationCoord("[a]|C", "[b]|D", "[r]"), RotationVector([0.0, 0.0, 0.3])
    )
    with pytest.raises(
        SemanticError, match="a rotation matrix is expressed in its reference orientation frame"
    ):
        to_kdl(turned, Kdl)
    with pytest.raises(SemanticError, match=r"it has vel and rot \(a Vector has no vel, no rot\)"):
        from_kdl(Kdl.Vector(1, 2, 3), TWIST.coord)
    with pytest.raises(SemanticError, match=r"a vector has the elements 0, 1 and 2 \(a Twist\)"):
        from_kdl(Kdl.Twist(1, 2), VECTORS[0].coord)
    with pytest.raises(
        SemanticError, match=r"a rotation has the elements \[0, 0\] to \[2, 2\] \(a Vector\)"
    ):
        from_kdl(Kdl.Vector(1, 2, 3), ORIENTATION.coord)
    with pytest.raises(SemanticError, match="the argument is a relation with numbers"):
        to_kdl(TWIST.coord, Kdl)  # type: ignore[arg-type]


class Spatial:
    """A spatial vector like Drake's, made of its rotational and its translational part."""

    def __init__(self, rotational: Any, translational: Any) -> None:
        self.vector = np.concatenate([rotational, translational])

    def rotational(self) -> Any:
        """Return the first half."""
        return self.vector[:3]

    def translational(self) -> Any:
        """Return the second half."""
        return self.vector[3:]


class Turned:
    """A rotation matrix like Drake's."""

    def __init__(self, matrix: Any) -> None:
        self.held = matrix

    def matrix(self) -> Any:
        """Return the matrix."""
        return self.held


class Transform:
    """A rigid transform like Drake's."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def translation(self) -> Any:
        """Return the position."""
        return self.matrix[:3, 3]

    def rotation(self) -> Turned:
        """Return the rotation."""
        return Turned(self.matrix[:3, :3])


@pytest.mark.parametrize(
    ("relation", "into"),
    [(POSE, Transform), (ORIENTATION, Turned), (TWIST, Spatial), (WRENCH, Spatial)],
    ids=["pose", "orientation", "twist", "wrench"],
)
def test_drake_keeps_relations(relation: SemanticRelation, into: Any) -> None:
    """Each relation that Drake has a class for goes out and comes in."""
    same(from_drake(to_drake(relation, into), relation.coord), relation)


def test_drake_has_the_rotational_part_first() -> None:
    """The halves change places on the way, and plain vectors come in as they are."""
    assert to_drake(TWIST, Spatial).vector.tolist() == [0.4, 0.5, 0.6, 0.1, 0.2, 0.3]
    same(from_drake([1.0, 2.0, 3.0], VECTORS[3].coord), VECTORS[3])
    with pytest.raises(
        SemanticError, match=r"twists and wrenches \(a SemanticForce\); use numbers\[0\]"
    ):
        to_drake(VECTORS[3], Spatial)


@pytest.mark.parametrize(
    ("coord", "name"),
    [
        (PoseCoord("{g}|C", "{h}|D", "[h]"), "X_HG"),
        (PoseCoord("{cup}|Cup", "{hand}|Hand", "[hand]"), "X_HandCup"),
        (OrientationCoord("[a]|C", "[b]|D", "[b]"), "R_BA"),
        (PositionCoord("e|C", "f|D", "[r]"), "p_DfCe_R"),
        (LinearVelocityCoord("e|C", "D", "[r]"), "v_DCe_R"),
        (AngularVelocityCoord("C", "D", "[r]"), "w_DC_R"),
        (TwistCoord("g|C", "D", "[g]"), "V_DCg_G"),
        (TwistCoord("h|C", "D", "[h]"), "V_DCh_H"),
        (ForceCoord("C", "D", "[r]"), "f_C_R"),
        (TorqueCoord("e|C", "D", "[r]"), "t_Ce_R"),
        (WrenchCoord("e|C", "D", "[r]"), "F_Ce_R"),
    ],
)
def test_names_in_the_monogram_notation(coord: Coord, name: str) -> None:
    """Kind, reference, target, axes."""
    assert drake_name(coord) == name


def test_what_has_no_monogram_is_rejected() -> None:
    """Transforms are between frames, rotation matrices in the axes of the reference."""
    with pytest.raises(
        SemanticError,
        match="the point of a homogeneous matrix is the origin of its orientation frame",
    ):
        drake_name(PoseCoord("(e,[a])|C", "{b}|D", "[b]"))
    with pytest.raises(
        SemanticError, match="a rotation matrix is expressed in its reference orientation frame"
    ):
        drake_name(OrientationCoord("[a]|C", "[b]|D", "[r]"))
