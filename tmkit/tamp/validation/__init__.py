"""Checks: plans worked out again, believing nothing.

``checking`` goes through a plan with the rules of the domain, of geometry and of what may touch what, at finer steps
than the planner's. ``segment_rules`` and ``handle_rules`` say what each kind of segment must be before anybody asks
whether it collides. ``tmp_plan`` reads plans of the original's format, which say less, by the same rules.

Nothing here is used while planning: a checker that shared the planner's ways would share its mistakes.
"""
