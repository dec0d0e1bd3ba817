"""Execution of plans on robots, independent of their interface: goals, checks and reports."""
