"""Scenes and function blocks as Python: a module that builds them without a reader.

``scene()`` of the module builds the scene, frame by frame in creation order, from numbers written
out; the arrays of meshes, clouds and fields are in an ``.npz`` file beside it. Each function block
becomes an abstract class with its hooks, structures and triggers, whose ``execute`` is to be
written. This is the gap that Blumenthal and Bruyninckx, "Towards a Domain Specific Language for a
Scene Graph based Robotic World Model", 2014, leave for an implementation.

Invariant: the scene that the module builds equals the given one, and so does its digest.
"""

from __future__ import annotations

import io
import keyword
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._core import EdgeNoise, StampedPoses
from tmkit._support.output import write_files
from tmkit.errors import SceneError
from tmkit.formats.cpp_header import cpp_of_scene
from tmkit.formats.spec.model import FunctionBlockSpec, StructureSpec
from tmkit.graph import AttachedShape, Fixed, Inertia, Joint, NoiseSource, SceneGraph, Shape
from tmkit.graph.attributes import plain_attribute
from tmkit.graph.traversal import Stamped, stamped_attributes
from tmkit.spatial import Pose

_DYNAMICS = ("damping", "friction")
_LIMITS = ("lower", "upper", "velocity", "effort", *_DYNAMICS)
_BLOCK = ("After", "Every", "FunctionBlock", "OnChange")
_TRIGGERS = {"onChange": "OnChange", "after": "After", "every": "Every"}


def compile_scene(
    scene: SceneGraph,
    path: str | os.PathLike[str],
    *,
    blocks: Sequence[FunctionBlockSpec] = (),
    source: str = "",
) -> tuple[Path, ...]:
    """Write a scene as code that builds it without reading a scene file; return the files written.

    Args:
        scene: the scene.
        path: a Python module, ``.py``, with arrays of meshes beside it, as ``<name>_arrays.npz``;
            or a C++ header, ``.hpp``, for programs that link with the graph half of tmkit's core
            alone.
        blocks: function blocks, which become abstract classes in Python; see
            :func:`read_function_blocks`.
        source: what the scene is of, for the module's first line.

    Raises:
        SceneError: the path is no module or header, or two function blocks would be one class.
        OutputError: a file cannot be written.
    """
    target = Path(path)
    if (
        target.suffix not in (".py", ".hpp")
        or not target.stem.isidentifier()
        or keyword.iskeyword(target.stem)
    ):
        raise SceneError(
            f"{target}: a module or header has a name such as 'my_scene.py' or 'my_scene.hpp'"
        )
    if target.suffix == ".hpp":
        write_files({target: cpp_of_scene(scene, name=target.stem, source=source)})
        return (target,)
    text, arrays = python_of_scene(scene, name=target.stem, blocks=blocks, source=source)
    beside = {target.with_name(f"{target.stem}_arrays.npz"): arrays} if arrays else {}
    write_files({**beside, target: text})
    return (target, *beside)


def python_of_scene(
    scene: SceneGraph, *, name: str, blocks: Sequence[FunctionBlockSpec] = (), source: str = ""
) -> tuple[str, bytes]:
    """Return a module that builds a scene, and the ``.npz`` file of arrays that it reads, empty if it needs none."""
    module = _Module(scene, name)
    body = list(module.scene_function())
    classes = list(_block_classes(blocks))
    arrays = io.BytesIO()
    if module.arrays:
        np.savez(arrays, allow_pickle=False, **module.arrays)
    shown = (source or name).replace("\\", "/").replace('"', "'").replace("\n", " ")
    lines = [f'"""{shown}: a scene, written by "tmkit scene compile"."""', ""]
    lines += _imports(module, "\n".join(classes))
    lines += [*module.constants(), "", "", *body, *classes]
    return "".join(f"{line}\n" for line in lines), arrays.getvalue()


