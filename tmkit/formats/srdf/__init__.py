"""SRDF: what a robot's description leaves open, in the format of MoveIt.

A URDF says which links and joints there are; an SRDF says which of them make an arm, what its named configurations are,
where the hand is, and which links never need to be checked against each other. :func:`read_srdf` gives it as a value,
:class:`RobotSemantics`; :func:`group_members` looks a group up in a scene; :func:`write_srdf` writes a value as a file.

The room lies below ``formats`` and ``robots`` because both build on it: to ``formats`` an ``.srdf`` is a scene file
that lets pairs of links touch, to ``robots`` it is where :func:`tmkit.robots.manipulator_from_srdf` finds an arm.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.formats.srdf.groups import GroupMembers, group_members
    from tmkit.formats.srdf.reader import read_srdf
    from tmkit.formats.srdf.values import (
        Chain,
        EndEffector,
        GroupState,
        LinkPair,
        RobotSemantics,
        SrdfGroup,
        VirtualJoint,
    )
    from tmkit.formats.srdf.writer import srdf_text, write_srdf
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Chain",
    "EndEffector",
    "GroupMembers",
    "GroupState",
    "LinkPair",
    "RobotSemantics",
    "SrdfGroup",
    "VirtualJoint",
    "group_members",
    "read_srdf",
    "srdf_text",
    "write_srdf",
]

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent unless the user configures logging
