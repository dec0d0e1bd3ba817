"""Validation of plans, independent of the search.

``check`` follows a plan with the rules of the domain, of geometry and of contact, at a finer
resolution than the planner, and compares its scene with the user's. ``segment_rules`` defines the
conditions on each kind of segment before collision checks. ``tmp_plan`` reads plans of the original
TMKit, and ``prune_observations`` removes superfluous measurements.

The search does not use this package: a validator that shared code with the search would share its
errors.
"""
