"""Semantics of the kitchen domain in a scene, composed of parts (:mod:`tmkit.tamp.parts`).

Objects are picked from and placed on regions, washed on those of class ``sink`` and cooked on those
of class ``stove``; the arm has a home.
"""

from __future__ import annotations

from tmkit.tamp import parts

Semantics = parts.compose_domain("kitchen", [parts.Home, parts.Washing, parts.Cooking]).semantics
