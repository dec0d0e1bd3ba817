"""Goals with poses and regions: ``compilation`` extends a domain by continuous goals.

See :mod:`tmkit.plans.continuous_goals`.
"""
