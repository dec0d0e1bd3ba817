"""A picture of what was in the way: the scene at the moment of a failure, with the culprits in red.

:func:`draw_failure` draws an example of the diagnosis. The bodies in the way are red, the object
that was to be handled is blue, everything else that is not the arm is pale. Of the pair that met
first the arm's side is orange. A pose out of reach has a line from the tool to the object, with the
metres that are missing. The caption says what failed, how often.

The example that is drawn is of the action that failed most. Its cause is one whose first pair has a
body of a suggestion, else one whose first pair has any body that is not only a support, else the
most frequent one.

Invariants: the bytes are a function of the result; the physics is never run.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

_RED, _BLUE, _ORANGE = (0.86, 0.10, 0.10, 1.0), (0.10, 0.35, 0.95, 1.0), (0.98, 0.60, 0.15, 1.0)
_PALE = 0.65  # how much of a colour gives way to a light grey
_GREY = np.array([0.86, 0.86, 0.84])
_TEXT, _PAPER = (25, 25, 25), (255, 255, 255)
_LINE = 3  # pixels
_LETTERS = 0.021  # height of a line of the caption, in widths of the picture


def draw_failure(
    result: PlanResult,
    path: str | Path,
    *,
    action: str | None = None,
    width: int = 960,
    height: int = 640,
    renderer: Renderer = "auto",
) -> Path:
    """Draw the configuration that was blocked, when there is no plan; return the path of the file.

    Args:
        result: the answer of the planner.
        path: a ``.png`` or ``.jpg``.
        action: the action whose failure to draw, as in the diagnosis; the one that failed most by
            default.
        width: pixels.
        height: pixels of the picture above its caption.
        renderer: what draws: ``filament``, ``tiny``, or the better that is there.

    Raises:
        SimulationError: nothing failed without a motion, so there is nothing to draw.
        UnknownNameError: no such action failed.
        OutputError: the file cannot be written.
    """
    target = check_output(path, film=False)
    chosen, cause = _choose(result, action)
    example = cause.example
    if example is None:
        raise SimulationError(
            "the diagnosis has no example to draw: those of other processes stay there"
        )
    # not what is only a support, unless there is nothing else
    red = tuple(_obstacles(example)) or example.in_the_way
    scene = _coloured(example, red)
    focus = [
        *red,
        *(example.pairs[0] if example.pairs else ()),
        *([example.object] if example.object else ()),
    ]
    outlined = (
        {}
        if example.object is None
        else {example.object: example.scene.at(example.q).pose(example.object)}
    )
    still = StillScene(scene, example.q)
    camera = fit_camera(still, include=_points_of(example), focus=focus, width=width, height=height)
    pixels = _with_outlines(render(still, camera, renderer=renderer), camera, scene, outlined)
    is_gap = cause.kind is FailureKind.OUT_OF_REACH and example.object is not None
    gap = (
        partial(_draw_gap, camera=camera, example=example, text=format_length(cause.excess))
        if is_gap
        else None
    )
    return write_picture(target, _composed(pixels, _caption(chosen, cause, red), gap))


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
    """Draw a scene with some frames in red, and blue outlines where another version has them; return the file's path.

    Args:
        scene: the scene.
        q: (n_joints,) configuration of both versions.
        path: a ``.png`` or ``.jpg``.
        red: the frames; those that the scene lacks have an outline only.
        expected: the other version.
        caption: the text below.
        size: width and height of the picture above its caption [pixels].

    Raises:
        OutputError: the file cannot be written.
    """
    target, at = check_output(path, film=False), expected.at(q)
    own = {frame for piece in partition(scene).mechanisms for frame in piece.frames}
    outlined = {name: at.pose(name) for name in red if name in expected}
    here = [name for name in red if name in scene]
    points = np.array([pose.translation for pose in outlined.values()]).reshape(-1, 3)
    painted = _painted(scene, dict.fromkeys(here, _RED), own)
    still = StillScene(painted, q)
    camera = fit_camera(still, include=points, focus=here, width=size[0], height=size[1])
    pixels = _with_outlines(render(still, camera), camera, expected, outlined)
    return write_picture(target, _composed(pixels, caption))


def _with_outlines(
    pixels: NDArray[np.uint8], camera: Camera, scene: SceneGraph, outlined: Mapping[str, Pose]
) -> NDArray[np.uint8]:
    """Return a picture with outlines of frames of a scene at poses, whatever hides them."""
    pixels = pixels.copy()
    for name, pose in outlined.items():
        edge = _outline(scene, name, pose, camera)
        pixels[edge] = np.rint(255.0 * np.array(_BLUE[:3])).astype(np.uint8)
    return pixels


def _choose(result: PlanResult, action: str | None) -> tuple[ActionDiagnosis, FailureCause]:
    """Return the action and the cause to draw, by the rule of this module."""
    actions = result.diagnosis.actions
    if not actions:
        raise SimulationError(
            f"no motion failed, so there is nothing to draw: {result.explanation}"
        )
    named = {diagnosed.action: diagnosed for diagnosed in actions}
    if action is not None and action not in named:
        raise UnknownNameError.of("action that failed", action, named)
    chosen = actions[0] if action is None else named[action]
    helpful = {
        name
        for suggestion in result.diagnosis.suggestions
        if suggestion.kind is SuggestionKind.WITHOUT_BODIES
        for name in suggestion.names
    }

    def rank(cause: FailureCause) -> tuple[bool, bool, bool, int]:
        example = cause.example
        met = set(example.pairs[0]) if example is not None and example.pairs else set()
        return (
            not met & helpful,
            example is None or met.isdisjoint(_obstacles(example)),
            cause.kind is not FailureKind.OUT_OF_REACH,
            -cause.count,
        )

    return chosen, min(chosen.causes, key=rank)


def _obstacles(example: FailureExample) -> list[str]:
    """Return the blocking bodies that are not only supports."""
    scene, movable = example.scene, set(movable_frames(example.scene))
    return [
        frame
        for frame in example.in_the_way
        if frame in movable
        or ("surface" not in scene.classes(frame) and movable.isdisjoint(scene.subtree(frame)))
    ]


def _coloured(example: FailureExample, red: Iterable[str]) -> SceneGraph:
    """Return the scene in the colours of the picture."""
    scene = example.scene
    own = set(scene.subtree(example.manipulator.base)) - set(movable_frames(scene))
    colors = dict.fromkeys(set(red) - {example.object}, _RED)
    if example.object is not None:
        colors[example.object] = _BLUE
    if example.pairs:
        colors |= dict.fromkeys(own.intersection(example.pairs[0]) - set(colors), _ORANGE)
    return _painted(scene, colors, own)


def _painted(
    scene: SceneGraph, colors: Mapping[str, tuple[float, ...]], kept: Collection[str]
) -> SceneGraph:
    """Return a scene with colours of frames; all others are pale but for those that keep theirs."""
    with scene.edit() as edit:
        for frame in scene.frame_names:
            parts = scene.shapes(frame)
            if frame in colors:
                edit.set_shapes(frame, [_with_colour(part, colors[frame]) for part in parts])
            elif frame not in kept:
                edit.set_shapes(frame, [_with_colour(part, _paler(part)) for part in parts])
    return edit.finish()


def _with_colour(part: AttachedShape, color: tuple[float, ...]) -> AttachedShape:
    return part.replace(color=color)


def _paler(part: AttachedShape) -> tuple[float, ...]:
    color = np.array(part.color if part.color is not None else (0.7, 0.7, 0.7, 1.0))
    return (*((1.0 - _PALE) * color[:3] + _PALE * _GREY).tolist(), 1.0)


def _points_of(example: FailureExample) -> NDArray[np.float64]:
    """Return points (n, 3) in the root frame that the picture must show: tool, object and culprits."""
    at, root = example.scene.at(example.q), example.scene.root(example.manipulator.tool)
    names = [
        example.manipulator.tool,
        *([example.object] if example.object is not None else []),
        *_obstacles(example),
    ]
    return np.array(
        [
            at.pose(name, relative_to=root).translation
            for name in names
            if example.scene.root(name) == root
        ]
    )


def _outline(scene: SceneGraph, name: str, pose: Pose, camera: Camera) -> NDArray[np.bool_]:
    """Return where the outline of a frame at a pose is (height, width)."""
    with importing("PIL", "pictures", "pictures of failures need"):
        from PIL import Image, ImageDraw

    mask = Image.new("1", (camera.width, camera.height))
    draw = ImageDraw.Draw(mask)
    for part in scene.shapes(name):
        vertices, faces = drawn_triangles(part.shape)
        corners = [
            _projected(camera, point) for point in np.asarray((pose @ part.pose).apply(vertices))
        ]
        for face in faces if part.visual else ():
            draw.polygon([corners[int(corner)] for corner in face], fill=1)
    alone = np.asarray(mask, dtype=bool)
    edge = np.zeros_like(alone)
    for axis in (0, 1):
        for shift in range(-1, 2):
            edge |= alone ^ np.roll(alone, shift, axis=axis)
    return edge


def _caption(action: ActionDiagnosis, cause: FailureCause, red: tuple[str, ...]) -> str:
    """Return what the picture shows, in words."""
    each = f", of these {cause.count} times" if cause.count < action.failures else ","
    named = f" Red: {', '.join(red)}." if red else ""
    return (
        f"{action.action} failed {action.failures} time{'s' * (action.failures != 1)}{each}"
        f" {cause}.{named}"
    )


def _composed(
    pixels: NDArray[np.uint8], caption: str, mark: Callable[[ImageDraw, Any], None] | None = None
) -> NDArray[np.uint8]:
    """Put a caption below a picture, and a mark into it, drawn with the caption's font."""
    with importing("PIL", "pictures", "pictures of failures need"):
        from PIL import Image, ImageDraw, ImageFont

    height, width = pixels.shape[:2]
    size = max(10, round(_LETTERS * width))
    font: Any = ImageFont.load_default(size)
    lines = textwrap.wrap(caption, round(width / (0.47 * size)))
    paper = Image.new("RGB", (width, height + round(size * (1.35 * len(lines) + 1.0))), _PAPER)
    paper.paste(Image.fromarray(pixels), (0, 0))
    draw = ImageDraw.Draw(paper)
    if mark is not None:
        mark(draw, font)
    for number, line in enumerate(lines):
        draw.text(
            (round(0.7 * size), height + round(size * (0.5 + 1.35 * number))),
            line,
            fill=_TEXT,
            font=font,
        )
    return np.asarray(paper, dtype=np.uint8)


