"""Models of MuJoCo (MJCF)."""
