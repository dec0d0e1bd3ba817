"""Scene files in the robray language of the original TMKit (docs/reference/robray.md).

This module interprets the statements; :mod:`~tmkit.formats.robray.grammar` has the syntax, and
:mod:`~tmkit.formats.robray.values` what each attribute accepts and what a shape is.

Statements are carried out in order, includes in their place, as if they were one text. A definition
or class is valid from its own line on; frames become specifications, whose parents are looked up
when all files of a load are read. Only what the original would refuse as a duplicate, a file that
is included again, is carried out again as far as its definitions go. Everything wrong is refused
with file, line, column and a caret.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tmkit._support.source_location import SourceLocation, did_you_mean
from tmkit.formats.mesh.meshes import MESH_SUFFIXES
from tmkit.formats.mesh.package_uris import PackageResolver, real_path
from tmkit.formats.robray.grammar import (
    AllowCollision,
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
from tmkit.formats.robray.values import (
    CLASS_RULES,
    CONSTANTS,
    FRAME_RULES,
    GEOMETRY_RULES,
    POSE_WORDS,
    Rule,
    Value,
    evaluate,
    geometry_of,
    number_of,
)
from tmkit.formats.spec.model import AllowedPairSpec, FrameSpec, SceneSpecification
from tmkit.formats.spec.parts import GeometrySpec, InertiaSpec, JointSpec, MimicSpec, PoseSpec
from tmkit.formats.spec.values import extend_frame, mesh_specification, pose_of, spec_of_pose

# Classes that tmkit itself uses; a file need not define them.
KNOWN_CLASSES = ("surface", "movable", "upright", "filled")

# The original writes these two with a dash in some places and an underscore in others.
SPELLINGS: Mapping[str, str] = {
    "start-radius": "start_radius",
    "end-radius": "end_radius",
    "no_shadow": "no-shadow",
}

OTHER_FORMATS = (".urdf", ".sdf", ".json", ".srdf")  # that may be included

# Includes within includes: far above what is written by hand.
DEEPEST_INCLUDE = 64

Values = dict[str, Value]


def read_robray(
    path: Path, *, packages: PackageResolver, read_other: Callable[[Path], SceneSpecification]
) -> SceneSpecification:
    """Read a robray file and everything it includes; ``read_other`` reads an included file of another format."""
    reader = _Reader(packages, read_other)
    reader.read(path, ())
    return SceneSpecification(tuple(reader.frames), tuple(reader.allowed))


@dataclass(frozen=True, slots=True)
class _Class:
    """A class with everything it inherits: its attributes, and the names of itself and of the classes behind it."""

    values: Mapping[str, Value]
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Solid:
    """A shape of a frame with the names of its classes and all its attributes."""

    spec: GeometrySpec
    tags: tuple[str, ...]
    values: Mapping[str, Value]


@dataclass(slots=True)
class _Reader:
    """One file with its includes, which share constants and classes."""

    packages: PackageResolver
    read_other: Callable[[Path], SceneSpecification]
    constants: dict[str, float] = field(default_factory=lambda: dict(CONSTANTS))
    classes: dict[str, _Class] = field(default_factory=dict)
    class_places: dict[str, SourceLocation] = field(default_factory=dict)
    variables: dict[str, FrameSpec] = field(default_factory=dict)
    # frames of other formats, by their places in ``frames``
    other: dict[str, int] = field(default_factory=dict)
    seen: set[Path] = field(default_factory=set)
    bytes: int = 0
    frames: list[FrameSpec] = field(default_factory=list)
    allowed: list[AllowedPairSpec] = field(default_factory=list)

    def read(self, path: Path, including: tuple[Path, ...]) -> None:
        """Read a file that is reached through the files ``including``; of one read before, its definitions only."""
        limits = self.packages.limits
        source, text = SourceText.read(
            path,
            folders=tuple(earlier.parent for earlier in reversed(including)),
            limit=limits.robray_bytes,
            before=self.bytes,
            unsaved=self.packages.unsaved,
        )
        self.bytes += len(text)
        is_new = real_path(path) not in self.seen
        self.seen.add(real_path(path))
        chain = (*including, path)
        for statement in parse_robray(source, text):
            if isinstance(statement, Include):
                self.include(statement, source, chain)
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

    def include(self, statement: Include, source: SourceText, chain: tuple[Path, ...]) -> None:
        place = source.place(statement.file.at)
        path = self.packages.resolve(statement.file.text, folder=source.path.parent, place=place)
        cycle = [str(earlier) for earlier in chain if real_path(earlier) == real_path(path)]
        if cycle:
            names = [str(earlier) for earlier in chain]
            around = " -> ".join([*names[names.index(cycle[0]) :], str(path)])
            raise place.error(f"the includes form a cycle: {around}")
        if path.suffix == ".robray":
            if len(chain) > DEEPEST_INCLUDE:
                raise place.error(f"includes are nested more than {DEEPEST_INCLUDE} deep")
            self.packages.count_include(place, is_slow=True)
            self.read(path, chain)
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
            raise source.place(statement.name.at).error(
                f"the constant '{statement.name.text}' cannot be redefined"
            )
        number = number_of(statement.value, source=source, constants=self.constants)
        self.constants[statement.name.text] = number

    def add_class(self, block: ClassBlock, source: SourceText) -> None:
        name, place = block.name.text, source.place(block.name.at)
        if name in self.class_places:
            raise place.error(f"the class '{name}' is already defined at {self.class_places[name]}")
        own, parents = self.attributes(block.attributes, CLASS_RULES, f"class '{name}'", source)
        values = _merged(own, reversed(parents))
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
        """Return a block's own values, and the classes it names by ``isa`` in order."""
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
                known = sorted({*rules, "isa"})
                raise source.place(attribute.name.at).error(
                    f"unknown attribute '{name}' in {block}{did_you_mean(name, known)} (known:"
                    f" {', '.join(known)})"
                )
        return values, parents

    def find_class(self, attribute: Attribute, source: SourceText) -> _Class:
        place = source.place(attribute.value.at)
        if not isinstance(attribute.value, Name):
            raise place.error("expected the name of a class")
        name = attribute.value.text
        if name in self.classes:
            return self.classes[name]
        if name in KNOWN_CLASSES:
            return _Class({}, (name,))
        hint = did_you_mean(name, [*self.classes, *KNOWN_CLASSES])
        raise place.error(f"unknown class '{name}'{hint}; define it first: class {name} {{ }}")

    def allow(self, statement: AllowCollision, source: SourceText) -> None:
        first, second = statement.first.text, statement.second.text
        places = source.place(statement.first.at), source.place(statement.second.at)
        self.allowed.append(AllowedPairSpec(first, second, "user", *places))

    def add_frame(
        self, block: FrameBlock, source: SourceText, outer: str | None, depth: int = 0
    ) -> None:
        place = source.place(block.name.at)
        if not block.name.text:
            raise place.error("a frame needs a name")
        if depth > 200:
            raise place.error("frames are nested more than 200 deep")
        self.packages.limits.refuse_frames(len(self.frames) + 1, place.error)
        written = [member for member in block.members if isinstance(member, Attribute)]
        own, parents = self.attributes(written, FRAME_RULES, f"frame '{block.name.text}'", source)
        values = _merged(own, parents)
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
                has_more=len(written) < len(block.members),
            )
            return
        inertia, geometry = _inertia_in(values, solids, place=place)
        if "level" in values:
            geometry = tuple(
                replace(part, level=part.level or values["level"].text) for part in geometry
            )
        parent, parent_place = _parent(own, values, outer)
        spec = FrameSpec(
            name=block.name.text,
            parent=(
                None
                if block.name.text == "world" and parent_place is None and outer is None
                else parent
            ),
            place=place,
            pose=_pose_in(values),
            joint=_joint_in(values, frame=block.name.text, place=place),
            classes=tuple(dict.fromkeys(tags)),
            geometry=geometry,
            inertia=inertia,
            friction=_friction_in(values, solids),
            parent_place=parent_place,
        )
        self.frames.append(self.following(spec))
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
        """Give a frame of an included file of another format another place, and what it is; its shapes stay."""
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
            spec = replace(spec, pose=_pose_in(values))
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

    def following(self, spec: FrameSpec) -> FrameSpec:
        """Return the frame; if an earlier one has the same variable, its joint follows that one's."""
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
        where = f"the geometry of frame '{frame}'"
        own, parents = self.attributes(block.attributes, GEOMETRY_RULES, where, source)
        values = _merged(own, reversed(parents))
        geometry = geometry_of(values, place=source.place(block.at), packages=self.packages)
        if "level" in values:
            geometry = replace(geometry, level=values["level"].text)
        if any(word in own for word in POSE_WORDS):  # those of a class are meant for frames
            pose = _pose_in(own)
            if geometry.pose != PoseSpec():
                pose = spec_of_pose(pose_of(pose) @ pose_of(geometry.pose))
            geometry = replace(geometry, pose=pose)
        return _Solid(geometry, tuple(tag for parent in parents for tag in parent.tags), values)


