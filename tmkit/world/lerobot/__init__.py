"""Execution of plans on the robots of LeRobot, with checks before and during each motion."""
