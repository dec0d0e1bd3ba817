"""Fuzz the reader of JSON scenes: ``python tests/fuzz/fuzz_json.py --seconds 600 --seed 1``."""

from __future__ import annotations

import json

from engine import Target, main

from tmkit.formats import load_scene, scene_to_dict
from tmkit.graph import AttachedShape, Box, Mesh, Revolute, SceneGraph


def target() -> Target:
    """Return the reader of JSON scenes with a small one to begin with."""
    corners, faces = (
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]],
    )
    scene = SceneGraph().add_frame(
        "a",
        "world",
        joint=Revolute([0, 0, 1], lower=-1, upper=1),
        shapes=[AttachedShape(Box([1, 2, 3]))],
    )
    scene = scene.add_frame("b", "a", shapes=[AttachedShape(Mesh(corners, faces))])
    return Target(
        "json",
        "main.json",
        load_scene,
        [json.dumps(scene_to_dict(scene), indent=1).encode()],
        tokens=(
            b'{ } [ ] , : null true false NaN Infinity "" "a" "b" "world" "mesh" "box" "free"'
            b' "mimic"'.split()
        ),
        nestings=[(b"[", b"]"), (b'{"a":', b"}")],
    )


if __name__ == "__main__":
    main([target()], description=__doc__ or "")
