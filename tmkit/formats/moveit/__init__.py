"""MoveIt configuration packages: the robot, groups, limits and controllers in one folder."""
