"""Tables of ``python -m tests.papers``: a function that returns rows, by the title of a paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from papers import language, relations, task_motion_kit, uncertainty
from papers.rows import Row

__all__ = ["TABLES"]

TABLES: dict[str, Callable[[], Iterable[Row]]] = {
    "The Task-Motion Kit": task_motion_kit.rows,
    "Scene graph of poses and twists": relations.rows_of_scene_graph,
    "Geometric relations between rigid bodies": relations.rows_of_semantics,
    "Robot scene graph language": language.rows,
    "Uncertain transformations": uncertainty.rows,
}
"""Rows by paper, in the order of ``docs/reference/papers.md``."""
