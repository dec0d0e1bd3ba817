"""SRDF: groups, states, hands and disabled collisions of a robot, in MoveIt's format.

A URDF describes links and joints; an SRDF describes which of them form an arm, named
configurations, the hand, and pairs of links that are never checked for collision. :func:`read_srdf`
returns it as a :class:`RobotSemantics`, :func:`group_members` finds a group in a scene, and
:func:`write_srdf` writes a file.

As a scene file, an ``.srdf`` allows collisions of pairs of links.
:func:`tmkit.robots.manipulator_from_srdf` makes an arm from it.
"""

import logging

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

# silent unless the user configures logging
logging.getLogger(__name__).addHandler(logging.NullHandler())