def _merged(own: Values, classes: Iterable[_Class]) -> Values:
    """Return one's own values, completed by those of the classes; earlier classes win."""
    values = dict(own)
    for parent in classes:
        for name, value in parent.values.items():
            values.setdefault(name, value)
    return values


def _parent(own: Values, values: Values, outer: str | None) -> tuple[str, SourceLocation | None]:
    """Return the name of a frame's parent, and where it is written if it is; the empty name is that of the root."""
    if outer is not None and "parent" in own:
        raise own["parent"].place.error(
            f"a frame inside the frame '{outer}' is its child; it cannot name a parent"
        )
    if "parent" not in values:
        return (outer if outer is not None else "world"), None
    return values["parent"].text or "world", values["parent"].place


def _triple(value: Value | None) -> tuple[float, float, float]:
    """Return the three numbers of a value, zeros when there is none."""
    if value is None:
        return 0.0, 0.0, 0.0
    x, y, z = value.numbers
    return x, y, z


def _pose_in(values: Values) -> PoseSpec:
    """Return the pose of a frame; a quaternion beats angles."""
    translation = _triple(values.get("translation"))
    if "quaternion" in values:
        x, y, z, w = values["quaternion"].numbers
        return PoseSpec(translation, quat_xyzw=(x, y, z, w))
    return PoseSpec(translation, rpy=_triple(values["rpy"]) if "rpy" in values else None)


def _joint_in(values: Values, *, frame: str, place: SourceLocation) -> JointSpec:
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


def _inertia_in(
    values: Values, solids: Sequence[_Solid], *, place: SourceLocation
) -> tuple[InertiaSpec | None, tuple[GeometrySpec, ...]]:
    """Return the mass of a frame and its shapes; either the frame or its shapes have masses."""
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


def _friction_in(values: Values, solids: Sequence[_Solid]) -> float | None:
    """Return the friction of a frame: its own, or else that of its geometry, which must agree."""
    if "friction" in values:
        return values["friction"].number
    found = [solid.values["friction"] for solid in solids if "friction" in solid.values]
    if len({value.number for value in found}) > 1:
        raise found[-1].place.error(
            "two shapes of one frame have different friction; give it for the frame"
        )
    return found[0].number if found else None
