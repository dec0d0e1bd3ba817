"""Semantics of the drawer domain in a scene, composed of parts (:mod:`tmkit.tamp.parts`).

Objects are picked from and placed on tables and in drawers. A drawer is closed at the lower limit
of its joint and accessible at the upper one, so the state depends on the configuration.
"""

from __future__ import annotations

from tmkit.tamp import parts

WORDS = {"on": "in", "region": "place", "pick": "take", "place": "put"}

Semantics = parts.compose_domain("drawer", [parts.Drawer], words=WORDS).semantics
