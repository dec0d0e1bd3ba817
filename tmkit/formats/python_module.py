"""Generator of Python modules that build scenes and function blocks without a reader.

The function ``scene()`` of a module builds the scene, frame by frame in creation order, from
literal numbers. The arrays of meshes, clouds and fields are in an ``.npz`` file in the same folder.
Each function block becomes an abstract class with hooks, structures and triggers; users implement
its method ``execute``. Blumenthal and Bruyninckx, "Towards a Domain Specific Language for a Scene
Graph based Robotic World Model", 2014, leave this step to implementations.

Invariant: the scene of a module equals the original, and so does its digest.
"""

from __future__ import annotations

import io
import keyword
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._core import EdgeNoise, StampedPoses
from tmkit._support.output import write_files
from tmkit.errors import SceneError
from tmkit.formats.cpp_blocks import cpp_of_blocks
from tmkit.formats.cpp_header import cpp_of_scene
from tmkit.formats.cpp_names import namespace_fault
from tmkit.formats.cpp_types import read_cpp_types
from tmkit.formats.python_blocks import BLOCK_CLASSES, block_classes, docstring_text
from tmkit.formats.spec.model import FunctionBlockSpec
from tmkit.graph import AttachedShape, Fixed, Inertia, Joint, NoiseSource, SceneGraph, Shape
from tmkit.graph.attributes import plain_attribute
from tmkit.graph.traversal import Stamped, stamped_attributes
from tmkit.spatial import Pose

_DYNAMICS = ("damping", "friction")
"""Names of the dynamic coefficients of a joint."""

_JOINT_NUMBERS = ("lower", "upper", "velocity", "effort", *_DYNAMICS)
"""Names of the numbers of a joint."""


def compile_scene(
    scene: SceneGraph,
    path: str | os.PathLike[str],
    *,
    blocks: Sequence[FunctionBlockSpec] = (),
    source: str = "",
    types: str | os.PathLike[str] | None = None,
) -> tuple[Path, ...]:
    """Write a scene as code that builds it without a scene file.

    Args:
        scene: the scene.
        path: path of a Python module, ``.py``, or of a C++ header, ``.hpp``. The arrays of a module
            are written to ``<name>_arrays.npz`` in the same folder. A header is for programs that
            link only with the scene graph of tmkit's core.
        blocks: function blocks, which become abstract classes; see :func:`read_function_blocks`.
            In a header, they need C++17 and the standard library alone.
        source: description of the scene, for the first line of the file.
        types: file in TOML with the C++ types of point clouds and meshes of function blocks, which
            replace those of the scene file.

    Returns:
        Paths of the written files.

    Raises:
        SceneError: if the path is not a valid name of a module or header, or a module has types.
        FileFormatError: if two function blocks or nodes have the same name in the code, code cannot
            express a structure or type, or the file of types is invalid.
        OutputError: if a file cannot be written.
    """
    target = Path(path)
    is_name = target.stem.isidentifier() and not keyword.iskeyword(target.stem)
    if target.suffix not in (".py", ".hpp") or not is_name:
        raise SceneError(
            f"{target}: a module or header has a name such as 'my_scene.py' or 'my_scene.hpp'"
        )
    if target.suffix == ".hpp":
        write_files({target: _header(scene, target, blocks, source, types)})
        return (target,)
    if types is not None:
        raise SceneError(f"{target}: types are for C++ headers (.hpp)")
    text, arrays = python_of_scene(scene, name=target.stem, blocks=blocks, source=source)
    array_files = {target.with_name(f"{target.stem}_arrays.npz"): arrays} if arrays else {}
    write_files({**array_files, target: text})
    return (target, *array_files)


def _header(
    scene: SceneGraph,
    target: Path,
    blocks: Sequence[FunctionBlockSpec],
    source: str,
    types: str | os.PathLike[str] | None,
) -> str:
    """Return the text of a C++ header; for the arguments see :func:`compile_scene`."""
    name = target.stem
    if (fault := namespace_fault(name)) is not None:
        raise SceneError(f"{target}: '{name}' {fault}, and a header has a namespace of its name")
    cpp_types = {} if types is None else read_cpp_types(types)
    interfaces = ""
    if blocks or cpp_types:
        interfaces = cpp_of_blocks(blocks, name=name, types=cpp_types, source=source)
    return cpp_of_scene(scene, name=name, source=source, interfaces=interfaces)


