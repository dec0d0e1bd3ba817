"""The names that `tmkit.relations.conversions` exports."""

from tmkit.relations.conversions.libraries import (
    from_drake as from_drake,
    from_kdl as from_kdl,
    from_pinocchio as from_pinocchio,
    to_drake as to_drake,
    to_kdl as to_kdl,
    to_pinocchio as to_pinocchio,
)
from tmkit.relations.conversions.ros import from_ros as from_ros, to_ros as to_ros