def _imports(module: _Module, classes: str) -> Iterator[str]:
    """Yield the imports of what a scene and the text of classes use."""
    standard = (
        ["from collections.abc import Mapping", "from dataclasses import dataclass"]
        if classes
        else []
    )
    standard += ["from pathlib import Path"] if module.arrays else []
    if standard:
        yield from (*standard, "")
    if module.arrays:
        yield from ("import numpy as np", "")
    yield f"from tmkit.graph import {', '.join(sorted(module.used - {'Pose'}))}"
    for package, names in (
        ("graph.patterns", ("ChildOf", "Part", "Pattern")),
        ("spatial", ("Pose",)),
        ("world", _BLOCK),
    ):
        used = [name for name in names if name in module.used or re.search(rf"\b{name}\b", classes)]
        if used:
            yield f"from tmkit.{package} import {', '.join(used)}"
    yield ""


class _Module:
    """Writes a scene as an expression, and collects the names that it uses."""

    def __init__(self, scene: SceneGraph, name: str) -> None:
        self.scene, self.name = scene, name
        self.bodies = Counter(scene.body(frame) for frame in scene.frame_names)
        self.used: set[str] = set()
        self.arrays: dict[str, NDArray[Any]] = {}
        # by digest and source: variable and expression
        self.shapes: dict[str, tuple[str, str]] = {}
        self.sources: dict[NoiseSource, str] = {}

    def constants(self) -> Iterator[str]:
        """Yield the lines of shapes and noise sources, which frames share."""
        if self.arrays:
            yield (
                f'with np.load(Path(__file__).with_name("{self.name}_arrays.npz"),'
                " allow_pickle=False) as _file:"
            )
            yield "    _ARRAYS = dict(_file)"
        for variable, expression in self.shapes.values():
            yield f"{variable} = {expression}"

    def scene_function(self) -> Iterator[str]:
        self.used |= {"FrameSpecification", "SceneGraph"}
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
        extra = (
            f", bodies_without_frames={list(scene.bodies_without_frames)!r}"
            if scene.bodies_without_frames
            else ""
        )
        made = f"SceneGraph.from_frames(frames, allowed=[{allowed}]{extra})"
        if not scene.group_names:
            yield f"    return {made}"
            return
        yield f"    with {made}.edit() as edit:"
        yield from (f"        edit.set_group({name!r})" for name in scene.group_names)
        for group in map(scene.group, scene.group_names):
            given = {
                "frames": list(group.frames),
                "groups": list(group.groups),
                "parents": list(group.parents),
            }
            words = [f"{key}={names!r}" for key, names in given.items() if names]
            if group.attributes:
                words.append(f"attributes={self.attributes(stamped_attributes(group))}")
            if words:
                yield f"        edit.set_group({', '.join([repr(group.name), *words])})"
        yield "    return edit.finish()"

    def frame(self, name: str) -> str:
        frame = self.scene.specification(name)
        words = [repr(name), repr(frame.parent)]
        if frame.pose != Pose.identity():
            words.append(f"pose={self.pose(frame.pose)}")
        if frame.joint != Fixed():
            words.append(f"joint={self.joint(frame.joint)}")
        if frame.body != name or self.bodies[frame.body] > 1:
            words.append(f"body={frame.body!r}")
        if frame.classes:
            words.append(f"classes={list(frame.classes)!r}")
        if frame.shapes:
            words.append(f"shapes=[{', '.join(map(self.attached, frame.shapes))}]")
        more = []
        if frame.inertia is not None:
            more.append(f"inertia={self.inertia(frame.inertia)}")
        if frame.attributes:
            more.append(f"attributes={self.attributes(stamped_attributes(frame))}")
        if frame.twist is not None:
            more.append(f"twist=({frame.twist[0]!r}, {_list(frame.twist[1])})")
        if frame.stamps is not None:
            more.append(f"stamps={self.stamps(frame.stamps)}")
        for key, noise in (("noise", frame.noise), ("twist_noise", frame.twist_noise)):
            if noise is not None:
                more.append(f"{key}={self.noise(noise)}")
        return self.call("FrameSpecification", *words) + _replace(more)

    def call(self, name: str, *words: str) -> str:
        self.used.add(name)
        return f"{name}({', '.join(words)})"

    def pose(self, pose: Pose) -> str:
        turned = tuple(pose.quat_xyzw) != tuple(Pose.identity().quat_xyzw)
        return self.call(
            "Pose", _list(pose.translation), *([_list(pose.quat_xyzw)] if turned else [])
        )

    def joint(self, joint: Joint) -> str:
        if not joint.is_actuated:
            return self.call(joint.type.capitalize() if joint.is_stated else "Unstated")
        default = {"lower": -np.inf, "upper": np.inf, "velocity": np.inf, "effort": np.inf}
        words, dynamics = [_list(joint.axis)], list[str]()
        for key in _LIMITS:
            value = getattr(joint, key)
            if value != default.get(key, 0.0):
                (dynamics if key in _DYNAMICS else words).append(f"{key}={_number(value)}")
        words += [f"name={joint.name!r}"] if joint.name else []
        if joint.mimic is not None:
            rule = joint.mimic
            given = (
                repr(rule.joint),
                f"multiplier={_number(rule.multiplier)}",
                f"offset={_number(rule.offset)}",
            )
            words.append(f"mimic={self.call('Mimic', *given)}")
        return self.call(joint.type.capitalize(), *words) + _replace(dynamics)

    def attached(self, part: AttachedShape) -> str:
        words = [self.shape(part.shape)]
        if part.pose != Pose.identity():
            words.append(self.pose(part.pose))
        if part.color is not None:
            words.append(f"color={_list(part.color)}")
        words += [f"{key}=False" for key in ("visual", "collision") if not getattr(part, key)]
        for key in ("friction", "level"):
            if (value := getattr(part, key)) is not None:
                words.append(f"{key}={value!r}")
        return self.call("AttachedShape", *words) + _replace(
            [f"stamp={part.stamp!r}"] if part.stamp is not None else []
        )

    def shape(self, shape: Shape) -> str:
        key = f"{shape.digest}{shape.source}"
        if key not in self.shapes:
            variable = f"_{shape.kind.upper()}_{len(self.shapes) + 1}"
            self.shapes[key] = variable, self.made_shape(shape, variable.strip("_").lower())
        return self.shapes[key][0]

    def made_shape(self, shape: Shape, label: str) -> str:
        maker = shape.kind.title().replace("_", "")
        source = [f"source={shape.source!r}"] if shape.source else []
        sizes = [_number(size) for size in shape.dimensions]
        if shape.kind == "box":
            return self.call(maker, f"[{', '.join(sizes)}]")
        if shape.kind == "mesh":
            arrays = (
                self.stored(f"{label}_vertices", shape.vertices),
                self.stored(f"{label}_faces", shape.faces),
            )
            return self.call(maker, *arrays, *source)
        if shape.kind == "point_cloud":
            return self.call(maker, self.stored(label, shape.points), f"radius={sizes[0]}", *source)
        if shape.kind == "height_field":
            given = f"size=[{sizes[0]}, {sizes[1]}]", f"floor={sizes[2]}"
            return self.call(maker, self.stored(label, shape.heights), *given, *source)
        return self.call(maker, *(sizes if shape.kind != "plane" else []))

    def stored(self, label: str, values: Any) -> str:
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
        return f"{{{', '.join(f'{key!r}: {self.attribute(key, value)}' for key, value in sorted(values.items()))}}}"

    def attribute(self, key: str, value: object) -> str:
        if isinstance(value, Stamped):
            return self.call("Stamped", self.attribute(key, value.value), _number(value.stamp))
        return repr(plain_attribute(key, value))

    def stamps(self, stamps: StampedPoses) -> str:
        words = [
            _list(stamps.stamps),
            f"[{', '.join(map(self.pose, stamps.poses))}]",
            f"capacity={stamps.capacity}",
        ]
        return self.call("StampedPoses", *words, f"window={_number(stamps.window)}")

    def noise(self, noise: EdgeNoise) -> str:
        self.used |= {"NoiseSource"} if noise.sources else set()
        maps = []
        for source in noise.sources:
            variable = self.sources.setdefault(source, f"noise_{len(self.sources) + 1}")
            maps.append(f"{variable}: {_rows(noise.map(source))}")
        return self.call(
            "EdgeNoise", f"{{{', '.join(maps)}}}", f"covariance={_rows(noise.covariance)}"
        )


