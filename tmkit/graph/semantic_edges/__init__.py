"""Geometric relations of a scene, with semantic checks when they are added and queried.

``docs/reference/scene_edge_rules.md`` lists the rules of edges. They are a decidable form of the
rules of De Laet, Bruyninckx and De Schutter's scene graph of poses and twists (2013). The core
enforces them and computes the numbers.

Invariants: scenes are immutable; a function returns a new scene, or raises and changes nothing. A
scene determines a relation if a path exists: of pose edges for poses, and of twist edges, fixed
edges and joints for velocities.
"""
