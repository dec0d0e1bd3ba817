"""Distance between convex polygons."""

from __future__ import annotations

import numpy as np

from tmkit.motion.regions.polygons import ConvexPolygon


def separation(a: ConvexPolygon, b: ConvexPolygon) -> float:
    """Return the widest gap along an edge normal of either polygon, negative on overlap [m]."""
    gaps = [
        np.max(np.min(second.vertices @ normals.T, axis=0) - offsets)
        for first, second in ((a, b), (b, a))
        for normals, offsets in (first.edges,)
    ]
    return float(max(gaps))
