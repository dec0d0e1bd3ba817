"""Reader and writer of URDF robot descriptions."""
