"""Scenes in RSG-DSL, the robot scene graph language (docs/reference/rsg.md)."""
