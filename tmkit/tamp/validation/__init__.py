"""Validation: plans recomputed independently of the search.

``check`` follows a plan with the rules of the domain, of geometry and of contact, at finer
resolution than the planner's, and compares its scene with the user's own. ``segment_rules`` defines
what each kind of segment must be, before collisions are checked. ``tmp_plan`` reads plans of the
original TMKit, ``prune_observations`` removes measurements that are not needed.

The search uses none of this: a validator that shared code with the search would share its errors.
"""
