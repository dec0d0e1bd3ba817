"""Paths by OMPL's sampling-based planners."""
