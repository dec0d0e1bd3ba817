"""Visualization: scenes, plans and failures in a browser, plots of results and pictures of scenes.

:func:`show` opens a :class:`Viewer`, and :func:`save_html` writes a page that needs no server.
Plots and pictures need the extra ``pictures``. Without it, each of their functions raises a
:class:`~tmkit.errors.MissingExtraError`.
"""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