def python_of_scene(
    scene: SceneGraph, *, name: str, blocks: Sequence[FunctionBlockSpec] = (), source: str = ""
) -> tuple[str, bytes]:
    """Return the text of a module that builds a scene, and its ``.npz`` file of arrays.

    The file is empty if the scene has no arrays. For the arguments see :func:`compile_scene`.
    """
    module = _Module(scene, name)
    body = list(module.scene_function())
    classes = list(block_classes(blocks))
    arrays = io.BytesIO()
    if module.arrays:
        np.savez(arrays, allow_pickle=False, **module.arrays)
    title = docstring_text(source or name)
    lines = [f'"""{title}: a scene, written by "tmkit scene compile"."""', ""]
    lines += _imports(module, "\n".join(classes))
    lines += [*module.constants(), "", "", *body, *classes]
    return "".join(f"{line}\n" for line in lines), arrays.getvalue()


def _imports(module: _Module, classes: str) -> Iterator[str]:
    """Yield the imports of a module and of the text of its classes."""
    standard_imports = []
    if classes:
        standard_imports += [
            "from collections.abc import Mapping",
            "from dataclasses import dataclass",
        ]
    if module.arrays:
        standard_imports.append("from pathlib import Path")
    if classes:
        standard_imports.append("from typing import ClassVar")
    if standard_imports:
        yield from (*standard_imports, "")
    if module.arrays:
        yield from ("import numpy as np", "")
    yield f"from tmkit.graph import {', '.join(sorted(module.imports - {'Pose'}))}"
    for package, names in (
        ("graph.patterns", ("Part", "Structure")),
        ("spatial", ("Pose",)),
        ("world", BLOCK_CLASSES),
    ):
        imports = [
            name for name in names if name in module.imports or re.search(rf"\b{name}\b", classes)
        ]
        if imports:
            yield f"from tmkit.{package} import {', '.join(imports)}"
    yield ""


