"""Semantics of the drawer domain in a scene, made of parts (:mod:`tmkit.tamp.parts`).

Objects are picked from and placed on tables and in drawers, which are closed at the lower limit of
their joint and open, for the hand to reach in, at the upper one: the state depends on the
configuration.
"""

from __future__ import annotations

from tmkit.tamp import parts

WORDS = {"on": "in", "region": "place", "pick": "take", "place": "put"}

Semantics = parts.compose_domain("drawer", [parts.Drawer], words=WORDS).semantics
