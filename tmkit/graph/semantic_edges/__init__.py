"""Geometric relations in a scene, with their semantics checked when they are added and queried.

``docs/concepts/relations.md`` lists the rules of edges, those of De Laet, Bruyninckx and De
Schutter's scene graph of poses and twists (2013) in a form that can be decided. The core keeps
them, and computes the numbers.

Invariants: scenes are values; each function returns another or leaves all as it was. A relation is
known in a scene when a path leads to it: of pose edges for poses; for velocities of twist edges,
and of other fixed edges and joints.
"""
