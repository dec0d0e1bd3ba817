"""Positions, orientations and poses with numbers."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from tmkit.relations import representations as reps, rules
from tmkit.relations.representation import Numbers, Vector
from tmkit.relations.semantic.base import SemanticRelation, coord_of
from tmkit.relations.semantics import OrientationCoord, PoseCoord, PositionCoord


class _Constant(SemanticRelation):
    """What positions, orientations and poses have in common."""

    __slots__ = ()

    def change_reference_body(self, by: str | _Constant) -> Self:
        """Return the relation relative to another body, rigidly joined to its reference body.

        Args:
            by: a position, orientation or pose of one of the two bodies relative to the other, which stays as it is;
                or the name of the new body. That they are joined is not checked.

        Raises:
            SemanticError: ``by`` is not a relation of the reference body.
        """
        return self._of(rules.change_ref_body(self.coord, _coord_or_name(by)), self.representation)

    def change_body(self, by: str | _Constant) -> Self:
        """Return the relation with its point and frame taken as those of another body, rigidly joined to the body.

        Args:
            by: a position, orientation or pose of one of the two bodies relative to the other, which stays as it is;
                or the name of the new body. That they are joined is not checked.

        Raises:
            SemanticError: ``by`` is not a relation of the body.
        """
        return self._of(rules.change_body(self.coord, _coord_or_name(by)), self.representation)


def _coord_or_name(by: Any) -> Any:
    return by.coord if isinstance(by, SemanticRelation) else by


class SemanticPosition(_Constant):
    """A position with numbers: a vector (3,) in metres from the reference point to the point, or a representation."""

    __slots__ = ()
    coord: PositionCoord
    coord_class = PositionCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {(3,): reps.PositionVector}

    def change_point(self, by: SemanticPosition) -> Self:
        """Return the position of another point of the same body; ``by`` is its position relative to the old one.

        Raises:
            SemanticError: ``by`` does not begin at the point, or is expressed elsewhere.
        """
        return self._result(rules.change_point(self.coord, coord_of(by, "Position")), self.numbers[0] + by.numbers[0])

    def change_point_body(self, by: SemanticPosition) -> Self:
        """Return the position of a point of a rigidly joined body; that they are joined is not checked.

        Args:
            by: the position of the new point, on the other body, relative to the old one, in the same axes.

        Raises:
            SemanticError: ``by`` does not begin at the point, or is expressed elsewhere.
        """
        coord = rules.change_point(self.coord, coord_of(by, "Position"), keeps_body=False)
        return self._result(coord, self.numbers[0] + by.numbers[0])

    def change_reference_point(self, by: SemanticPosition) -> Self:
        """Return the position relative to another point; ``by`` is that of the old reference point relative to it.

        Raises:
            SemanticError: ``by`` does not end at the reference point, or is expressed elsewhere.
        """
        return self._result(
            rules.change_ref_point(self.coord, coord_of(by, "Position")), self.numbers[0] + by.numbers[0]
        )

    def change_reference_point_body(self, by: SemanticPosition) -> Self:
        """Return the position relative to a point of a rigidly joined body; that they are joined is not checked.

        Args:
            by: the position of the old reference point relative to the new one, on the other body, in the same axes.

        Raises:
            SemanticError: ``by`` does not end at the reference point, or is expressed elsewhere.
        """
        coord = rules.change_ref_point(self.coord, coord_of(by, "Position"), keeps_body=False)
        return self._result(coord, self.numbers[0] + by.numbers[0])


class SemanticOrientation(_Constant):
    """An orientation with numbers.

    Taken are a rotation matrix (3, 3), its columns the axes in the reference frame; a unit quaternion (4,), its vector
    part first; a rotation vector (3,) in radians; or a representation.
    """

    __slots__ = ()
    coord: OrientationCoord
    coord_class = OrientationCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {
        (3, 3): reps.RotationMatrix,
        (4,): reps.UnitQuaternion,
        (3,): reps.RotationVector,
    }

    def _inverted(self) -> Numbers:
        return (self.numbers[0].T,)

    def _chained(self, other: Self) -> Numbers:
        (first,), (second,) = self.numbers, other.numbers
        is_own = self.coord.coord == self.coord.ref_ori and other.coord.coord == other.coord.ref_ori
        return (second @ first if is_own else first @ second,)

    def _turned(self, turned: Vector) -> Numbers:
        return (turned @ self.numbers[0] @ turned.T,)

    def inverse2(self) -> Self:
        """Return the orientation the other way round, expressed in its own reference frame.

        Raises:
            SemanticError: it is not expressed in its reference orientation frame.
        """
        return self._result(rules.inverse2(self.coord), self.numbers[0].T)

    def change_orientation_frame(self, by: SemanticOrientation) -> Self:
        """Return the orientation of another frame of the same body; ``by`` is its orientation relative to the old one.

        Raises:
            SemanticError: ``by`` does not begin at the orientation frame.
        """
        return self._result(rules.change_ori(self.coord, coord_of(by, "Orientation")), self.numbers[0] @ by.numbers[0])

    def change_reference_orientation_frame(self, by: SemanticOrientation) -> Self:
        """Return the orientation relative to another frame; ``by`` is that of the old reference relative to it.

        Raises:
            SemanticError: ``by`` does not end at the reference orientation frame.
        """
        return self._result(
            rules.change_ref_ori(self.coord, coord_of(by, "Orientation")), by.numbers[0] @ self.numbers[0]
        )


class SemanticPose(_Constant):
    """A pose with numbers: a homogeneous matrix (4, 4), a :class:`tmkit.Pose`, or a representation."""

    __slots__ = ()
    coord: PoseCoord
    coord_class = PoseCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {
        (4, 4): reps.HomogeneousMatrix,
        (): reps.VectorAndQuaternion.of_pose,
    }

    @classmethod
    def of(cls, position: SemanticPosition, orientation: SemanticOrientation) -> Self:
        """Create a pose from a position and an orientation.

        Args:
            position: relations between the same bodies, expressed in the same frame.
            orientation: relations between the same bodies, expressed in the same frame.

        Raises:
            SemanticError: they speak of different bodies or frames of expression.
        """
        coord = rules.pose_of(coord_of(position, "Position"), coord_of(orientation, "Orientation"))
        held = reps.VectorAndMatrix if coord.coord == coord.ref_ori else reps.VectorAndRotationVector
        return cls(coord, held.of((position.numbers[0], orientation.numbers[0])))

    @property
    def position(self) -> SemanticPosition:
        """The position in it."""
        return SemanticPosition(rules.position_of(self.coord), reps.PositionVector.of(self.numbers[:1]))

    @property
    def orientation(self) -> SemanticOrientation:
        """The orientation in it, as a matrix where it may be one, else as a rotation vector."""
        coord = rules.orientation_of(self.coord)
        chosen = reps.RotationMatrix if coord.coord == coord.ref_ori else reps.RotationVector
        return SemanticOrientation(coord, chosen.of((self.numbers[1],)))

    def _inverted(self) -> Numbers:
        p, turned = self.numbers
        return -p, turned.T

    def _chained(self, other: Self) -> Numbers:
        (p1, q1), (p2, q2) = self.numbers, other.numbers
        return p2 + q2 @ p1, q2 @ q1

    def _turned(self, turned: Vector) -> Numbers:
        p, q = self.numbers
        return turned @ p, turned @ q @ turned.T

    def inverse2(self) -> Self:
        """Return the pose the other way round, expressed in its own reference frame.

        Raises:
            SemanticError: it is not expressed in its reference orientation frame.
        """
        p, q = self.numbers
        return self._result(rules.inverse2(self.coord), -(q.T @ p), q.T)

    def change_point(self, by: SemanticPosition) -> Self:
        """Return the pose with another point of the same body; ``by`` is its position relative to the old one.

        Raises:
            SemanticError: ``by`` does not begin at the point, or the representation does not allow it.
        """
        p, q = self.numbers
        return self._result(rules.change_point(self.coord, coord_of(by, "Position")), p + by.numbers[0], q)

    def change_reference_point(self, by: SemanticPosition) -> Self:
        """Return the pose relative to another point; ``by`` is the position of the old reference point relative to it.

        Raises:
            SemanticError: ``by`` does not end at the reference point, or the representation does not allow it.
        """
        p, q = self.numbers
        return self._result(rules.change_ref_point(self.coord, coord_of(by, "Position")), p + by.numbers[0], q)

    def change_orientation_frame(self, by: SemanticOrientation) -> Self:
        """Return the pose with another orientation frame; ``by`` is its orientation relative to the old one.

        Raises:
            SemanticError: ``by`` does not begin at the orientation frame, or the representation does not allow it.
        """
        p, q = self.numbers
        return self._result(rules.change_ori(self.coord, coord_of(by, "Orientation")), p, q @ by.numbers[0])

    def change_reference_orientation_frame(self, by: SemanticOrientation) -> Self:
        """Return the pose relative to another orientation frame, expressed there.

        Args:
            by: the orientation of the old reference frame relative to the new one, expressed in the new one.

        Raises:
            SemanticError: ``by`` does not end at the reference orientation frame, or the representation does not
                allow it.
        """
        p, q = self.numbers
        return self._result(
            rules.change_ref_ori(self.coord, coord_of(by, "Orientation")), by.numbers[0] @ p, by.numbers[0] @ q
        )
