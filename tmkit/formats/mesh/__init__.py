"""Mesh files: resolution of their URIs, reading within limits, inertia and colours."""
