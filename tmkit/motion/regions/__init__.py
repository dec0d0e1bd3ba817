"""Regions: level surfaces of a scene, their polygons, and whether an object lies in one."""
