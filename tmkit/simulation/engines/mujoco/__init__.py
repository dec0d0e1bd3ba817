"""The physics engine MuJoCo: a scene as its model."""
