"""Reader of robray scene files, the language of the original TMKit (docs/reference/robray.md).

This module interprets the statements. :mod:`~tmkit.formats.robray.grammar` contains the syntax, and
:mod:`~tmkit.formats.robray.values` the rules of the attributes and the shapes.

Statements are executed in order, after each include is replaced by the text of its file. A
definition or class is valid from its own line on. Frames become specifications, whose parents are
resolved after all files of a load are read. The original rejects the duplicates of a file that is
included twice. Here, only its definitions are executed again. Every error has a file, a line, a
column and a caret.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tmkit._support.data import is_built_in
from tmkit._support.limits import is_file
from tmkit._support.source_location import SourceLocation, did_you_mean
from tmkit.formats.mesh.meshes import MESH_SUFFIXES
from tmkit.formats.mesh.package_uris import PackageResolver, real_path
from tmkit.formats.robray.grammar import (
    AllowCollision,
    Array,
    Attribute,
    ClassBlock,
    Definition,
    FrameBlock,
    GeometryBlock,
    Include,
    Name,
    SourceText,
    parse_robray,
)
from tmkit.formats.robray.hints import attribute_hint, standard_definition_hint
from tmkit.formats.robray.values import (
    CLASS_RULES,
    CONSTANTS,
    FRAME_RULES,
    GEOMETRY_RULES,
    POSE_WORDS,
    Rule,
    Value,
    evaluate,
    evaluate_number,
    geometry_of,
)
from tmkit.formats.spec.model import AllowedPairSpec, FrameSpec, SceneSpecification
from tmkit.formats.spec.parts import GeometrySpec, InertiaSpec, JointSpec, MimicSpec, PoseSpec
from tmkit.formats.spec.values import extend_frame, mesh_specification, pose_of, spec_of_pose

KNOWN_CLASSES = ("surface", "region", "rack", "movable", "upright", "filled")
"""Classes with a meaning in tmkit, which a file need not define."""

SPELLINGS: Mapping[str, str] = {
    "start-radius": "start_radius",
    "end-radius": "end_radius",
    "no_shadow": "no-shadow",
}
"""Standard spellings of attributes that the original spells with a dash or an underscore."""

OTHER_FORMATS = (".urdf", ".sdf", ".json", ".srdf")
"""Suffixes of the other scene formats that a file may include."""

MAX_INCLUDE_DEPTH = 64
"""Largest depth of nested includes, far above that of handwritten files."""

MAX_FRAME_DEPTH = 200
"""Largest depth of nested frame blocks."""

Values = dict[str, Value]


def read_robray(
    path: Path, *, packages: PackageResolver, read_other: Callable[[Path], SceneSpecification]
) -> SceneSpecification:
    """Read a robray file with all its includes.

    Args:
        path: path of the file.
        packages: resolver of file names and ``package://`` URIs, with the size limits.
        read_other: reader of included files in another format.
    """
    reader = _Reader(packages, read_other)
    reader.read(path, ())
    return SceneSpecification(tuple(reader.frames), tuple(reader.allowed))


@dataclass(frozen=True, slots=True)
class _Class:
    """A class with its inherited attributes, its own name and the names of its base classes."""

    values: Mapping[str, Value]
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Solid:
    """A shape of a frame, the names of its classes and all its attributes."""

    spec: GeometrySpec
    tags: tuple[str, ...]
    values: Mapping[str, Value]


@dataclass(slots=True)
class _Reader:
    """Reader of one file and its includes, with shared constants and classes."""

    packages: PackageResolver
    read_other: Callable[[Path], SceneSpecification]
    constants: dict[str, float] = field(default_factory=lambda: dict(CONSTANTS))
    classes: dict[str, _Class] = field(default_factory=dict)
    class_places: dict[str, SourceLocation] = field(default_factory=dict)
    variables: dict[str, FrameSpec] = field(default_factory=dict)
    # Indices in ``frames`` of the frames from files of other formats, by name.
    other: dict[str, int] = field(default_factory=dict)
    seen: set[Path] = field(default_factory=set)
    bytes: int = 0
    frames: list[FrameSpec] = field(default_factory=list)
    allowed: list[AllowedPairSpec] = field(default_factory=list)

    def read(self, path: Path, includers: tuple[Path, ...]) -> None:
        """Read a file, or only its definitions if it was read before.

        Args:
            path: path of the file.
            includers: files of the include chain to this one, outermost first.
        """
        limits = self.packages.limits
        source, text = SourceText.read(
            path,
            folders=tuple(earlier.parent for earlier in reversed(includers)),
            limit=limits.robray_bytes,
            n_bytes_before=self.bytes,
            unsaved=self.packages.unsaved,
        )
        self.bytes += len(text)
        is_new = real_path(path) not in self.seen
        self.seen.add(real_path(path))
        include_chain = (*includers, path)
        for statement in parse_robray(source, text):
            if isinstance(statement, Include):
                self.include(statement, source, include_chain)
            elif isinstance(statement, Definition):
                self.define(statement, source)
            elif not is_new:
                continue
            elif isinstance(statement, ClassBlock):
                self.add_class(statement, source)
            elif isinstance(statement, FrameBlock):
                self.add_frame(statement, source, outer=None)
            else:
                self.allow(statement, source)

    def include(
        self, statement: Include, source: SourceText, include_chain: tuple[Path, ...]
    ) -> None:
        place = source.place(statement.file.position)
        name, folder = statement.file.text, source.path.parent
        if is_built_in(name, "scenes", suffix=".robray") and not is_file(folder / name):
            uri = f"package://tmkit/scenes/{name}.robray"
            raise place.error(f"there is no file '{name}'; the built-in scene is \"{uri}\"")
        path = self.packages.resolve(name, folder=folder, place=place)
        cycle = [str(earlier) for earlier in include_chain if real_path(earlier) == real_path(path)]
        if cycle:
            names = [str(earlier) for earlier in include_chain]
            loop = " -> ".join([*names[names.index(cycle[0]) :], str(path)])
            raise place.error(f"the includes form a cycle: {loop}")
        if path.suffix == ".robray":
            if len(include_chain) > MAX_INCLUDE_DEPTH:
                raise place.error(f"includes are nested more than {MAX_INCLUDE_DEPTH} deep")
            self.packages.count_include(place, is_slow=True)
            self.read(path, include_chain)
            return
        if real_path(path) in self.seen:
            return
        self.seen.add(real_path(path))
        if path.suffix.lower() in MESH_SUFFIXES:
            other = mesh_specification(path, place)
        elif path.suffix.lower() in OTHER_FORMATS:
            other = self.read_other(path)
        else:
            accepted = ", ".join((".robray", *OTHER_FORMATS, *MESH_SUFFIXES))
            raise place.error(f"unknown scene format '{path.suffix}' (accepted: {accepted})")
        self.other.update(
            (spec.name, len(self.frames) + number) for number, spec in enumerate(other.frames)
        )
        self.frames.extend(other.frames)
        self.allowed.extend(other.allowed)

    def define(self, statement: Definition, source: SourceText) -> None:
        if statement.name.text in CONSTANTS:
            raise source.place(statement.name.position).error(
                f"the constant '{statement.name.text}' cannot be redefined"
            )
        number = evaluate_number(statement.value, source=source, constants=self.constants)
        self.constants[statement.name.text] = number

    def add_class(self, block: ClassBlock, source: SourceText) -> None:
        name, place = block.name.text, source.place(block.name.position)
        if name in self.class_places:
            raise place.error(f"the class '{name}' is already defined at {self.class_places[name]}")
        own, parents = self.attributes(block.attributes, CLASS_RULES, f"class '{name}'", source)
        values = _with_class_values(own, reversed(parents))
        tags = [name, *(tag for parent in parents for tag in parent.tags)]
        self.classes[name] = _Class(values, tuple(dict.fromkeys(tags)))
        self.class_places[name] = place

    def attributes(
        self,
        attributes: Iterable[Attribute],
        rules: Mapping[str, Rule],
        block: str,
        source: SourceText,
    ) -> tuple[Values, list[_Class]]:
        """Return the own values of a block, and the classes of its ``isa`` attributes in order."""
        values: Values = {}
        parents: list[_Class] = []
        for attribute in attributes:
            name = SPELLINGS.get(attribute.name.text, attribute.name.text)
            if name == "isa":
                parents.append(self.find_class(attribute, source))
            elif name in rules:
                values[name] = evaluate(
                    rules[name], attribute.value, source=source, constants=self.constants
                )
            else:
                candidates = sorted({*rules, "isa"})
                hint = attribute_hint(name, is_shape_attribute=name in GEOMETRY_RULES)
                hint = hint or did_you_mean(name, candidates)
                raise source.place(attribute.name.position).error(
                    f"unknown attribute '{name}' in {block}{hint} (known: {', '.join(candidates)})"
                )
        return values, parents

    def find_class(self, attribute: Attribute, source: SourceText) -> _Class:
        place = source.place(attribute.value.position)
        if not isinstance(attribute.value, Name):
            hint = "; write 'isa' once for each" if isinstance(attribute.value, Array) else ""
            raise place.error(f"expected the name of a class{hint}")
        name = attribute.value.text
        if name in self.classes:
            return self.classes[name]
        if name in KNOWN_CLASSES:
            return _Class({}, (name,))
        standard = standard_definition_hint("class", name)
        hint = "" if standard else did_you_mean(name, [*self.classes, *KNOWN_CLASSES])
        reason = f"unknown class '{name}'{hint}; define it first: class {name} {{ }}{standard}"
        raise place.error(reason)

    def allow(self, statement: AllowCollision, source: SourceText) -> None:
        first, second = statement.first.text, statement.second.text
        places = source.place(statement.first.position), source.place(statement.second.position)
        self.allowed.append(AllowedPairSpec(first, second, "user", *places))

    def add_frame(
        self, block: FrameBlock, source: SourceText, outer: str | None, depth: int = 0
    ) -> None:
        place = source.place(block.name.position)
        if not block.name.text:
            raise place.error("a frame needs a name")
        if depth > MAX_FRAME_DEPTH:
            raise place.error(f"frames are nested more than {MAX_FRAME_DEPTH} deep")
        self.packages.limits.check_frame_count(len(self.frames) + 1, place.error)
        attributes = [member for member in block.members if isinstance(member, Attribute)]
        own, parents = self.attributes(
            attributes, FRAME_RULES, f"frame '{block.name.text}'", source
        )
        values = _with_class_values(own, parents)
        blocks = [member for member in block.members if isinstance(member, GeometryBlock)]
        solids = [self.add_geometry(geometry, block.name.text, source) for geometry in blocks]
        tags = [tag for parent in parents for tag in parent.tags]
        tags += [tag for solid in solids for tag in solid.tags]
        if block.name.text in self.other:
            self.amend(
                self.other[block.name.text],
                values,
                tags,
                place,
                has_more=len(attributes) < len(block.members),
            )
            return
        inertia, geometry = _inertia_from_values(values, solids, place=place)
        if "level" in values:
            geometry = tuple(
                replace(part, level=part.level or values["level"].text) for part in geometry
            )
        parent, parent_place = _parent_name(own, values, outer)
        spec = FrameSpec(
            name=block.name.text,
            parent=(
                None
                if block.name.text == "world" and parent_place is None and outer is None
                else parent
            ),
            place=place,
            pose=_pose_from_values(values),
            joint=_joint_from_values(values, frame=block.name.text, place=place),
            classes=tuple(dict.fromkeys(tags)),
            geometry=geometry,
            inertia=inertia,
            friction=_friction_from_values(values, solids),
            parent_place=parent_place,
        )
        self.frames.append(self.couple_to_leader(spec))
        for member in block.members:
            if isinstance(member, FrameBlock):
                self.add_frame(member, source, block.name.text, depth + 1)

    def amend(
        self,
        index: int,
        values: Values,
        tags: Sequence[str],
        place: SourceLocation,
        *,
        has_more: bool,
    ) -> None:
        """Change parent, pose, classes or mass of a frame from a file of another format.

        The shapes of the frame do not change.
        """
        spec = self.frames[index]
        joints = [
            name
            for name in ("type", "axis", "offset", "variable", "lower", "upper")
            if name in values
        ]
        if has_more or joints:
            what = f"'{joints[0]}'" if joints else "geometry and frames inside it"
            raise place.error(
                f"the frame '{spec.name}' comes from {spec.place}: {what} cannot be given here"
            )
        if "parent" in values:
            spec = replace(
                spec, parent=values["parent"].text or "world", parent_place=values["parent"].place
            )
        if any(word in values for word in POSE_WORDS):
            spec = replace(spec, pose=_pose_from_values(values))
        number = {
            key: values[key].number if key in values else None for key in ("mass", "friction")
        }
        self.frames[index] = extend_frame(
            spec,
            classes=tags,
            level=values["level"].text if "level" in values else None,
            **number,
            mass_place=values["mass"].place if "mass" in values else place,
        )

    def couple_to_leader(self, spec: FrameSpec) -> FrameSpec:
        """Return the frame, with a mimic joint if an earlier frame has the same variable."""
        if spec.joint.type == "fixed":
            return spec
        variable = spec.joint.name
        leader = self.variables.setdefault(variable, spec)
        if leader is spec:
            return spec
        name = spec.name if spec.name not in self.variables else f"{spec.name} ({variable})"
        ratio = math.hypot(*spec.joint.axis) / math.hypot(*leader.joint.axis)
        rule = MimicSpec(variable, ratio, 0.0, spec.joint.place or spec.place)
        return replace(spec, joint=replace(spec.joint, name=name, mimic=rule))

    def add_geometry(self, block: GeometryBlock, frame: str, source: SourceText) -> _Solid:
        description = f"the geometry of frame '{frame}'"
        own, parents = self.attributes(block.attributes, GEOMETRY_RULES, description, source)
        values = _with_class_values(own, reversed(parents))
        geometry = geometry_of(values, place=source.place(block.position), packages=self.packages)
        if "level" in values:
            geometry = replace(geometry, level=values["level"].text)
        if any(word in own for word in POSE_WORDS):  # a pose of a class applies to frames only
            pose = _pose_from_values(own)
            if geometry.pose != PoseSpec():
                pose = spec_of_pose(pose_of(pose) @ pose_of(geometry.pose))
            geometry = replace(geometry, pose=pose)
        return _Solid(geometry, tuple(tag for parent in parents for tag in parent.tags), values)


def _with_class_values(own: Values, classes: Iterable[_Class]) -> Values:
    """Return the own values, completed from the classes, of which earlier ones have priority."""
    values = dict(own)
    for parent in classes:
        for name, value in parent.values.items():
            values.setdefault(name, value)
    return values


def _parent_name(
    own: Values, values: Values, outer: str | None
) -> tuple[str, SourceLocation | None]:
    """Return the parent of a frame, and its location in the file or None.

    An empty name denotes the root.
    """
    if outer is not None and "parent" in own:
        raise own["parent"].place.error(
            f"a frame inside the frame '{outer}' is its child; it cannot name a parent"
        )
    if "parent" not in values:
        return (outer if outer is not None else "world"), None
    return values["parent"].text or "world", values["parent"].place


def _triple(value: Value | None) -> tuple[float, float, float]:
    """Return the three numbers of a value, or zeros without a value."""
    if value is None:
        return 0.0, 0.0, 0.0
    x, y, z = value.numbers
    return x, y, z


def _pose_from_values(values: Values) -> PoseSpec:
    """Return the pose of a frame, in which a quaternion has priority over angles."""
    translation = _triple(values.get("translation"))
    if "quaternion" in values:
        x, y, z, w = values["quaternion"].numbers
        return PoseSpec(translation, quat_xyzw=(x, y, z, w))
    return PoseSpec(translation, rpy=_triple(values["rpy"]) if "rpy" in values else None)


def _joint_from_values(values: Values, *, frame: str, place: SourceLocation) -> JointSpec:
    kind = values["type"].text if "type" in values else "fixed"
    if kind == "fixed":
        for name in ("lower", "upper"):
            if name in values:
                reason = (
                    f"'{name}' has no meaning for a fixed frame; write 'type revolute;' or 'type"
                    " prismatic;'"
                )
                raise values[name].place.error(reason)
        return JointSpec(place=place)
    if "axis" not in values:
        raise values["type"].place.error(f"the {kind} frame '{frame}' needs an axis")
    axis = _triple(values["axis"])
    limits = {name: values[name].number for name in ("lower", "upper", "offset") if name in values}
    if "lower" in limits and "upper" in limits and limits["lower"] > limits["upper"]:
        reason = f"the upper limit {limits['upper']:g} is below the lower limit {limits['lower']:g}"
        raise values["upper"].place.error(reason)
    return JointSpec(
        type=kind,
        name=values["variable"].text if "variable" in values else frame,
        axis=axis,
        lower=limits.get("lower", -math.inf),
        upper=limits.get("upper", math.inf),
        offset=limits.get("offset", 0.0) * math.hypot(*axis),
        place=values["variable"].place if "variable" in values else place,
    )


def _inertia_from_values(
    values: Values, solids: Sequence[_Solid], *, place: SourceLocation
) -> tuple[InertiaSpec | None, tuple[GeometrySpec, ...]]:
    """Return the mass of a frame and its shapes, where only one of the two has masses."""
    geometry = tuple(solid.spec for solid in solids)
    masses = [solid.values["mass"] for solid in solids if "mass" in solid.values]
    if "mass" not in values:
        return (
            InertiaSpec(sum(mass.number for mass in masses), place) if masses else None
        ), geometry
    mass = values["mass"]
    if not solids:
        raise mass.place.error(
            "a mass is spread over the frame's geometry, and this frame has none"
        )
    if any(other.place != mass.place for other in masses):
        raise mass.place.error(
            "a mass is given for the frame and by a class of its geometry; give one of them"
        )
    return InertiaSpec(mass.number, mass.place), tuple(
        replace(spec, mass=None) for spec in geometry
    )


def _friction_from_values(values: Values, solids: Sequence[_Solid]) -> float | None:
    """Return the friction of a frame, by default the common friction of its shapes."""
    if "friction" in values:
        return values["friction"].number
    frictions = [solid.values["friction"] for solid in solids if "friction" in solid.values]
    if len({value.number for value in frictions}) > 1:
        raise frictions[-1].place.error(
            "two shapes of one frame have different friction; give it for the frame"
        )
    return frictions[0].number if frictions else None
