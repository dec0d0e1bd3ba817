"""Robots: arms and hands as described in files, checks of them, and inference of what no file describes.

:class:`Manipulator` describes an arm and its hand: the chain of joints, the tool, the ready configuration, the fingers.
:func:`load_manipulator` reads one from a file, :func:`manipulator_from_srdf` makes one of an SRDF, :func:`infer_arm`
infers one from a URDF, :func:`check_robot` checks it.
"""

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit._support.results import ValidationStatus as ValidationStatus
    from tmkit.robots.hands import pair_distance as pair_distance
    from tmkit.robots.infer_arm import (
        InferredArm as InferredArm,
        InferredArmStatus as InferredArmStatus,
        infer_arm as infer_arm,
    )
    from tmkit.robots.manipulator import Manipulator as Manipulator
    from tmkit.robots.mechanisms import (
        JointChain as JointChain,
        is_movable as is_movable,
        movable_frames as movable_frames,
    )
    from tmkit.robots.robot_check import (
        JointRow as JointRow,
        Reach as Reach,
        RobotReport as RobotReport,
        check_robot as check_robot,
    )
    from tmkit.robots.robot_files import (
        Robots as Robots,
        find_manipulator as find_manipulator,
        find_manipulators as find_manipulators,
        home_configuration as home_configuration,
        load_manipulator as load_manipulator,
        write_manipulator as write_manipulator,
    )
    from tmkit.robots.srdf_arms import manipulator_from_srdf as manipulator_from_srdf
else:
    __getattr__, __dir__ = lazy_names(__name__)
