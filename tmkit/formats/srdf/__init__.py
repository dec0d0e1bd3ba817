"""Reader and writer of SRDF: groups, states, end effectors and disabled collisions of a robot.

An SRDF file of MoveIt supplements a URDF file. It has groups of links and joints, named
configurations, hands, and pairs of links that are never checked for collision. :func:`read_srdf`
returns a :class:`RobotSemantics`, :func:`group_members` computes the members of a group in a scene,
and :func:`write_srdf` writes a file.

As a scene file, an ``.srdf`` allows collisions of pairs of links.
:func:`tmkit.robots.manipulator_from_srdf` makes an arm from it.
"""

import logging

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

# Messages are discarded unless the user configures logging.
logging.getLogger(__name__).addHandler(logging.NullHandler())
