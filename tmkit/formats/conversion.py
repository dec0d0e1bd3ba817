"""Lossless conversion of scenes; see docs/reference/scenes.md, *Check and convert*.

A conversion is verified by reading the written file. JSON, RSG-DSL and robray preserve all numbers.
URDF stores rotations as three angles, so its poses and inertias are compared up to rounding.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from tmkit._support.output import write_files
from tmkit._support.signals import temporary_folder
from tmkit._support.source_location import did_you_mean
from tmkit.errors import PlugInError, SceneError, TmkitError
from tmkit.formats.format import Format
from tmkit.formats.json.format import JSON
from tmkit.formats.json.frames import stamps_to_dict
from tmkit.formats.loading import load_scene
from tmkit.formats.registry import find_format, written_suffixes
from tmkit.formats.robray.format import ROBRAY
from tmkit.formats.rsg.block_writer import rsg_from_blocks
from tmkit.formats.rsg.format import RSG
from tmkit.formats.spec.model import FunctionBlockSpec
from tmkit.graph import AttachedShape, FrameSpecification, Inertia, Joint, SceneGraph
from tmkit.plug_ins import InstalledRegistration
from tmkit.spatial import Pose

_logger = logging.getLogger(__name__)

_JOINT_NUMBERS = ("lower", "upper", "velocity", "effort", "damping", "friction")
"""Names of the numbers of a joint."""

_FILE_ROUNDING = 1e-9
"""Largest rounding error of a file [m or rad], and relative error of an inertia."""


def convert_scene(
    scene: SceneGraph, path: str | os.PathLike[str], *, blocks: Sequence[FunctionBlockSpec] = ()
) -> tuple[Path, ...]:
    """Write a scene as a file that reads back to the same scene.

    Args:
        scene: the scene.
        path: path of the file. The suffix selects the format: ``.json``, ``.robray``, ``.rsg``,
            ``.urdf``, ``.usda``, ``.usd``, ``.gltf``, ``.glb``, or a suffix of a plug-in. Meshes
            that the format cannot store become OBJ files in the same folder.
        blocks: function blocks of the files of the scene; see :func:`read_function_blocks`. A
            ``.rsg`` file stores them, and a warning names those that another format omits.

    Returns:
        Paths of the written files, the scene first.

    Raises:
        SceneError: if the format cannot store the scene; the message contains the first difference.
        OutputError: if a file cannot be written.
    """
    target = Path(path)
    entry = _writable_format(target)
    contents = _contents(entry, scene, target.name)
    if blocks:
        contents = _add_blocks(entry.value, contents, target, scene, blocks)
    if entry.value.comparison != "none":
        is_exact = entry.value.comparison == "exact"
        difference = _difference(scene, _read_back(target.name, contents), is_exact=is_exact)
        if difference is not None:
            lossless_formats = [JSON] if is_exact else [ROBRAY, JSON]
            suffixes = " or ".join(lossless.suffixes[0] for lossless in lossless_formats)
            reason = (
                f"a {target.suffix.lower()} file cannot hold this scene: {difference}; write"
                f" {suffixes}"
            )
            raise SceneError(f"{target}: {reason}")
    extra_files = {
        target.with_name(name): content for name, content in contents.items() if name != target.name
    }
    write_files({**extra_files, target: contents[target.name]})
    return (target, *extra_files)


def _add_blocks(
    scene_format: Format,
    contents: Mapping[str, str | bytes],
    target: Path,
    scene: SceneGraph,
    blocks: Sequence[FunctionBlockSpec],
) -> Mapping[str, str | bytes]:
    """Return the contents of files with function blocks, or unchanged with a warning."""
    text = contents[target.name]
    if scene_format is RSG and isinstance(text, str):
        return {**contents, target.name: text + rsg_from_blocks(blocks, scene)}
    names = ", ".join(f"'{block.name}'" for block in blocks)
    _logger.warning("%s: a %s file has no function blocks: %s", target, target.suffix, names)
    return contents


def _writable_format(target: Path) -> InstalledRegistration[Format]:
    """Return the format for writing a file.

    Raises:
        SceneError: if no format writes files with this suffix.
    """
    try:
        entry = find_format(target)
    except PlugInError as error:
        raise SceneError(f"{target}: {error}") from error
    if entry is None or target.suffix.lower() not in entry.value.written_suffixes:
        hint = did_you_mean(target.suffix.lower(), written_suffixes())
        suffixes = ", ".join(written_suffixes())
        reason = f"cannot write '{target.suffix}' files{hint} (known: {suffixes})"
        raise SceneError(f"{target}: {reason}")
    return entry


def _contents(
    entry: InstalledRegistration[Format], scene: SceneGraph, name: str
) -> Mapping[str, str | bytes]:
    """Return the contents of the files of a scene by name, and check their type.

    Raises:
        SceneError: if a plug-in fails or returns another type.
    """
    assert entry.value.write is not None
    try:
        contents = entry.value.write(scene, name)
    except (TmkitError, MemoryError):
        raise
    except Exception as error:
        if not entry.distribution:
            raise
        raise SceneError(str(entry.error_of(error))) from error
    is_valid = isinstance(contents, Mapping) and all(
        isinstance(file, str) and Path(file).name == file and isinstance(content, str | bytes)
        for file, content in contents.items()
    )
    if not is_valid or name not in contents:
        expected = f"expected the contents of '{name}' and of files beside it, by name"
        raise SceneError(str(entry.failure(f"returns {repr(contents)[:60]}, {expected}")))
    return contents


def _read_back(name: str, contents: Mapping[str, str | bytes]) -> SceneGraph:
    """Return the scene of files, from their contents by name.

    Raises:
        SceneError: if the files are invalid.
    """
    with temporary_folder("convert") as folder:
        for file, content in contents.items():
            (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)
        try:
            return load_scene(folder / name)
        except TmkitError as error:
            reason = error.data.get("reason", str(error))  # without the temporary path
            raise SceneError(f"the contents of '{name}' cannot be read back: {reason}") from error


def _difference(scene: SceneGraph, other: SceneGraph, *, is_exact: bool) -> str | None:
    """Return the first difference between a scene and the scene of its file, if any.

    Args:
        scene: converted scene.
        other: scene that was read back.
        is_exact: whether rounding errors are differences.
    """
    if scene == other:
        return None
    if scene.frame_names != other.frame_names:
        return f"its frames would read back {_frame_difference(scene, other)}"
    for name in scene.frame_names:
        comparisons = _compare_frames(
            scene.specification(name), other.specification(name), is_exact=is_exact
        )
        for part, is_same in comparisons:
            if not is_same:
                return f"the {part} of frame '{name}' would be lost or changed"
    if scene.allowed_pairs != other.allowed_pairs:
        lost_pairs = [pair for pair in scene.allowed_pairs if pair not in other.allowed_pairs]
        new_pairs = [pair for pair in other.allowed_pairs if pair not in scene.allowed_pairs]
        first, second, reason = (lost_pairs or new_pairs)[0]
        return (
            f"that '{first}' and '{second}' may touch (reason '{reason}') would be"
            f" {'lost' if lost_pairs else 'added'}"
        )
    has_same_groups = scene.group_names == other.group_names
    has_same_attributes = scene.attributes("world") == other.attributes("world")
    if is_exact or not (has_same_groups and has_same_attributes):
        return "its groups or attributes would be lost"
    return None


def _frame_difference(scene: SceneGraph, other: SceneGraph) -> str:
    """Return the difference between the frame names of two scenes, as the end of a sentence."""
    missing_frames = [name for name in scene.frame_names if name not in other]
    if missing_frames:
        return f"without '{missing_frames[0]}'"
    new_frames = [name for name in other.frame_names if name not in scene]
    return f"with '{new_frames[0]}'" if new_frames else "in another order"


def _compare_frames(
    a: FrameSpecification, b: FrameSpecification, *, is_exact: bool
) -> Iterable[tuple[str, bool]]:
    """Yield the name of each part of a frame, and whether it is the same in both frames."""
    yield "parent", a.parent == b.parent
    yield "body", a.body == b.body
    yield "classes", tuple(a.classes) == tuple(b.classes)
    yield "attributes", a.attributes == b.attributes
    yield "joint", a.joint == b.joint or (not is_exact and _are_close_joints(a.joint, b.joint))
    yield "pose", a.pose == b.pose or (not is_exact and _are_close_poses(a.pose, b.pose))
    yield "stamped poses", _stamps_text(a) == _stamps_text(b)
    yield "twist", _twist_text(a) == _twist_text(b)
    yield (
        "mass and inertia",
        a.inertia == b.inertia or (not is_exact and _are_close_inertias(a.inertia, b.inertia)),
    )
    has_same_shapes = len(a.shapes) == len(b.shapes) and all(
        shape_a == shape_b or (not is_exact and _are_close_shapes(shape_a, shape_b))
        for shape_a, shape_b in zip(a.shapes, b.shapes, strict=True)
    )
    yield "shapes", has_same_shapes


def _stamps_text(frame: FrameSpecification) -> str:
    return "" if frame.stamps is None else str(stamps_to_dict(frame.stamps))


def _twist_text(frame: FrameSpecification) -> str:
    return "" if frame.twist is None else f"{frame.twist[0]} {frame.twist[1].tolist()}"


def _are_close_poses(a: Pose, b: Pose) -> bool:
    return a.is_close(b, translation_tolerance=_FILE_ROUNDING, rotation_tolerance=1e-7)


def _are_close_joints(a: Joint, b: Joint) -> bool:
    """Return whether joints have the same type, names and mimic, and close numbers."""
    numbers_a, numbers_b = ([getattr(joint, key) for key in _JOINT_NUMBERS] for joint in (a, b))
    has_same_names = all(
        getattr(a, key) == getattr(b, key) for key in ("type", "is_stated", "name", "mimic")
    )
    is_close = np.allclose(numbers_a, numbers_b, rtol=1e-12, atol=0.0) and np.allclose(
        a.axis, b.axis, rtol=0.0, atol=_FILE_ROUNDING
    )
    return has_same_names and bool(is_close)


def _are_close_inertias(a: Inertia | None, b: Inertia | None) -> bool:
    """Return whether both inertias are None, or have the same mass and close numbers."""
    if a is None or b is None:
        return a is b
    magnitude = float(np.max(np.abs(a.matrix), initial=0.0))
    is_close = np.allclose(a.center, b.center, rtol=0.0, atol=_FILE_ROUNDING) and np.allclose(
        a.matrix, b.matrix, rtol=0.0, atol=1e-9 * magnitude
    )
    return a.mass == b.mass and bool(is_close)


def _are_close_shapes(a: AttachedShape, b: AttachedShape) -> bool:
    """Return whether attached shapes differ at most in the rounding of their poses."""
    has_same_values = a.shape.digest == b.shape.digest and all(
        getattr(a, key) == getattr(b, key) for key in ("visual", "collision", "friction", "color")
    )
    return has_same_values and _are_close_poses(a.pose, b.pose)
