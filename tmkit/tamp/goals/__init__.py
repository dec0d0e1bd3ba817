"""Goals that a domain's facts cannot express: ``compilation`` extends a domain by continuous goals.

See :mod:`tmkit.plans.continuous_goals`.
"""
