"""The search for a plan: one best-first search over versions of the scene (docs/concepts/planning_algorithm.md)."""
