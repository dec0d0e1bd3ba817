"""The operations on relations as rules: the preconditions of an operation, and the semantics of its result.

Each function takes coordinates (what is related to what, and the frame of expression) and returns those of the result;
no numbers are needed. It collects every broken rule and raises one :class:`SemanticError`, unless checks are off.

Source: De Laet et al., "Geometric relations between rigid bodies (part 1)", 2013, whose tables give the operations on
positions, orientations, poses and velocities. Forces, torques and wrenches stand to them as angular velocities, linear
velocities and twists do; what is different is said in its place.

Invariants: functions of their arguments; a result has the class of the operand that it is made from.
"""

from tmkit.relations.rules.changing import (
    change_body, change_coord, change_ori, change_point, change_ref_body, change_ref_ori, change_ref_point,
)  # fmt: skip
from tmkit.relations.rules.composing import (
    compose, differentiate, dot, integrate, inverse, inverse2, orientation_of, pose_of, position_of,
)  # fmt: skip

__all__ = [
    "change_body", "change_coord", "change_ori", "change_point", "change_ref_body", "change_ref_ori",
    "change_ref_point", "compose", "differentiate", "dot", "integrate", "inverse", "inverse2", "orientation_of",
    "pose_of", "position_of",
]  # fmt: skip
