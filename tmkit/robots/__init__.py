"""Robots: arms and hands as described in files, checks of them, and inference of what no file describes.

:class:`Manipulator` describes an arm and its hand: the chain of joints, the tool, the ready
configuration, the fingers. :func:`load_manipulator` reads one from a file,
:func:`manipulator_from_srdf` makes one of an SRDF, :func:`infer_arm` infers one from a URDF,
:func:`check_robot` checks it.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
