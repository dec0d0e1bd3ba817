"""Regions: level surfaces of a scene, their polygons, and whether an object lies in one."""

from tmkit.motion.regions.surfaces import SupportSurface, lies_in_region, region_surface, support_surfaces

__all__ = ["SupportSurface", "lies_in_region", "region_surface", "support_surfaces"]
