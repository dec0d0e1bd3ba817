"""Best-first search for a plan over versions of the scene.

The page docs/concepts/planning_algorithm.md describes the algorithm.
"""
