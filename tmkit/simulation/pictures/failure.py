"""Pictures of failures: the scene at the moment of a failure, with the obstacles in red.

:func:`draw_failure` draws an example of the diagnosis. The obstacles are red, the object of the
action is blue, and all other bodies except the arm are pale. The link of the arm in the first
colliding pair is orange. For a pose out of reach, a line from the tool to the object has the
missing distance. The caption contains the action, the number of failures and the cause.

The example belongs to the action with the most failures. The cause is selected in this order:

1. a cause of which the first pair has a body of a suggestion;
2. a cause of which the first pair has a body that is not only a support;
3. the most frequent cause.

Invariants: the bytes are a function of the result. The physics is never run.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.extras import importing
from tmkit.errors import SimulationError, UnknownNameError
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.plans import FailureKind
from tmkit.robots import movable_frames
from tmkit.simulation.camera import Camera, fit_camera
from tmkit.simulation.engines.pybullet.shapes import drawn_triangles
from tmkit.simulation.pictures.recording import check_output, write_picture
from tmkit.simulation.pieces import partition
from tmkit.simulation.rendering.studio import Renderer, StillScene, render
from tmkit.spatial import Pose
from tmkit.tamp import PlanResult
from tmkit.tamp.diagnosis.diagnosis import (
    ActionDiagnosis,
    FailureCause,
    FailureExample,
    SuggestionKind,
    format_length,
)

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

_OBSTACLE_COLOR = (0.86, 0.10, 0.10, 1.0)
"""Red, green, blue and opacity of obstacles."""

_OBJECT_COLOR = (0.10, 0.35, 0.95, 1.0)
"""Colour of the object of the action, and of outlines."""

_LINK_COLOR = (0.98, 0.60, 0.15, 1.0)
"""Colour of the colliding link of the arm."""

_DEFAULT_COLOR = (0.7, 0.7, 0.7, 1.0)
"""Colour of shapes without one, before they are made pale."""

_PALE_FRACTION = 0.65
"""Fraction of light grey in the colour of all other bodies."""

_LIGHT_GREY = np.array([0.86, 0.86, 0.84])
"""(3,) light grey of pale bodies."""

_TEXT_COLOR = (25, 25, 25)
"""Colour of the caption."""

_PAPER_COLOR = (255, 255, 255)
"""Background of the caption."""

_GAP_COLOR = (200, 30, 30)
"""Colour of the line to an object out of reach."""

_GAP_LINE_WIDTH = 3
"""Width of the line to an object out of reach [pixels]."""

_RELATIVE_FONT_SIZE = 0.021
"""Font size of the caption in widths of the picture."""


def draw_failure(
    result: PlanResult,
    path: str | Path,
    *,
    action: str | None = None,
    width: int = 960,
    height: int = 640,
    renderer: Renderer = "auto",
) -> Path:
    """Draw the blocked configuration of a failed search, and return the path of the file.

    Args:
        result: result of the planner.
        path: path of a ``.png`` or ``.jpg`` file.
        action: action of which to draw a failure, as in the diagnosis. Defaults to the one with the
            most failures.
        width: width of the picture [pixels].
        height: height of the picture above its caption [pixels].
        renderer: ``filament``, ``tiny``, or ``auto`` for the better one that is installed.

    Raises:
        SimulationError: if no motion failed, so that there is no example to draw.
        UnknownNameError: if no action of this name failed.
        OutputError: if the file cannot be written.
    """
    target = check_output(path, film=False)
    chosen, cause = _choose(result, action)
    example = cause.example
    if example is None:
        raise SimulationError(
            "the diagnosis has no example to draw: examples of other processes are not transferred"
        )
    # Supports are red only if there is no other obstacle.
    red = tuple(_obstacles(example)) or example.in_the_way
    scene = _paint_example(example, red)
    focus = [
        *red,
        *(example.pairs[0] if example.pairs else ()),
        *([example.object] if example.object else ()),
    ]
    outlines = {}
    if example.object is not None:
        outlines[example.object] = example.scene.at(example.q).pose(example.object)
    still = StillScene(scene, example.q)
    camera = fit_camera(
        still, include=_example_points(example), focus=focus, width=width, height=height
    )
    pixels = _draw_outlines(render(still, camera, renderer=renderer), camera, scene, outlines)
    mark = None
    if cause.kind is FailureKind.OUT_OF_REACH and example.object is not None:
        mark = partial(_draw_gap, camera=camera, example=example, text=format_length(cause.excess))
    return write_picture(target, _add_caption_below(pixels, _caption(chosen, cause, red), mark))


def draw_marked(
    scene: SceneGraph,
    q: ArrayLike,
    path: str | Path,
    *,
    red: Collection[str],
    expected: SceneGraph,
    caption: str,
    size: tuple[int, int] = (960, 640),
) -> Path:
    """Draw a scene with some frames in red, and with blue outlines at their expected poses.

    Args:
        scene: the scene.
        q: (n_joints,) configuration of both scenes.
        path: path of a ``.png`` or ``.jpg`` file.
        red: frames to mark. Frames that the scene lacks have an outline only.
        expected: scene with the expected poses.
        caption: text below the picture.
        size: width and height of the picture above its caption [pixels].

    Returns:
        Path of the file.

    Raises:
        OutputError: if the file cannot be written.
    """
    target, expected_state = check_output(path, film=False), expected.at(q)
    mechanism_frames = {frame for piece in partition(scene).mechanisms for frame in piece.frames}
    outlines = {name: expected_state.pose(name) for name in red if name in expected}
    present = [name for name in red if name in scene]
    points = np.array([pose.translation for pose in outlines.values()]).reshape(-1, 3)
    colors = dict.fromkeys(present, _OBSTACLE_COLOR)
    still = StillScene(_paint(scene, colors, mechanism_frames), q)
    camera = fit_camera(still, include=points, focus=present, width=size[0], height=size[1])
    pixels = _draw_outlines(render(still, camera), camera, expected, outlines)
    return write_picture(target, _add_caption_below(pixels, caption))


def _draw_outlines(
    pixels: NDArray[np.uint8], camera: Camera, scene: SceneGraph, outlines: Mapping[str, Pose]
) -> NDArray[np.uint8]:
    """Return a picture with outlines of frames of a scene at poses, also of hidden frames."""
    pixels = pixels.copy()
    for name, pose in outlines.items():
        edge = _outline(scene, name, pose, camera)
        pixels[edge] = np.rint(255.0 * np.array(_OBJECT_COLOR[:3])).astype(np.uint8)
    return pixels


def _choose(result: PlanResult, action: str | None) -> tuple[ActionDiagnosis, FailureCause]:
    """Return the action and the cause to draw, in the order of the module docstring."""
    actions = result.diagnosis.actions
    if not actions:
        raise SimulationError(
            f"no motion failed, so there is nothing to draw: {result.explanation}"
        )
    by_name = {diagnosis.action: diagnosis for diagnosis in actions}
    if action is not None and action not in by_name:
        raise UnknownNameError.of("action that failed", action, by_name)
    chosen = actions[0] if action is None else by_name[action]
    suggested = {
        name
        for suggestion in result.diagnosis.suggestions
        if suggestion.kind is SuggestionKind.WITHOUT_BODIES
        for name in suggestion.names
    }
    return chosen, min(chosen.causes, key=partial(_cause_rank, suggested=suggested))


def _cause_rank(cause: FailureCause, *, suggested: set[str]) -> tuple[bool, bool, bool, int]:
    """Return the sort key of a cause, by the order of the module docstring."""
    example = cause.example
    pair = set(example.pairs[0]) if example is not None and example.pairs else set()
    return (
        not pair & suggested,
        example is None or pair.isdisjoint(_obstacles(example)),
        cause.kind is not FailureKind.OUT_OF_REACH,
        -cause.count,
    )


def _obstacles(example: FailureExample) -> list[str]:
    """Return the obstacles that are not only supports."""
    scene, movable = example.scene, set(movable_frames(example.scene))
    return [
        frame
        for frame in example.in_the_way
        if frame in movable
        or ("surface" not in scene.classes(frame) and movable.isdisjoint(scene.subtree(frame)))
    ]


def _paint_example(example: FailureExample, red: Iterable[str]) -> SceneGraph:
    """Return the scene of an example in the colours of the picture."""
    scene = example.scene
    arm_frames = set(scene.subtree(example.robot.base)) - set(movable_frames(scene))
    colors = dict.fromkeys(set(red) - {example.object}, _OBSTACLE_COLOR)
    if example.object is not None:
        colors[example.object] = _OBJECT_COLOR
    if example.pairs:
        links = arm_frames.intersection(example.pairs[0]) - set(colors)
        colors |= dict.fromkeys(links, _LINK_COLOR)
    return _paint(scene, colors, arm_frames)


def _paint(
    scene: SceneGraph, colors: Mapping[str, tuple[float, ...]], unchanged: Collection[str]
) -> SceneGraph:
    """Return a scene with new colours of some frames, in which all others are pale.

    Args:
        scene: the scene.
        colors: red, green, blue and opacity by frame.
        unchanged: frames that keep their colours.
    """
    with scene.edit() as edit:
        for frame in scene.frame_names:
            parts = scene.shapes(frame)
            if frame in colors:
                edit.set_shapes(frame, [part.replace(color=colors[frame]) for part in parts])
            elif frame not in unchanged:
                edit.set_shapes(frame, [part.replace(color=_pale_color(part)) for part in parts])
    return edit.finish()


def _pale_color(part: AttachedShape) -> tuple[float, ...]:
    """Return the colour of a shape, mixed with light grey."""
    color = np.array(part.color if part.color is not None else _DEFAULT_COLOR)
    mixed = (1.0 - _PALE_FRACTION) * color[:3] + _PALE_FRACTION * _LIGHT_GREY
    return (*mixed.tolist(), 1.0)


def _example_points(example: FailureExample) -> NDArray[np.float64]:
    """Return points (n, 3) to show in the root frame: tool, object and obstacles."""
    state, root = example.scene.at(example.q), example.scene.root(example.robot.tool)
    names = [
        example.robot.tool,
        *([example.object] if example.object is not None else []),
        *_obstacles(example),
    ]
    return np.array(
        [
            state.pose(name, relative_to=root).translation
            for name in names
            if example.scene.root(name) == root
        ]
    )


def _outline(scene: SceneGraph, name: str, pose: Pose, camera: Camera) -> NDArray[np.bool_]:
    """Return the mask (height, width) of the outline of a frame at a pose."""
    with importing("PIL", "pictures", "pictures of failures need"):
        from PIL import Image, ImageDraw

    mask = Image.new("1", (camera.width, camera.height))
    draw = ImageDraw.Draw(mask)
    for part in scene.shapes(name):
        vertices, faces = drawn_triangles(part.shape)
        points = np.asarray((pose @ part.pose).apply(vertices))
        corners = [_project(camera, point) for point in points]
        for face in faces if part.visual else ():
            draw.polygon([corners[int(corner)] for corner in face], fill=1)
    silhouette = np.asarray(mask, dtype=bool)
    edge = np.zeros_like(silhouette)
    for axis in (0, 1):
        for shift in range(-1, 2):
            edge |= silhouette ^ np.roll(silhouette, shift, axis=axis)
    return edge


def _caption(action: ActionDiagnosis, cause: FailureCause, red: tuple[str, ...]) -> str:
    """Return the caption: action, number of failures, cause and red bodies."""
    plural = "s" if action.failures != 1 else ""
    count = f", of these {cause.count} times" if cause.count < action.failures else ","
    red_names = f" Red: {', '.join(red)}." if red else ""
    return f"{action.action} failed {action.failures} time{plural}{count} {cause}.{red_names}"


def _add_caption_below(
    pixels: NDArray[np.uint8],
    caption: str,
    mark: Callable[[ImageDraw, FreeTypeFont | ImageFont, int], None] | None = None,
) -> NDArray[np.uint8]:
    """Return a picture with a caption below it.

    Args:
        pixels: (height, width, 3) picture.
        caption: text of the caption.
        mark: draws into the picture, with the font of the caption and its size [pixels].
    """
    with importing("PIL", "pictures", "pictures of failures need"):
        from PIL import Image, ImageDraw, ImageFont

    height, width = pixels.shape[:2]
    size = max(10, round(_RELATIVE_FONT_SIZE * width))
    font = ImageFont.load_default(size)
    lines = textwrap.wrap(caption, round(width / (0.47 * size)))
    paper_height = height + round(size * (1.35 * len(lines) + 1.0))
    paper = Image.new("RGB", (width, paper_height), _PAPER_COLOR)
    paper.paste(Image.fromarray(pixels), (0, 0))
    draw = ImageDraw.Draw(paper)
    if mark is not None:
        mark(draw, font, size)
    for number, line in enumerate(lines):
        draw.text(
            (round(0.7 * size), height + round(size * (0.5 + 1.35 * number))),
            line,
            fill=_TEXT_COLOR,
            font=font,
        )
    return np.asarray(paper, dtype=np.uint8)


def _draw_gap(
    draw: ImageDraw,
    font: FreeTypeFont | ImageFont,
    size: int,
    *,
    camera: Camera,
    example: FailureExample,
    text: str,
) -> None:
    """Draw a line from the tool to the object out of reach, with its minimum length."""
    state, root = example.scene.at(example.q), example.scene.root(example.robot.tool)
    ends = [
        state.pose(name, relative_to=root).translation
        for name in (example.robot.tool, str(example.object))
    ]
    (x0, y0), (x1, y1) = (_project(camera, point) for point in ends)
    draw.line([x0, y0, x1, y1], fill=_GAP_COLOR, width=_GAP_LINE_WIDTH)
    label = f"at least {text}"
    width = float(draw.textlength(label, font=font))
    x, y = (x0 + x1) / 2.0, (y0 + y1) / 2.0
    run = abs(x1 - x0) or 1.0
    # The rise of the line over half of the label, so that the label is above the line.
    rise = 0.5 * width * min(abs(y1 - y0) / run, 2.0)
    draw.text((x - width / 2.0, y - rise - 1.5 * size), label, fill=_GAP_COLOR, font=font)


def _project(camera: Camera, point: NDArray[np.float64]) -> tuple[float, float]:
    """Return the column and row of a point of the root frame in the picture [pixels]."""
    right, up, back = (point - np.asarray(camera.position)) @ camera.axes()
    half = np.tan(camera.field_of_view / 2.0)
    column = right / -back / (half * camera.width / camera.height)
    row = up / -back / half
    return float((1.0 + column) * camera.width / 2.0), float((1.0 - row) * camera.height / 2.0)
