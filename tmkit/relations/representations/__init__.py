"""The representations of all relations: which numbers stand for a relation, and which constraint they impose.

Each module holds those of some relations, after the table of De Laet et al., part 1, 2013.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.relations.representations.poses import (
        AxisAngle as AxisAngle,
        DualQuaternion as DualQuaternion,
        EulerAngles as EulerAngles,
        FiniteScrew as FiniteScrew,
        HomogeneousMatrix as HomogeneousMatrix,
        PositionVector as PositionVector,
        RotationMatrix as RotationMatrix,
        RotationVector as RotationVector,
        UnitQuaternion as UnitQuaternion,
        VectorAndMatrix as VectorAndMatrix,
        VectorAndQuaternion as VectorAndQuaternion,
        VectorAndRotationVector as VectorAndRotationVector,
    )
    from tmkit.relations.representations.velocities import (
        AngularFirstTwist as AngularFirstTwist,
        AngularVelocityVector as AngularVelocityVector,
        EulerAngleRates as EulerAngleRates,
        ForceVector as ForceVector,
        InstantaneousScrewAxis as InstantaneousScrewAxis,
        LinearVelocityVector as LinearVelocityVector,
        MomentFirstWrench as MomentFirstWrench,
        PoseMatrixRate as PoseMatrixRate,
        QuaternionRate as QuaternionRate,
        RotationMatrixRate as RotationMatrixRate,
        TorqueVector as TorqueVector,
        TwistVector as TwistVector,
        WrenchAxis as WrenchAxis,
        WrenchVector as WrenchVector,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
