"""The live world: a buffer with tf2's interface, function blocks, perception, and the service."""

from __future__ import annotations

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
