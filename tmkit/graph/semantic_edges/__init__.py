"""Geometric relations in a scene, with their semantics checked when they are added and queried.

``docs/concepts/relations.md`` lists the rules of edges, those of De Laet, Bruyninckx and De Schutter's scene graph of
poses and twists (2013) in a form that can be decided. The core keeps them, and computes the numbers.

Invariants: scenes are values; each function returns another or leaves all as it was. A relation is known in a scene
when a path leads to it: of pose edges for poses; for velocities of twist edges, and of other fixed edges and joints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.graph.semantic_edges.edges import (
        Node as Node,
        add_edge as add_edge,
        add_pose as add_pose,
        add_twist as add_twist,
        update_pose as update_pose,
        update_twist as update_twist,
    )
    from tmkit.graph.semantic_edges.facts import add_fact as add_fact
    from tmkit.graph.semantic_edges.integration import finite_difference as finite_difference, integrate as integrate
    from tmkit.graph.semantic_edges.queries import relate as relate
    from tmkit.graph.semantic_edges.twists import gaussian_twist as gaussian_twist, twist as twist
    from tmkit.graph.semantic_edges.wrenches import (
        payload_wrench as payload_wrench,
        set_wrench_bias as set_wrench_bias,
        transport as transport,
        wrench as wrench,
        wrench_bias as wrench_bias,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
