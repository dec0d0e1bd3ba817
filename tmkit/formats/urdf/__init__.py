"""URDF: robot descriptions read and written."""
