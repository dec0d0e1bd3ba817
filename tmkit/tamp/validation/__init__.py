"""Validation of plans by rules that the built-in actions and the search do not use.

``check`` follows a plan with the rules of the domain, of geometry and of contact, at a finer
resolution than the planner, and compares its scene with the user's. ``step_check`` validates the
motions of one step, and ``segment_rules`` defines the conditions on each kind of segment before
collision checks. ``candidate_check`` applies both to the motions of candidates from outside the
package, during the search. ``tmp_plan`` reads plans of the original TMKit, and
``prune_observations`` removes superfluous measurements.

The search makes no motion with this package: a validator that shared code with the planner of
motions would share its errors.
"""