class _Module:
    """Generator of the code of a scene.

    Attributes:
        scene: the scene.
        name: name of the module.
        bodies: number of frames by body.
        imports: names that the code uses.
        arrays: arrays by their name in the ``.npz`` file.
        shapes: variable and expression of each shape, by digest and source.
        sources: variable of each noise source.
    """

    def __init__(self, scene: SceneGraph, name: str) -> None:
        self.scene, self.name = scene, name
        self.bodies = Counter(scene.body(frame) for frame in scene.frame_names)
        self.imports: set[str] = set()
        self.arrays: dict[str, NDArray[Any]] = {}
        self.shapes: dict[str, tuple[str, str]] = {}
        self.sources: dict[NoiseSource, str] = {}

    def constants(self) -> Iterator[str]:
        """Yield the lines of arrays and shapes, which frames share."""
        if self.arrays:
            yield (
                f'with np.load(Path(__file__).with_name("{self.name}_arrays.npz"),'
                " allow_pickle=False) as _file:"
            )
            yield "    _ARRAYS = dict(_file)"
        for variable, expression in self.shapes.values():
            yield f"{variable} = {expression}"

    def scene_function(self) -> Iterator[str]:
        """Yield the lines of the function ``scene()``."""
        self.imports |= {"FrameSpecification", "SceneGraph"}
        scene = self.scene
        frames = [self.frame(name) for name in scene.frame_names]
        yield "def scene() -> SceneGraph:"
        yield '    """Return the scene."""'
        for source, variable in self.sources.items():
            yield f"    {variable} = NoiseSource({source.dimension}, {source.label!r})"
        yield "    frames = ["
        yield from (f"        {frame}," for frame in frames)
        yield "    ]"
        allowed = ", ".join(map(repr, scene.allowed_pairs))
        bodies = ""
        if scene.bodies_without_frames:
            bodies = f", bodies_without_frames={list(scene.bodies_without_frames)!r}"
        expression = f"SceneGraph.from_frames(frames, allowed=[{allowed}]{bodies})"
        if not scene.group_names:
            yield f"    return {expression}"
            return
        yield f"    with {expression}.edit() as edit:"
        yield from (f"        edit.set_group({name!r})" for name in scene.group_names)
        for group in map(scene.group, scene.group_names):
            members = {
                "frames": list(group.frames),
                "groups": list(group.groups),
                "parents": list(group.parents),
            }
            arguments = [f"{key}={names!r}" for key, names in members.items() if names]
            if group.attributes:
                arguments.append(f"attributes={self.attributes(stamped_attributes(group))}")
            if arguments:
                yield f"        edit.set_group({', '.join([repr(group.name), *arguments])})"
        yield "    return edit.finish()"

    def frame(self, name: str) -> str:
        """Return the expression of a frame."""
        frame = self.scene.specification(name)
        arguments = [repr(name), repr(frame.parent)]
        if frame.pose != Pose.identity():
            arguments.append(f"pose={self.pose(frame.pose)}")
        if frame.joint != Fixed():
            arguments.append(f"joint={self.joint(frame.joint)}")
        if frame.body != name or self.bodies[frame.body] > 1:
            arguments.append(f"body={frame.body!r}")
        if frame.classes:
            arguments.append(f"classes={list(frame.classes)!r}")
        if frame.shapes:
            arguments.append(f"shapes=[{', '.join(map(self.shape_attachment, frame.shapes))}]")
        fields = []
        if frame.inertia is not None:
            fields.append(f"inertia={self.inertia(frame.inertia)}")
        if frame.attributes:
            fields.append(f"attributes={self.attributes(stamped_attributes(frame))}")
        if frame.twist is not None:
            fields.append(f"twist=({frame.twist[0]!r}, {_list(frame.twist[1])})")
        if frame.stamps is not None:
            fields.append(f"stamps={self.stamps(frame.stamps)}")
        for key, noise in (("noise", frame.noise), ("twist_noise", frame.twist_noise)):
            if noise is not None:
                fields.append(f"{key}={self.noise(noise)}")
        return self.call("FrameSpecification", *arguments) + _replace(fields)

    def call(self, name: str, *arguments: str) -> str:
        """Return a call of an imported name, and record the import."""
        self.imports.add(name)
        return f"{name}({', '.join(arguments)})"

    def pose(self, pose: Pose) -> str:
        arguments = [_list(pose.translation)]
        if tuple(pose.quat_xyzw) != tuple(Pose.identity().quat_xyzw):
            arguments.append(_list(pose.quat_xyzw))
        return self.call("Pose", *arguments)

    def joint(self, joint: Joint) -> str:
        if not joint.is_actuated:
            return self.call(joint.type.capitalize() if joint.is_stated else "Unstated")
        default = {"lower": -np.inf, "upper": np.inf, "velocity": np.inf, "effort": np.inf}
        arguments, dynamics = [_list(joint.axis)], list[str]()
        for key in _JOINT_NUMBERS:
            value = getattr(joint, key)
            if value != default.get(key, 0.0):
                (dynamics if key in _DYNAMICS else arguments).append(f"{key}={_number(value)}")
        arguments += [f"name={joint.name!r}"] if joint.name else []
        if joint.mimic is not None:
            mimic = self.call(
                "Mimic",
                repr(joint.mimic.joint),
                f"multiplier={_number(joint.mimic.multiplier)}",
                f"offset={_number(joint.mimic.offset)}",
            )
            arguments.append(f"mimic={mimic}")
        return self.call(joint.type.capitalize(), *arguments) + _replace(dynamics)

    def shape_attachment(self, part: AttachedShape) -> str:
        """Return the expression of a shape on a frame."""
        arguments = [self.shape(part.shape)]
        if part.pose != Pose.identity():
            arguments.append(self.pose(part.pose))
        if part.color is not None:
            arguments.append(f"color={_list(part.color)}")
        arguments += [f"{key}=False" for key in ("visual", "collision") if not getattr(part, key)]
        for key in ("friction", "level"):
            if (value := getattr(part, key)) is not None:
                arguments.append(f"{key}={value!r}")
        return self.call("AttachedShape", *arguments) + _replace(
            [f"stamp={part.stamp!r}"] if part.stamp is not None else []
        )

    def shape(self, shape: Shape) -> str:
        """Return the variable of a shape."""
        key = f"{shape.digest}{shape.source}"
        if key not in self.shapes:
            variable = f"_{shape.kind.upper()}_{len(self.shapes) + 1}"
            self.shapes[key] = variable, self.shape_expression(shape, variable.strip("_").lower())
        return self.shapes[key][0]

    def shape_expression(self, shape: Shape, label: str) -> str:
        """Return the expression of a shape, and store its arrays under a label."""
        function = shape.kind.title().replace("_", "")
        source = [f"source={shape.source!r}"] if shape.source else []
        sizes = [_number(size) for size in shape.dimensions]
        if shape.kind == "box":
            return self.call(function, f"[{', '.join(sizes)}]")
        if shape.kind == "mesh":
            arrays = (
                self.store_array(f"{label}_vertices", shape.vertices),
                self.store_array(f"{label}_faces", shape.faces),
            )
            return self.call(function, *arrays, *source)
        if shape.kind == "point_cloud":
            return self.call(
                function, self.store_array(label, shape.points), f"radius={sizes[0]}", *source
            )
        if shape.kind == "height_field":
            heights = self.store_array(label, shape.heights)
            size = f"size=[{sizes[0]}, {sizes[1]}]"
            return self.call(function, heights, size, f"floor={sizes[2]}", *source)
        return self.call(function, *(sizes if shape.kind != "plane" else []))

    def store_array(self, label: str, values: Any) -> str:
        """Store an array in the ``.npz`` file, and return its expression."""
        self.arrays[label] = np.asarray(values)
        return f"_ARRAYS[{label!r}]"

    def inertia(self, inertia: Inertia) -> str:
        return self.call(
            "Inertia",
            _number(inertia.mass),
            _list(inertia.center),
            f"matrix={_rows(inertia.matrix)}",
        )

    def attributes(self, values: Mapping[str, object]) -> str:
        entries = [
            f"{key!r}: {self.attribute(key, value)}" for key, value in sorted(values.items())
        ]
        return f"{{{', '.join(entries)}}}"

    def attribute(self, key: str, value: object) -> str:
        if isinstance(value, Stamped):
            return self.call("Stamped", self.attribute(key, value.value), _number(value.stamp))
        return repr(plain_attribute(key, value))

    def stamps(self, stamps: StampedPoses) -> str:
        arguments = [
            _list(stamps.stamps),
            f"[{', '.join(map(self.pose, stamps.poses))}]",
            f"capacity={stamps.capacity}",
        ]
        if any(covariance is not None for covariance in stamps.covariances):
            rows = ", ".join(
                "None" if covariance is None else _rows(covariance)
                for covariance in stamps.covariances
            )
            arguments.append(f"covariances=[{rows}]")
        return self.call("StampedPoses", *arguments, f"window={_number(stamps.window)}")

    def noise(self, noise: EdgeNoise) -> str:
        self.imports |= {"NoiseSource"} if noise.sources else set()
        maps = []
        for source in noise.sources:
            variable = self.sources.setdefault(source, f"noise_{len(self.sources) + 1}")
            maps.append(f"{variable}: {_rows(noise.map(source))}")
        return self.call(
            "EdgeNoise", f"{{{', '.join(maps)}}}", f"covariance={_rows(noise.covariance)}"
        )


def _replace(fields: Sequence[str]) -> str:
    """Return the call that replaces fields, empty without fields."""
    return f".replace({', '.join(fields)})" if fields else ""


def _number(value: float) -> str:
    return repr(float(value)) if np.isfinite(value) else f'float("{float(value)}")'


def _list(values: Any) -> str:
    """Return a tuple of numbers, which is a constant of the compiled module."""
    numbers = [*map(_number, np.asarray(values).tolist())]
    return f"({', '.join(numbers)}{',' if len(numbers) == 1 else ''})"


def _rows(matrix: Any) -> str:
    return f"[{', '.join(map(_list, np.asarray(matrix)))}]"
