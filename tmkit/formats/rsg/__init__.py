"""Reader and writer of RSG-DSL, the robot scene graph language (docs/reference/rsg.md)."""
