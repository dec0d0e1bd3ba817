"""Commands about scene files: ``tmkit scene dump``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from tmkit.cli.common import AllowFolders, AsJson, Scenes, load

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph

__all__ = ["app"]

_DEEPEST_SHOWN = 50  # levels

app = typer.Typer(help="Look at scene files.", no_args_is_help=True)


@app.command()
def dump(scenes: Scenes, as_json: AsJson = False, allow: AllowFolders = None) -> None:
    """Print the frames of a scene, merged from all files; parents that none declares are shown as roots."""
    from tmkit.formats import scene_dump

    scene = load(scenes, allow=allow, complete=False)
    if as_json:
        typer.echo(json.dumps(scene_dump(scene), indent=1))
        return
    for root in scene.root_names:
        for name, depth in _in_tree_order(scene, root):
            joint, shapes = scene.joint(name), scene.shapes(name)
            kind = f" [{joint.type}{f' {joint.name}' if joint.is_actuated else ''}]" if joint.type != "fixed" else ""
            classes = f" ({', '.join(scene.classes(name))})" if scene.classes(name) else ""
            look = f": {', '.join(a.shape.kind for a in shapes)}" if shapes else ""
            typer.echo(f"{_indentation(depth)}{name}{kind}{classes}{look}")


def _indentation(depth: int) -> str:
    """Return the blanks before a frame; from some depth on, the depth in words, or long chains would fill gigabytes."""
    return "  " * depth if depth <= _DEEPEST_SHOWN else f"{'  ' * _DEEPEST_SHOWN}({depth} deep) "


def _in_tree_order(scene: SceneGraph, root: str) -> Iterator[tuple[str, int]]:
    """Yield the frames below a root, children after their parent, and how deep each is."""
    waiting = [(root, 0)]
    while waiting:
        name, depth = waiting.pop()
        yield name, depth
        waiting.extend((child, depth + 1) for child in reversed(scene.children(name)))
