"""Scenes written in another format, and proved to read back as the same: docs/reference/scenes.md, *Check and convert*.

JSON, RSG-DSL and robray give the same bits. URDF writes rotations as three angles, so its poses and
inertias are compared up to rounding.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
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
from tmkit.graph import AttachedShape, FrameSpecification, Inertia, Joint, SceneGraph
from tmkit.plug_ins import InstalledRegistration
from tmkit.spatial import Pose

_NUMBERS = ("lower", "upper", "velocity", "effort", "damping", "friction")
_FILE_ROUNDING = 1e-9  # metres, radians, and the share of an inertia


def convert_scene(scene: SceneGraph, path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Write a scene as a file that reads back to the same scene, or refuse; return the files, the scene first.

    Args:
        scene: the scene.
        path: the file, in the format of its suffix: ``.json``, ``.robray``, ``.rsg``, ``.urdf``,
            ``.usda``, ``.usd``, ``.gltf``, ``.glb``, or that of a plug-in. Meshes that the format
            cannot hold become OBJ files beside it.

    Raises:
        SceneError: the format cannot say something of this scene; the message says what.
        OutputError: a file cannot be written.
    """
    target = Path(path)
    found = _writable_format(target)
    contents = _contents(found, scene, target.name)
    if found.value.comparison != "none":
        again = _read_back(target.name, contents)
        difference = _difference(scene, again, exact=found.value.comparison == "exact")
        if difference is not None:
            lossless = [JSON] if found.value.comparison == "exact" else [ROBRAY, JSON]
            other = " or ".join(entry.suffixes[0] for entry in lossless)
            reason = (
                f"a {target.suffix.lower()} file cannot hold this scene: {difference}; write"
                f" {other}"
            )
            raise SceneError(f"{target}: {reason}")
    beside = {
        target.with_name(name): content for name, content in contents.items() if name != target.name
    }
    write_files({**beside, target: contents[target.name]})
    return (target, *beside)


def _writable_format(target: Path) -> InstalledRegistration[Format]:
    """Return the format of a file to be written."""
    try:
        found = find_format(target)
    except PlugInError as error:
        raise SceneError(f"{target}: {error}") from error
    if found is None or target.suffix.lower() not in found.value.written_suffixes:
        hint = did_you_mean(target.suffix.lower(), written_suffixes())
        known = ", ".join(written_suffixes())
        raise SceneError(f"{target}: cannot write '{target.suffix}' files{hint} (known: {known})")
    return found


def _contents(
    found: InstalledRegistration[Format], scene: SceneGraph, name: str
) -> Mapping[str, str | bytes]:
    """Return the contents of the files of a scene, by name."""
    assert found.value.write is not None
    try:
        contents = found.value.write(scene, name)
    except (TmkitError, MemoryError):
        raise
    except Exception as error:
        if not found.distribution:
            raise
        raise SceneError(str(found.error_of(error))) from error
    is_valid = isinstance(contents, Mapping) and all(
        isinstance(file, str) and Path(file).name == file and isinstance(content, str | bytes)
        for file, content in contents.items()
    )
    if not is_valid or name not in contents:
        expected = f"expected the contents of '{name}' and of files beside it, by name"
        raise SceneError(str(found.failure(f"returns {repr(contents)[:60]}, {expected}")))
    return contents


def _read_back(name: str, contents: Mapping[str, str | bytes]) -> SceneGraph:
    with temporary_folder("convert") as folder:
        for file, content in contents.items():
            (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)
        try:
            return load_scene(folder / name)
        except TmkitError as error:
            reason = error.data.get("reason", str(error))  # without the place in a temporary file
            raise SceneError(
                f"what would be written to '{name}' does not read back: {reason}"
            ) from error


