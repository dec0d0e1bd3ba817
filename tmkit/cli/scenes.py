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

app = typer.Typer(help="Look at scene files.", no_args_is_help=True)


@app.command()
def dump(scenes: Scenes, as_json: AsJson = False, allow: AllowFolders = None) -> None:
    """Print the frames of a scene, merged from all files; parents that none declares are shown as roots."""
    from tmkit.formats import scene_dump

    scene = load(scenes, allow=allow, complete=False)
    if as_json:
        typer.echo(json.dumps(scene_dump(scene), indent=1))
        return
    depth = {name: len(scene.ancestors(name)) for name in scene.frame_names}
    for root in scene.root_names:
        for name in _in_tree_order(scene, root):
            joint, shapes = scene.joint(name), scene.shapes(name)
            kind = f" [{joint.type}{f' {joint.name}' if joint.is_actuated else ''}]" if joint.type != "fixed" else ""
            classes = f" ({', '.join(scene.classes(name))})" if scene.classes(name) else ""
            look = f": {', '.join(a.shape.kind for a in shapes)}" if shapes else ""
            typer.echo(f"{'  ' * depth[name]}{name}{kind}{classes}{look}")


def _in_tree_order(scene: SceneGraph, root: str) -> Iterator[str]:
    waiting = [root]
    while waiting:
        name = waiting.pop()
        yield name
        waiting.extend(reversed(scene.children(name)))
