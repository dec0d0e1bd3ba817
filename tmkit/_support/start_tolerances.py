"""Tolerances of a start as it is measured: joint limits, overlaps, and objects that do not rest.

The options of planning and of motions share them, so this module loads no library.
"""

from __future__ import annotations

from dataclasses import dataclass

from tmkit.errors import ConfigurationError

START_LIMIT_TOLERANCE = 0.001
"""Default distance past a limit at which a start is moved to the limit [rad].

Encoders and limits in files with four or five digits differ by less, and 1 mrad moves the tool of
an arm of 1 m by at most 1 mm, the planning margin.
"""


@dataclass(frozen=True)
class StartTolerances:
    """Tolerances of bodies at the start of a plan [m].

    Attributes:
        penetration: depth of an overlap that motions may leave, but neither deepen nor enter again.
            Defaults to 0.001, the planning margin: calibrated models overlap by less.
        floating: height of an object above its support. Defaults to 0.02, the error of a depth
            camera at 2 m; simulators drop objects from such heights.
        sinking: depth of an object in its support. Defaults to 0.005, the error of a depth camera
            at 1 m.

    Raises:
        ConfigurationError: if a value is negative or not a number.
    """

    penetration: float = 0.001
    floating: float = 0.02
    sinking: float = 0.005

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0.0:
                raise ConfigurationError(
                    f"StartTolerances: {name} must be at least 0 m, not {repr(value)[:60]}",
                    option=name,
                    value=value,
                )
