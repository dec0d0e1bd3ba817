"""Relations with numbers: what is related to what, in which frame it is expressed, and how far it is.

Operations check the semantics of their operands (:mod:`tmkit.relations.rules`), compute, and check
that the result can be represented as the operand was. Plain arrays are taken for the representation
that their shape suggests. (3, 3) is a rotation matrix, (4,) a unit quaternion, (3,) a vector, (4,
4) a homogeneous matrix, (6,) a six-vector with its linear part first, a :class:`tmkit.Pose` a
vector and a quaternion.
"""
