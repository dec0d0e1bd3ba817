"""Geometric relations that say what they mean, and refuse what has no meaning.

Nine relations (Position, Orientation, Pose, LinearVelocity, AngularVelocity, Twist, Force, Torque, Wrench), each in
layers: ``PoseSemantics`` says what is related to what, ``PoseCoord`` in which frame that is expressed, ``SemanticPose``
holds numbers in one of many representations. Operations check that their operands fit, name every rule that does not
hold with its repair, and cost little; :func:`checks_off` switches the checks off for code that was verified with them.

Source: De Laet, Bellens, Smits, Aertbelien, Bruyninckx, De Schutter, "Geometric relations between rigid bodies",
parts 1 and 2, IEEE RAM 2013.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.relations.declared import Frame as Frame, FramedPose as FramedPose, declares as declares
    from tmkit.relations.by_name import from_dict as from_dict, to_dict as to_dict
    from tmkit.relations.by_name import OPERATIONS as OPERATIONS, apply as apply
    from tmkit.relations.representation import Numbers as Numbers, Representation as Representation
    from tmkit.relations.representations import (
        AngularFirstTwist as AngularFirstTwist,
        AngularVelocityVector as AngularVelocityVector,
        AxisAngle as AxisAngle,
        DualQuaternion as DualQuaternion,
        EulerAngleRates as EulerAngleRates,
        EulerAngles as EulerAngles,
        FiniteScrew as FiniteScrew,
        ForceVector as ForceVector,
        HomogeneousMatrix as HomogeneousMatrix,
        InstantaneousScrewAxis as InstantaneousScrewAxis,
        LinearVelocityVector as LinearVelocityVector,
        MomentFirstWrench as MomentFirstWrench,
        PoseMatrixRate as PoseMatrixRate,
        PositionVector as PositionVector,
        QuaternionRate as QuaternionRate,
        RotationMatrix as RotationMatrix,
        RotationMatrixRate as RotationMatrixRate,
        RotationVector as RotationVector,
        TorqueVector as TorqueVector,
        TwistVector as TwistVector,
        UnitQuaternion as UnitQuaternion,
        VectorAndMatrix as VectorAndMatrix,
        VectorAndQuaternion as VectorAndQuaternion,
        VectorAndRotationVector as VectorAndRotationVector,
        WrenchAxis as WrenchAxis,
        WrenchVector as WrenchVector,
    )
    from tmkit.relations.semantic import (
        SemanticAngularVelocity as SemanticAngularVelocity,
        SemanticForce as SemanticForce,
        SemanticLinearVelocity as SemanticLinearVelocity,
        SemanticOrientation as SemanticOrientation,
        SemanticPose as SemanticPose,
        SemanticPosition as SemanticPosition,
        SemanticRelation as SemanticRelation,
        SemanticTorque as SemanticTorque,
        SemanticTwist as SemanticTwist,
        SemanticWrench as SemanticWrench,
        differentiate as differentiate,
    )
    from tmkit.relations.semantics import (
        AngularVelocityCoord as AngularVelocityCoord,
        AngularVelocitySemantics as AngularVelocitySemantics,
        Coord as Coord,
        ForceCoord as ForceCoord,
        ForceSemantics as ForceSemantics,
        LinearVelocityCoord as LinearVelocityCoord,
        LinearVelocitySemantics as LinearVelocitySemantics,
        OrientationCoord as OrientationCoord,
        OrientationSemantics as OrientationSemantics,
        PoseCoord as PoseCoord,
        PoseSemantics as PoseSemantics,
        PositionCoord as PositionCoord,
        PositionSemantics as PositionSemantics,
        Semantics as Semantics,
        TorqueCoord as TorqueCoord,
        TorqueSemantics as TorqueSemantics,
        TwistCoord as TwistCoord,
        TwistSemantics as TwistSemantics,
        WrenchCoord as WrenchCoord,
        WrenchSemantics as WrenchSemantics,
    )
    from tmkit.relations.violations import (
        SemanticError as SemanticError,
        Violation as Violation,
        checks_are_on as checks_are_on,
        checks_off as checks_off,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