def _difference(wanted: SceneGraph, found: SceneGraph, *, exact: bool) -> str | None:
    """Return the first difference between a scene and what it reads back to, ``None`` when there is none."""
    if wanted == found:
        return None
    if wanted.frame_names != found.frame_names:
        missing = [name for name in wanted.frame_names if name not in found]
        added = [name for name in found.frame_names if name not in wanted]
        what = (
            f"without '{missing[0]}'"
            if missing
            else f"with '{added[0]}'"
            if added
            else "in another order"
        )
        return f"its frames would read back {what}"
    for name in wanted.frame_names:
        for what, same in _compared(
            wanted.specification(name), found.specification(name), exact=exact
        ):
            if not same:
                return f"the {what} of frame '{name}' would be lost or changed"
    if wanted.allowed_pairs != found.allowed_pairs:
        lost = [pair for pair in wanted.allowed_pairs if pair not in found.allowed_pairs]
        first, second, reason = (
            lost or [pair for pair in found.allowed_pairs if pair not in wanted.allowed_pairs]
        )[0]
        return (
            f"that '{first}' and '{second}' may touch (reason '{reason}') would be"
            f" {'lost' if lost else 'added'}"
        )
    has_more = wanted.group_names != found.group_names or wanted.attributes(
        "world"
    ) != found.attributes("world")
    return "its groups or attributes would be lost" if exact or has_more else None


def _compared(
    one: FrameSpecification, other: FrameSpecification, *, exact: bool
) -> Iterable[tuple[str, bool]]:
    """Yield the parts of a frame and whether they are the same in both."""
    yield "parent", one.parent == other.parent
    yield "body", one.body == other.body
    yield "classes", tuple(one.classes) == tuple(other.classes)
    yield "attributes", one.attributes == other.attributes
    yield "joint", one.joint == other.joint or (not exact and _near_joints(one.joint, other.joint))
    yield "pose", one.pose == other.pose or (not exact and _near(one.pose, other.pose))
    yield "stamped poses", _stamps_text(one) == _stamps_text(other)
    yield "twist", _twist_text(one) == _twist_text(other)
    yield (
        "mass and inertia",
        one.inertia == other.inertia or (not exact and _near_masses(one.inertia, other.inertia)),
    )
    same = len(one.shapes) == len(other.shapes) and all(
        a == b or (not exact and _near_shapes(a, b))
        for a, b in zip(one.shapes, other.shapes, strict=True)
    )
    yield "shapes", same


def _stamps_text(frame: FrameSpecification) -> str:
    return "" if frame.stamps is None else str(stamps_to_dict(frame.stamps))


def _twist_text(frame: FrameSpecification) -> str:
    return "" if frame.twist is None else f"{frame.twist[0]} {frame.twist[1].tolist()}"


def _near(one: Pose, other: Pose) -> bool:
    return one.is_close(other, translation_tolerance=_FILE_ROUNDING, rotation_tolerance=1e-7)


def _near_joints(one: Joint, other: Joint) -> bool:
    a, b = ([getattr(joint, key) for key in _NUMBERS] for joint in (one, other))
    same = all(
        getattr(one, key) == getattr(other, key) for key in ("type", "is_stated", "name", "mimic")
    )
    near = np.allclose(a, b, rtol=1e-12, atol=0.0) and np.allclose(
        one.axis, other.axis, rtol=0.0, atol=_FILE_ROUNDING
    )
    return same and bool(near)


def _near_masses(one: Inertia | None, other: Inertia | None) -> bool:
    if one is None or other is None:
        return one is other
    size = float(np.max(np.abs(one.matrix), initial=0.0))
    near = np.allclose(one.center, other.center, rtol=0.0, atol=_FILE_ROUNDING)
    return one.mass == other.mass and bool(
        near and np.allclose(one.matrix, other.matrix, rtol=0.0, atol=1e-9 * size)
    )


def _near_shapes(one: AttachedShape, other: AttachedShape) -> bool:
    keys = ("visual", "collision", "friction")
    colors = one.color == other.color
    same = one.shape.digest == other.shape.digest and all(
        getattr(one, key) == getattr(other, key) for key in keys
    )
    return same and colors and _near(one.pose, other.pose)
