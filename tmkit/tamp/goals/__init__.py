"""Goals that a domain's facts cannot express, and goals shown by a scene.

``compilation`` extends a domain by continuous goals (:mod:`tmkit.plans.continuous_goals`), and ``goal_actions`` is
their semantics. ``goal_scenes`` derives a goal from a scene. ``relocations`` extends a domain by whether objects are
where they were at the start, with which the task planner can move an object aside on its support.
"""
