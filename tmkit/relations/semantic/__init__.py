"""Relations with numbers: semantics, frame of expression and values.

Operations check the semantics of their operands (:mod:`tmkit.relations.rules`), compute, and check
that the result fits the representation of the operand. The shape of a plain array selects its
representation. (3, 3) is a rotation matrix, (4,) a unit quaternion, and (3,) a vector. (4, 4) is a
homogeneous matrix, and (6,) a six-vector with its linear part first. A :class:`tmkit.Pose` is a
vector and a quaternion.
"""
