"""Descriptions of arms and hands, their checks and their inference.

:class:`Manipulator` describes an arm and its hand: the chain of joints, the tool, the ready
configuration, the fingers. :func:`load_manipulator` reads a description from a file,
:func:`manipulator_from_srdf` from an SRDF file. :func:`infer_arm` infers one from a URDF, and
:func:`check_robot` checks it.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
