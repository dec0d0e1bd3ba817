"""Geometric relations that say what they mean, and refuse what has no meaning.

Nine relations (Position, Orientation, Pose, LinearVelocity, AngularVelocity, Twist, Force, Torque,
Wrench) are in layers. ``PoseSemantics`` says what is related to what, ``PoseCoord`` in which frame
that is expressed, ``SemanticPose`` holds numbers in one of many representations. Operations check
that their operands fit, name every rule that does not hold with its repair, and cost little;
:func:`checks_off` switches the checks off for code that was verified with them.

Source: De Laet, Bellens, Smits, Aertbelien, Bruyninckx, De Schutter, "Geometric relations between
rigid bodies", parts 1 and 2, IEEE RAM 2013.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
