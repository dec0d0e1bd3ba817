"""The representations of all relations: which numbers stand for a relation, and which constraint they impose.

Each module holds those of some relations, after the table of De Laet et al., part 1, 2013.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.relations.representations.orientations import (
        AxisAngle as AxisAngle, EulerAngles as EulerAngles, PositionVector as PositionVector,
        RotationMatrix as RotationMatrix, RotationVector as RotationVector, UnitQuaternion as UnitQuaternion,
    )  # fmt: skip
    from tmkit.relations.representations.poses import (
        DualQuaternion as DualQuaternion, FiniteScrew as FiniteScrew, HomogeneousMatrix as HomogeneousMatrix,
        VectorAndMatrix as VectorAndMatrix, VectorAndQuaternion as VectorAndQuaternion,
        VectorAndRotationVector as VectorAndRotationVector,
    )  # fmt: skip
    from tmkit.relations.representations.rates import (
        EulerAngleRates as EulerAngleRates, PoseMatrixRate as PoseMatrixRate, QuaternionRate as QuaternionRate,
        RotationMatrixRate as RotationMatrixRate,
    )  # fmt: skip
    from tmkit.relations.representations.vectors import (
        AngularFirstTwist as AngularFirstTwist, AngularVelocityVector as AngularVelocityVector,
        ForceVector as ForceVector, InstantaneousScrewAxis as InstantaneousScrewAxis,
        LinearVelocityVector as LinearVelocityVector, MomentFirstWrench as MomentFirstWrench,
        TorqueVector as TorqueVector, TwistVector as TwistVector, WrenchAxis as WrenchAxis,
        WrenchVector as WrenchVector,
    )  # fmt: skip
else:
    __getattr__, __dir__ = lazy_names(__name__)
