"""The representations of all relations: which numbers stand for a relation, and which constraint they impose.

Each module holds those of some relations, after the table of De Laet et al., part 1, 2013.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
