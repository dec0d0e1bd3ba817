"""Regions: level surfaces of a scene, their polygons, and whether an object lies in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.motion.regions.surfaces import (
        SupportSurface as SupportSurface,
        lies_in_region as lies_in_region,
        region_surface as region_surface,
        support_surfaces as support_surfaces,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
