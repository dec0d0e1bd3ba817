"""The names that `tmkit.relations.representations` exports."""

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