def _draw_gap(
    draw: ImageDraw, font: Any, *, camera: Camera, example: FailureExample, text: str
) -> None:
    """Draw a line from the tool to the object out of reach, with its least length."""
    at, root = example.scene.at(example.q), example.scene.root(example.manipulator.tool)
    ends = [
        at.pose(name, relative_to=root).translation
        for name in (example.manipulator.tool, str(example.object))
    ]
    seen = [_projected(camera, point) for point in ends]
    draw.line([*seen[0], *seen[1]], fill=(200, 30, 30), width=_LINE)
    words = f"at least {text}"
    width = float(draw.textlength(words, font=font))
    (x, y), run = np.mean(seen, axis=0), abs(seen[1][0] - seen[0][0]) or 1.0
    # of the line within the words
    rise = 0.5 * width * min(abs(seen[1][1] - seen[0][1]) / run, 2.0)
    draw.text(
        (float(x) - width / 2.0, float(y) - rise - 1.5 * font.size),
        words,
        fill=(200, 30, 30),
        font=font,
    )


def _projected(camera: Camera, point: NDArray[np.float64]) -> tuple[float, float]:
    """Return where a point of the root frame is in the picture: columns from the left, rows from the top, pixels."""
    right, up, back = (point - np.asarray(camera.position)) @ camera.axes()
    half = np.tan(camera.field_of_view / 2.0)
    across, rise = right / -back / (half * camera.width / camera.height), up / -back / half
    return float((1.0 + across) * camera.width / 2.0), float((1.0 - rise) * camera.height / 2.0)
