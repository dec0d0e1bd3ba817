"""The effort that is spent on the motions of one action."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tmkit.plans.values import Configuration


@dataclass(frozen=True)
class MotionBudget:
    """The effort and the usual lengths of the motions of one action.

    Attributes:
        inverse_kinematics_solutions: distinct configurations to look for at a contact.
        path_iterations: iterations of one path search.
        approach: metres of the straight approach and retreat.
        lift: metres of the straight lift and lowering.
        is_joint: whether one path is searched to any of the configurations at a contact, rather than one to each; it
            then keeps the wide margin only where that is found as soon.
        exits: paths (k, n) of the arm's joints that may lead out of where it is, by the bytes of their start; they are
            checked before they are used.
    """

    inverse_kinematics_solutions: int = 4
    path_iterations: int = 2000
    approach: float = 0.08
    lift: float = 0.06
    is_joint: bool = False
    exits: Mapping[bytes, Configuration] = field(default_factory=dict)
