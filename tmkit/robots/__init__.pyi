"""The names that `tmkit.robots` exports."""

from tmkit.robots.infer_arm import infer_arm as infer_arm
from tmkit.robots.manipulator import Manipulator as Manipulator
from tmkit.robots.mechanisms import movable_frames as movable_frames
from tmkit.robots.mobile_base import mount_on_base as mount_on_base
from tmkit.robots.robot_check import check_robot as check_robot
from tmkit.robots.robot_files import load_manipulator as load_manipulator
from tmkit.robots.srdf_arms import manipulator_from_srdf as manipulator_from_srdf
