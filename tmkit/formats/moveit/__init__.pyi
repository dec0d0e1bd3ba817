"""The names that `tmkit.formats.moveit` exports."""

from tmkit.formats.moveit.configuration import (
    JointLimits as JointLimits,
    MoveItConfiguration as MoveItConfiguration,
    read_moveit_configuration as read_moveit_configuration,
)
