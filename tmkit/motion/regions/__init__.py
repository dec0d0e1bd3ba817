"""Regions: level surfaces of a scene, their polygons, and tests of objects against them."""
