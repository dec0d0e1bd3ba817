"""Numbers of the robot scene graph language: its listings, and the graph of figure 4."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from papers.rows import ROOT, Row

import tmkit as tk
from tmkit.formats import compile_scene
from tmkit.graph import SceneGraph, graph_svg

__all__ = ["MODEL", "graph_of_figure_4", "numbers_of_lines", "rows"]

MODEL = ROOT / "tests" / "data" / "kitchen_table.rsg"
"""Listings 1, 3 and 4 with other names."""

LEGS = ("(0.85, 0.4, -0.38)", "(0.85, -0.4, -0.38)", "(-0.85, -0.4, -0.38)", "(-0.85, 0.4, -0.38)")
"""Positions of the legs relative to the plate in listing 3 [m]."""


def rows() -> Iterator[Row]:
    """Yield the rows of this paper."""
    scene = tk.load_scene(MODEL)
    yield from listings(scene)
    yield graph_of_figure_4(scene)
    yield code()


def listings(scene: SceneGraph) -> Iterator[Row]:
    """Yield the rows of listings 1 and 3."""
    camera = position(scene, "camera_pose", "scene")
    yield Row(
        "world to camera (lst. 1)",
        "(0, 0, 1) m at 0 s",
        f"{camera} m at {stamps(scene, 'camera_pose')} s",
        (camera, stamps(scene, "camera_pose")) == ("(0, 0, 1)", "0"),
        "read from the file",
    )
    counts = (
        len(scene.group_names),
        len(frames_with_stamps(scene)),
        len(frames_with_shapes(scene)),
    )
    yield Row(
        "nodes below the root (lsts. 1, 3)",
        "3 groups, 5 transforms, 5 geometric nodes",
        "{} groups, {} frames with stamps, {} frames with shapes".format(*counts),
        counts == (3, 5, 5),
        "the root is a frame",
    )
    plate, leg = (scene.shapes(name)[0].shape.dimensions for name in ("plate", "leg1"))
    yield Row(
        "plate and leg (lst. 3)",
        "1.80 m, 0.90 m, 5.0 cm; 0.1 m, 0.1 m, 0.76 m",
        f"{plate} m; {leg} m",
        (plate, leg) == ((1.8, 0.9, 0.05), (0.1, 0.1, 0.76)),
        "in SI units",
    )
    legs = [position(scene, f"leg{number}", "plate") for number in range(1, 5)]
    yield Row(
        "plate to legs (lst. 3)",
        ", ".join(LEGS) + " m",
        ", ".join(legs) + " m",
        legs == list(LEGS),
        "last rows of zeros are read as [0, 0, 0, 1], with a note",
    )
    times = ", ".join(stamps(scene, f"leg{number}_pose") for number in range(1, 5))
    yield Row(
        "their stamps (lst. 3)", "0, 1, 1, 1 s", f"{times} s", times == "0, 1, 1, 1", "one in ms"
    )


def position(scene: SceneGraph, frame: str, reference: str) -> str:
    """Return the position of a frame relative to another as text [m]."""
    numbers = scene.pose(frame, relative_to=reference).translation + 0.0
    return f"({', '.join(f'{number:g}' for number in numbers)})"


def stamps(scene: SceneGraph, frame: str) -> str:
    """Return the stamps of a frame as text [s]."""
    history = scene.stamped_poses(frame)
    return "" if history is None else ", ".join(f"{stamp:g}" for stamp in history.stamps)


def frames_with_stamps(scene: SceneGraph) -> list[str]:
    """Return the frames with stamped poses."""
    return [name for name in scene.frame_names if scene.stamped_poses(name) is not None]


def frames_with_shapes(scene: SceneGraph) -> list[str]:
    """Return the frames with shapes."""
    return [name for name in scene.frame_names if scene.shapes(name)]


def graph_of_figure_4(scene: SceneGraph) -> Row:
    """Return the row of the drawing of the graph."""
    fills: dict[str, set[str]] = {}
    for group in ElementTree.fromstring(graph_svg(scene)).findall("{*}g"):
        title, box = group.findtext("{*}title"), group.find("{*}rect")
        if title is not None and box is not None:
            fills.setdefault(str(box.get("fill")), set()).add(title.split(";")[0])
    yellow = next(names for names in fills.values() if "leg1_pose" in names)
    green = next(names for names in fills.values() if "plate" in names)
    return Row(
        "graph (Fig. 4)",
        "yellow transforms, green geometric nodes",
        f"{len(yellow)} yellow nodes with the root, {len(green)} green nodes",
        yellow == {"scene", *frames_with_stamps(scene)} and green == set(frames_with_shapes(scene)),
        "groups are grey",
    )


def numbers_of_lines() -> tuple[int, int]:
    """Return the number of lines of the model of the scene, and of the C++ code of it."""
    model = MODEL.read_text(encoding="utf-8")
    model = model[: model.index("PointCloudType")]
    with tempfile.TemporaryDirectory() as folder:
        header = Path(folder) / "scene.hpp"
        compile_scene(tk.load_scene(MODEL), header)
        generated = header.read_text(encoding="utf-8")
    return count_lines(model), count_lines(generated)


def count_lines(text: str) -> int:
    """Return the number of lines that are neither empty nor a comment."""
    lines = [line.strip() for line in text.splitlines()]
    return sum(bool(line) and not line.startswith("//") for line in lines)


def code() -> Row:
    """Return the row of the generated code."""
    model, generated = numbers_of_lines()
    return Row(
        "model and C++ code (lst. 2)",
        "fewer lines than code",
        f"{model} lines, {generated} lines of generated C++",
        model < generated,
        "blank lines and comments do not count",
    )
