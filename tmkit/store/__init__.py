"""A store of scene versions on disk: git for worlds.

:class:`Store` is a folder with named branches of versions. A version is kept as its difference to
its parent, meshes once by content, and it is found by a hash that covers its history.
:func:`merge_scenes` is the three-way merge of scenes without a store.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
