"""Grasp poses of a hand relative to an object."""
