"""Sampling-based motion planners of OMPL."""
