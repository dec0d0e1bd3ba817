"""Robots: arms and hands as described in files, checks of them, and inference of what no file describes.

:class:`Manipulator` describes an arm and its hand: the chain of joints, the tool, the ready configuration, the fingers.
:func:`load_manipulator` reads one from a file, :func:`manipulator_from_srdf` makes one of an SRDF, :func:`infer_arm`
infers one from a URDF, :func:`check_robot` checks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit._support.results import ValidationStatus
    from tmkit.robots.chains import JointChain
    from tmkit.robots.guess_manipulator import guess_manipulator, write_manipulator
    from tmkit.robots.infer_arm import InferredArm, InferredArmStatus, infer_arm
    from tmkit.robots.manipulator import Manipulator
    from tmkit.robots.movable import is_movable, movable_frames
    from tmkit.robots.pair_distance import pair_distance
    from tmkit.robots.robot_check import Reach, RobotReport, check_robot
    from tmkit.robots.robot_files import find_manipulator, load_manipulator
    from tmkit.robots.robot_notes import JointRow
    from tmkit.robots.several_arms import Robots, find_manipulators, home_configuration
    from tmkit.robots.srdf_arms import manipulator_from_srdf
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "InferredArm",
    "InferredArmStatus",
    "JointChain",
    "JointRow",
    "Manipulator",
    "Reach",
    "RobotReport",
    "Robots",
    "ValidationStatus",
    "check_robot",
    "find_manipulator",
    "find_manipulators",
    "guess_manipulator",
    "home_configuration",
    "infer_arm",
    "is_movable",
    "load_manipulator",
    "manipulator_from_srdf",
    "movable_frames",
    "pair_distance",
    "write_manipulator",
]
