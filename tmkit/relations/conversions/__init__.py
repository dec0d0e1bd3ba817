"""Relations in and out of what other libraries use, one line each way, without importing any of them.

====================================  =================================================================================
ROS (geometry_msgs, nav_msgs)         :func:`from_ros`, :func:`to_ros`: messages of ROS 1 and 2, or plain dictionaries
pinocchio                             :func:`from_pinocchio`, :func:`to_pinocchio`: ``SE3``, ``Motion``, ``Force``; what
                                      ``LOCAL``, ``WORLD`` and ``LOCAL_WORLD_ALIGNED`` mean:
                                      :func:`pinocchio_twist`, :func:`pinocchio_wrench`
KDL                                   :func:`from_kdl`, :func:`to_kdl`: ``Frame``, ``Twist``, ``Wrench``, ``Rotation``,
                                      ``Vector``
Drake                                 :func:`from_drake`, :func:`to_drake`: ``RigidTransform``, ``SpatialVelocity``,
                                      ``SpatialForce``; names in the monogram notation:
                                      :func:`drake_name`
====================================  =================================================================================

What comes in are numbers; their semantics is given by coordinates: ``from_kdl(twist,
TwistCoord("g|C", "D", "[h]"))``. Where the other side says some of it (the ``frame_id`` of a
message), that is compared, and a difference is refused. What goes out is checked for what the other
side takes for granted: a transform relates two frames.

Objects are recognised by their members (duck typing). Invariant: what goes out and comes back in
with its coordinates is the same relation, to rounding; vectors, matrices and quaternions to the
bit.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
