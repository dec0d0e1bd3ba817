"""The names that `tmkit.relations` exports."""

from tmkit.relations.by_name import apply as apply, from_dict as from_dict, to_dict as to_dict
from tmkit.relations.declared import Frame as Frame, FramedPose as FramedPose, declares as declares
from tmkit.relations.representation import Representation as Representation
from tmkit.relations.semantic.constant import (
    SemanticOrientation as SemanticOrientation,
    SemanticPose as SemanticPose,
    SemanticPosition as SemanticPosition,
)
from tmkit.relations.semantic.velocities_and_forces import (
    SemanticAngularVelocity as SemanticAngularVelocity,
    SemanticForce as SemanticForce,
    SemanticLinearVelocity as SemanticLinearVelocity,
    SemanticTorque as SemanticTorque,
    SemanticTwist as SemanticTwist,
    SemanticWrench as SemanticWrench,
    differentiate as differentiate,
)
from tmkit.relations.semantics import (
    AngularVelocityCoord as AngularVelocityCoord,
    ForceCoord as ForceCoord,
    LinearVelocityCoord as LinearVelocityCoord,
    OrientationCoord as OrientationCoord,
    PoseCoord as PoseCoord,
    PoseSemantics as PoseSemantics,
    PositionCoord as PositionCoord,
    TorqueCoord as TorqueCoord,
    TwistCoord as TwistCoord,
    WrenchCoord as WrenchCoord,
)
from tmkit.relations.violations import SemanticError as SemanticError, checks_off as checks_off
