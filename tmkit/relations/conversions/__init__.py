"""Conversion of relations from and to other libraries, without importing them.

==========================  ====================================================================
ROS                         :func:`from_ros`, :func:`to_ros`: ROS 1 and 2 messages, or dictionaries
pinocchio                   :func:`from_pinocchio`, :func:`to_pinocchio`: ``SE3``, ``Motion``,
                            ``Force``; coordinates for ``LOCAL``, ``WORLD`` and
                            ``LOCAL_WORLD_ALIGNED``: :func:`pinocchio_twist`,
                            :func:`pinocchio_wrench`
KDL                         :func:`from_kdl`, :func:`to_kdl`: ``Frame``, ``Twist``, ``Wrench``,
                            ``Rotation``, ``Vector``
Drake                       :func:`from_drake`, :func:`to_drake`: ``RigidTransform``,
                            ``SpatialVelocity``, ``SpatialForce``; names in the monogram notation:
                            :func:`drake_name`
==========================  ====================================================================

The argument of a conversion has numbers, and coordinates give their semantics: ``from_kdl(twist,
TwistCoord("g|C", "D", "[h]"))``. If the object has semantics too (the ``frame_id`` of a message),
a difference raises an error. A conversion to another library checks that its conventions hold: a
transform relates two frames.

Objects are recognised by their members (duck typing). Invariant: a conversion and its reverse with
the same coordinates give the same relation, to rounding; vectors, matrices and quaternions bitwise.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
