"""Representations of all relations, with their constraints.

The modules follow the table of De Laet et al., part 1, 2013.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
