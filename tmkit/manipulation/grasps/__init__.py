"""Grasps: poses of a hand at which it can hold an object."""