def _replace(fields: Sequence[str]) -> str:
    """Return the call that sets fields in a copy, empty without fields."""
    return f".replace({', '.join(fields)})" if fields else ""


def _number(value: float) -> str:
    return repr(float(value)) if np.isfinite(value) else f'float("{float(value)}")'


def _list(values: Any) -> str:
    numbers = [*map(_number, np.asarray(values).tolist())]
    # a tuple is a constant of the compiled module
    return f"({', '.join(numbers)}{',' if len(numbers) == 1 else ''})"


def _rows(matrix: Any) -> str:
    return f"[{', '.join(map(_list, np.asarray(matrix)))}]"


def _block_classes(blocks: Iterable[FunctionBlockSpec]) -> Iterator[str]:
    taken: dict[str, str] = {}
    for block in blocks:
        name = _class_name(block.name)
        if name in taken:
            raise SceneError(
                f"function blocks '{taken[name]}' and '{block.name}' would both be the class"
                f" '{name}'"
            )
        taken[name] = block.name
        yield from ("", "", "@dataclass(frozen=True)", f"class {name}(FunctionBlock):")
        yield (
            f'    """Function block {block.name!r}: write ``execute`` in a class that derives from'
            ' this one."""'
        )
        yield ""
        for key, value in (
            ("name", block.name),
            ("input_hook", block.input_hook),
            ("output_hook", block.output_hook),
        ):
            yield f"    {key}: str = {value or ''!r}"
        for key, structure in (
            ("inputs", block.input_structure),
            ("outputs", block.output_structure),
        ):
            yield from ("", "    @property", f"    def {key}(self) -> Mapping[str, Pattern]:")
            yield f'        """What it {"needs" if key == "inputs" else "makes"}."""'
            yield f"        return {_pattern(structure)}"
        if block.triggers:
            triggers = ", ".join(f"{_TRIGGERS[kind]}({value!r})" for kind, value in block.triggers)
            yield from ("", f"    TRIGGERS = ({triggers},)  # for a BlockRunner")


