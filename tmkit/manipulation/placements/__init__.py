"""Placements: stable poses of objects on surfaces and in regions."""
