"""Execution of plans by ROS 2 controllers, with checks before and during each motion."""
