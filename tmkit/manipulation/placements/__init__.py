"""Stable poses of objects on surfaces and in regions."""
