"""Semantics of the push domain in a scene, made of parts (:mod:`tmkit.tamp.parts`).

Objects are picked, placed, and pushed from region to region. The PDDL does not state what can be
grasped where: the planner computes it, and pushes where needed.
"""

from __future__ import annotations

from tmkit.tamp import parts

Semantics = parts.compose_domain("push", [parts.Pushing]).semantics
