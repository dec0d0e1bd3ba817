"""SDF: models and worlds of Gazebo and Drake, read."""
