"""Positions, orientations and poses with numbers."""

from __future__ import annotations

import operator
from typing import Any, ClassVar, Self

import numpy as np

from tmkit.relations import representations as reps, rules
from tmkit.relations.representation import Numbers
from tmkit.relations.semantic import values
from tmkit.relations.semantic.base import SemanticRelation, apply_binary, coord_of, require_one
from tmkit.relations.semantic.operations import Operation, require_representable
from tmkit.relations.semantic.values import Value
from tmkit.relations.semantics import OrientationCoord, PoseCoord, PositionCoord
from tmkit.spatial import GaussianPose, Pose


class _Constant(SemanticRelation):
    """Base class of positions, orientations and poses."""

    __slots__ = ()

    def change_reference_body(self, by: str | _Constant) -> Self:
        """Return the relation relative to another body, rigidly joined to its reference body.

        ``by`` is a constant position, orientation or pose between the two bodies, in either
        direction, or the name of the new body. The rigid connection is not checked.

        Raises:
            SemanticError: if ``by`` is not a relation of the reference body.
        """
        return self._with_coord(rules.change_ref_body(self.coord, _coord_or_name(by)))

    def change_body(self, by: str | _Constant) -> Self:
        """Return the same relation of another body that is rigidly joined to the body.

        ``by`` is as for :meth:`change_reference_body`, of the body in place of its reference body.

        Raises:
            SemanticError: if ``by`` is not a relation of the body.
        """
        return self._with_coord(rules.change_body(self.coord, _coord_or_name(by)))

    def __matmul__(self, other: Self) -> Self:  # type: ignore[override]
        """Return the composition if only one order of the operands chains; see ``compose``."""
        if not isinstance(other, SemanticRelation):
            self._raise_no_operator(other)
        return apply_binary("@", self, other)


def _coord_or_name(by: Any) -> Any:
    return by.coord if isinstance(by, SemanticRelation) else by


class SemanticPosition(_Constant):
    """Position with numbers: a vector (3,) from the reference point to the point [m].

    The argument is a vector or a representation.
    """

    __slots__ = ()
    coord: PositionCoord
    coord_class = PositionCoord
    by_shape: ClassVar[dict[tuple[int | str, ...], Any]] = {(3,): reps.PositionVector}
    operations: ClassVar[dict[str, Operation]] = {
        "inverse": (operator.neg, values.sum_jacobians),
        "change_coordinate_frame": (values.rotate_axes, values.rotated_axes_jacobians),
        **dict.fromkeys(
            (
                "compose",
                "@",
                "change_point",
                "change_point_body",
                "change_reference_point",
                "change_reference_point_body",
            ),
            (operator.add, values.sum_jacobians),
        ),
    }

    def change_point(self, by: SemanticPosition) -> Self:
        """Return the position of another point of the same body.

        ``by`` is the position of the new point relative to the old one.

        Raises:
            SemanticError: if ``by`` does not begin at the point, or is expressed elsewhere.
        """
        return apply_binary("change_point", self, by)

    def change_point_body(self, by: SemanticPosition) -> Self:
        """Return the position of a point of a rigidly joined body.

        ``by`` is the position of the new point, on the other body, relative to the old one, in the
        same axes. The rigid connection is not checked.

        Raises:
            SemanticError: if ``by`` does not begin at the point, or is expressed elsewhere.
        """
        return apply_binary("change_point_body", self, by)

    def change_reference_point(self, by: SemanticPosition) -> Self:
        """Return the position relative to another point.

        ``by`` is the position of the old reference point relative to the new one.

        Raises:
            SemanticError: if ``by`` does not end at the reference point, or is expressed elsewhere.
        """
        return apply_binary("change_reference_point", self, by)

    def change_reference_point_body(self, by: SemanticPosition) -> Self:
        """Return the position relative to a point of a rigidly joined body.

        ``by`` is the position of the old reference point relative to the new one, on the other
        body, in the same axes. The rigid connection is not checked.

        Raises:
            SemanticError: if ``by`` does not end at the reference point, or is expressed elsewhere.
        """
        return apply_binary("change_reference_point_body", self, by)


_OF_FRAMES: dict[str, Operation] = {
    "inverse": (values.inverse_in_axes, None),
    "inverse2": (values.inverse, values.inverse_jacobians),
    "compose": (values.left_product, values.left_product_jacobians),
    "@": (values.left_product, values.left_product_jacobians),
    "change_point": (values.translate, values.moved_frame_jacobians),
    "change_reference_point": (values.translate, values.moved_reference_jacobians),
    "change_orientation_frame": (values.product, values.rotated_frame_jacobians),
    "change_reference_orientation_frame": (
        lambda a, turn: values.product(turn, a),
        values.rotated_reference_jacobians,
    ),
    "change_coordinate_frame": (values.rotate_pose_axes, None),
}


class _OfFrames(_Constant):
    """Base class of orientations and poses."""

    __slots__ = ()
    operations: ClassVar[dict[str, Operation]] = _OF_FRAMES

    def inverse2(self) -> Self:
        """Return the inverse of the relation, expressed in its own reference frame.

        Raises:
            SemanticError: if it is not expressed in its reference orientation frame.
        """
        return self._apply_unary("inverse2")

    def change_orientation_frame(self, by: SemanticOrientation) -> Self:
        """Return the relation with another orientation frame of the body.

        ``by`` is the orientation of the new frame relative to the old one.

        Raises:
            SemanticError: if ``by`` does not begin at the orientation frame, or the representation
                does not allow it.
        """
        return apply_binary("change_orientation_frame", self, by)

    def change_reference_orientation_frame(self, by: SemanticOrientation) -> Self:
        """Return the relation relative to another orientation frame, expressed there.

        ``by`` is the orientation of the old reference frame relative to the new one, expressed in
        the new one.

        Raises:
            SemanticError: if ``by`` does not end at the reference frame, or the representation does
                not allow it.
        """
        return apply_binary("change_reference_orientation_frame", self, by)


