"""Goals that a domain's facts cannot express.

``compilation`` extends a domain by continuous goals (:mod:`tmkit.plans.continuous_goals`). ``relocations`` extends a
domain by whether objects are where they were at the start, with which the task planner can move an object aside on its
support.
"""