def _class_name(name: str) -> str:
    words = re.findall(r"[^\W_]+", name)
    made = "".join(word[:1].upper() + word[1:] for word in words)
    return made if made.isidentifier() and not keyword.iskeyword(made) else f"Block{made}"


def _pattern(structure: StructureSpec | None) -> str:
    if structure is None:
        return "{}"
    parts: list[str] = []
    relations: list[str] = []
    waiting: list[tuple[StructureSpec, str | None]] = [(structure, None)]
    while waiting:
        node, above = waiting.pop(0)
        if node.kind != "Group":
            words = [repr(node.name)]
            words += [f"shape={node.content!r}"] if node.content not in (None, "shape") else []
            words += (
                [f"attributes={dict(sorted(node.attributes.items()))!r}"] if node.attributes else []
            )
            words += (
                [f"count={node.cardinality}"]
                if node.cardinality not in ("*", "1") and above is not None
                else []
            )
            parts.append(f"Part({', '.join(words)})")
            relations += [f"ChildOf({node.name!r}, {above!r})"] if above is not None else []
        below = above if node.kind == "Group" else node.name
        waiting += [(child, below) for child in node.children]
    given = (
        f"[{', '.join(parts)}], [{', '.join(relations)}]" if relations else f"[{', '.join(parts)}]"
    )
    return f"{{{structure.name!r}: Pattern({given})}}"
