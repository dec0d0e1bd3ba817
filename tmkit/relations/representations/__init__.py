"""The representations of all relations: which numbers stand for a relation, and which constraint they impose.

Each module holds those of some relations, after the table of De Laet et al., part 1, 2013.
"""

from tmkit.relations.representations.forces import (
    ForceVector,
    MomentFirstWrench,
    TorqueVector,
    WrenchAxis,
    WrenchVector,
)
from tmkit.relations.representations.orientations import (
    AxisAngle,
    EulerAngles,
    PositionVector,
    RotationMatrix,
    RotationVector,
    UnitQuaternion,
)
from tmkit.relations.representations.poses import (
    DualQuaternion,
    FiniteScrew,
    HomogeneousMatrix,
    VectorAndMatrix,
    VectorAndQuaternion,
    VectorAndRotationVector,
)
from tmkit.relations.representations.rates import EulerAngleRates, PoseMatrixRate, QuaternionRate, RotationMatrixRate
from tmkit.relations.representations.velocities import (
    AngularFirstTwist,
    AngularVelocityVector,
    InstantaneousScrewAxis,
    LinearVelocityVector,
    TwistVector,
)

__all__ = [
    "AngularFirstTwist",
    "AngularVelocityVector",
    "AxisAngle",
    "DualQuaternion",
    "EulerAngleRates",
    "EulerAngles",
    "FiniteScrew",
    "ForceVector",
    "HomogeneousMatrix",
    "InstantaneousScrewAxis",
    "LinearVelocityVector",
    "MomentFirstWrench",
    "PoseMatrixRate",
    "PositionVector",
    "QuaternionRate",
    "RotationMatrix",
    "RotationMatrixRate",
    "RotationVector",
    "TorqueVector",
    "TwistVector",
    "UnitQuaternion",
    "VectorAndMatrix",
    "VectorAndQuaternion",
    "VectorAndRotationVector",
    "WrenchAxis",
    "WrenchVector",
]
