"""Estimation: several observations of one pose, factor graphs of poses, deflection under load.

A scene keeps every observation of an edge; :func:`resolve_observations` resolves them by a
:class:`ResolutionPolicy`. :func:`pose_graph` builds a factor graph, :func:`solve_pose_graph` solves
it, :func:`write_back` makes a new version.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
