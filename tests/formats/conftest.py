"""Tools of the tests of the formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tmkit.formats import ReadingOptions, load_scene
from tmkit.graph import SceneGraph

Loader = Callable[..., SceneGraph]


@pytest.fixture
def load(tmp_path: Path) -> Loader:
    """Load a scene from texts: the main file, further files by keyword, and options."""

    def loader(
        text: str,
        *,
        suffix: str = ".robray",
        options: dict[str, Any] | None = None,
        **other_texts: str,
    ) -> SceneGraph:
        for name, content in other_texts.items():
            (tmp_path / name.replace("__", ".")).write_text(content)
        path = tmp_path / f"main{suffix}"
        path.write_text(text)
        wanted = dict(options or {})
        on_note = wanted.pop("on_note", None)
        return load_scene(path, reading=ReadingOptions(**wanted), on_note=on_note)

    return loader
