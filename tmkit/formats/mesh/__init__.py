"""Meshes: files of geometry, found and read within the user's limits."""
