"""Semantics of the mobile manipulation domain, composed of parts (:mod:`tmkit.tamp.parts`).

Two robots plan together: an arm, and the mobile base that carries it. The base drives between
stations and surfaces, and the arm picks and places from its current base pose.
"""

from __future__ import annotations

from tmkit.tamp import parts

Semantics = parts.compose_domain(
    "mobile_manipulation", [parts.Driving], words={"region": "surface"}
).semantics
