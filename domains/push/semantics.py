"""Semantics of the push domain in a scene, composed of parts (:mod:`tmkit.tamp.parts`).

Objects are picked, placed, and pushed from region to region. The PDDL does not state where objects
can be grasped. The planner computes it, and pushes if needed.
"""

from __future__ import annotations

from tmkit.tamp import parts

Semantics = parts.compose_domain("push", [parts.Pushing]).semantics
