"""The physics engine pybullet: a scene as its bodies, and their motors."""
