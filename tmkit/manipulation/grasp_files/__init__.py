"""Grasps from files, as GraspNet-1Billion, ACRONYM and MoveIt publish them."""
