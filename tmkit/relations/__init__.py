"""Geometric relations with explicit semantics and checked operations.

Nine relations (Position, Orientation, Pose, LinearVelocity, AngularVelocity, Twist, Force, Torque,
Wrench) have three layers. ``PoseSemantics`` names the related points, frames and bodies.
``PoseCoord`` adds the frame of expression. ``SemanticPose`` adds numbers in one of many
representations. Operations check that their operands are compatible. An error lists every violated
rule with its repair. :func:`checks_off` disables the checks for code that was verified with them.

Source: De Laet, Bellens, Smits, Aertbelien, Bruyninckx, De Schutter, "Geometric relations between
rigid bodies", parts 1 and 2, IEEE RAM 2013.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
