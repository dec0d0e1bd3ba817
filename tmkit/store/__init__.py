"""Store of scene versions on disk, with branches and history as in Git.

:class:`Store` is a folder with named branches of versions. It stores a version as the difference to
its parent, and each mesh once by its content. The id of a version is a hash of its content and
history. :func:`merge_scenes` is the three-way merge of scenes without a store.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
