"""Goals beyond facts.

A goal in PDDL needs nothing of this. ``continuous_goals`` are values that facts cannot say: an object at a pose, in a
region, an arm at a configuration. ``goal_domain`` extends a domain by them, so that the task planner leads to where
they can be met. ``goal_scenes`` reads a goal off a scene that shows what is wanted.

Invariants: the values of ``continuous_goals`` lie below plans, which carry them; the other two lie above domains.
"""