class SemanticOrientation(_OfFrames):
    """Orientation with numbers.

    The argument is a rotation matrix (3, 3), a unit quaternion (4,), vector part first, a rotation
    vector (3,) [rad], or a representation. Columns of the matrix are the axes in the reference
    frame.
    """

    __slots__ = ()
    coord: OrientationCoord
    coord_class = OrientationCoord
    by_shape: ClassVar[dict[tuple[int | str, ...], Any]] = {
        (3, 3): reps.RotationMatrix,
        (4,): reps.UnitQuaternion,
        (3,): reps.RotationVector,
    }

    @classmethod
    def _value_of(cls, representation: Any) -> Value:
        matrix = representation.numbers[0]
        return values.pose_value(np.zeros(matrix.shape[:-1]), matrix)

    @classmethod
    def _numbers_of(cls, value: Value) -> Numbers:
        return values.pose_numbers(value)[1:]


class SemanticPose(_OfFrames):
    """Pose with numbers: a homogeneous matrix (4, 4), a :class:`tmkit.Pose`, or a representation.

    A batch has matrices (N, 4, 4), or rows (N, 7) of x, y, z and quaternion x, y, z, w. A
    :class:`tmkit.GaussianPose` includes its covariance.
    """

    __slots__ = ()
    coord: PoseCoord
    coord_class = PoseCoord
    dimension = 6
    by_shape: ClassVar[dict[tuple[int | str, ...], Any]] = {
        (4, 4): reps.HomogeneousMatrix,
        ("N", 7): reps.VectorAndQuaternion.of_rows,
        (): reps.VectorAndQuaternion.of_pose,
    }

    @classmethod
    def _value_of(cls, representation: Any) -> Value:
        if isinstance(representation, reps.VectorAndQuaternion):
            parts = representation.vector, representation.quat_xyzw
            return Pose(*parts) if parts[0].ndim == 1 else np.hstack(parts)
        return values.pose_value(*representation.numbers)

    @classmethod
    def _numbers_of(cls, value: Value) -> Numbers:
        return values.pose_numbers(value)

    @classmethod
    def of(cls, position: SemanticPosition, orientation: SemanticOrientation) -> Self:
        """Create a pose from a position and an orientation with independent errors.

        Args:
            position, orientation: relations between the same bodies, expressed in the same frame.

        Raises:
            SemanticError: if their bodies, frames of expression or lengths of batches differ, or a
                batch has a covariance.
        """
        coord = rules.pose_of(coord_of(position, "Position"), coord_of(orientation, "Orientation"))
        is_matrix = coord.coord == coord.ref_ori
        representation = reps.VectorAndMatrix if is_matrix else reps.VectorAndRotationVector
        # The error of the position is rotated to the axes of the frame.
        rho = np.eye(6)[:, :3] @ orientation.numbers[0].swapaxes(-1, -2)
        theta = np.eye(6)[:, 3:]
        return cls._of_parts(coord, representation, (position, orientation), (rho, theta))

    @property
    def position(self) -> SemanticPosition:
        """Position of the pose; its covariance is in the axes of expression."""
        p, matrix = self.numbers
        covariance = (
            None
            if self.covariance is None
            else self._propagate_covariance(3, matrix @ np.eye(6)[:3])
        )
        return SemanticPosition(
            rules.position_of(self.coord), reps.PositionVector.of((p,)), covariance=covariance
        )

    @property
    def orientation(self) -> SemanticOrientation:
        """Orientation of the pose, as a matrix if possible, else as a rotation vector."""
        coord = rules.orientation_of(self.coord)
        representation = (
            reps.RotationMatrix if coord.coord == coord.ref_ori else reps.RotationVector
        )
        covariance = self._propagate_covariance(3, np.eye(6)[3:])
        return SemanticOrientation(
            coord, representation.of((self.numbers[1],)), covariance=covariance
        )

    @property
    def pose(self) -> Pose:
        """Pose as a :class:`tmkit.Pose`, reference_from_frame.

        Raises:
            SemanticError: if it is not between two frames and expressed in the latter, or is a
                batch.
        """
        require_representable(reps.HomogeneousMatrix, self.coord)
        require_one(self, "pose")
        pose: Pose = self._value
        return pose

    @property
    def gaussian_pose(self) -> GaussianPose:
        """Pose with its covariance, as a :class:`tmkit.GaussianPose`.

        Raises:
            SemanticError: if ``pose`` raises it.
        """
        return GaussianPose(self.pose, self.covariance)

    def change_point(self, by: SemanticPosition) -> Self:
        """Return the pose with another point of the same body.

        ``by`` is the position of the new point relative to the old one. It is constant in the body,
        so errors of the orientation move the new point.

        Raises:
            SemanticError: if ``by`` does not begin at the point, or the representation does not
                allow it.
        """
        return apply_binary("change_point", self, by)

    def change_reference_point(self, by: SemanticPosition) -> Self:
        """Return the pose relative to another point.

        ``by`` is the position of the old reference point relative to the new one.

        Raises:
            SemanticError: if ``by`` does not end at the reference point, or the representation does
                not allow it.
        """
        return apply_binary("change_reference_point", self, by)
