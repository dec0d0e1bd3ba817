"""Reader of MoveIt configuration packages, which are also scene files.

A configuration package of MoveIt 1 or 2 names a robot and adds to it::

    my_moveit_config/
      .setup_assistant              package and path of the robot file
      config/my_robot.srdf          groups, states, end effectors, disabled pairs of links
      config/joint_limits.yaml      limits of position, velocity and acceleration
      config/kinematics.yaml        groups with inverse kinematics
      config/moveit_controllers.yaml  controllers and their joints

As a scene, the folder is the robot with the disabled pairs and the limits. Of two limits of a
joint, the tighter one holds. :mod:`tmkit.formats.moveit.robot_files` finds the robot and the SRDF.
Files that are ``.xacro`` need the same permission as any other; the arguments of the user replace
those of ``.setup_assistant``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tmkit._support.limits import is_file
from tmkit._support.source_location import Note, SourceLocation, ignore_note
from tmkit._support.yaml_files import read_yaml
from tmkit.formats.format import Reading
from tmkit.formats.json.reading import JsonNode
from tmkit.formats.mesh.package_uris import PackageResolver, XacroArguments
from tmkit.formats.moveit.robot_files import file_stem, find_robot_files, readable_file
from tmkit.formats.reading_options import ReadingOptions
from tmkit.formats.spec.model import FrameSpec, SceneSpecification
from tmkit.formats.srdf.files import read_srdf_text
from tmkit.formats.srdf.values import RobotSemantics
from tmkit.formats.urdf.format import read_urdf_file

_LIMIT_FILES = ("joint_limits.yaml", "default_joint_limits.yaml")
"""Names of the file of joint limits, in the order of preference."""

_CONTROLLER_FILES = (
    "moveit_controllers.yaml",
    "simple_moveit_controllers.yaml",
    "controllers.yaml",
    "ros_controllers.yaml",
)
"""Names of the file of controllers, in the order of preference."""

_LIMIT_ROUNDING = 1e-6
"""Relative difference of limits that is rounding, as of 3.14159."""

_ARGUMENT = re.compile(r"\$\(arg (\w+)\)")
"""Argument of a launch file in a YAML file."""


@dataclass(frozen=True)
class JointLimits:
    """Limits of a joint in ``joint_limits.yaml``; those that the file omits are None.

    Attributes:
        lower: smallest value [rad or m].
        upper: largest value [rad or m].
        velocity: largest speed [rad/s or m/s].
        acceleration: largest acceleration [rad/s^2 or m/s^2].
        place: location of the joint in the file.
    """

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    acceleration: float | None = None
    place: SourceLocation = field(default=SourceLocation(""), compare=False, repr=False)


@dataclass(frozen=True)
class MoveItConfiguration:
    """Content of a MoveIt configuration package.

    Attributes:
        folder: folder of the package.
        robot: URDF or xacro file of the robot.
        semantics: content of the SRDF file.
        limits: limits by joint.
        kinematics: groups with a solver of inverse kinematics.
        controllers: joints by controller.
    """

    folder: Path
    robot: Path
    semantics: RobotSemantics
    limits: Mapping[str, JointLimits]
    kinematics: tuple[str, ...]
    controllers: Mapping[str, tuple[str, ...]]

    def __repr__(self) -> str:
        return (
            f"MoveItConfiguration('{self.folder.name}', {self.robot.name},"
            f" {len(self.semantics.groups)} groups, {len(self.limits)} limits,"
            f" {len(self.controllers)} controllers)"
        )


def read_moveit_configuration(
    folder: str | os.PathLike[str], *, reading: ReadingOptions | None = None
) -> MoveItConfiguration:
    """Read a MoveIt configuration package, without the robot.

    :func:`~tmkit.formats.load_scene` of the folder returns the robot.

    Args:
        folder: folder of the package.
        reading: search folders, and permission and arguments of xacro; the defaults if omitted.

    Raises:
        FileFormatError: if a file is missing, ambiguous or invalid, or needs xacro, which is not
            allowed.
        MissingFileError: if there is no such folder.
        MissingExtraError: if the library for YAML is not installed.
    """
    from tmkit.formats.registry import locate_files

    (path,), packages = locate_files([folder], reading or ReadingOptions())
    return _read(path, packages, ignore_note)[0]


def read_moveit_scene(
    folder: Path, reading: Reading
) -> tuple[SceneSpecification, MoveItConfiguration]:
    """Return the robot of a package, with its limits, and the other content.

    Args:
        folder: folder of the package.
        reading: context of the load.
    """
    configuration, arguments = _read(folder, reading.loader.packages, reading.note)
    robot, data = _text_of(configuration.robot, arguments, reading.loader.packages, reading.note)
    result = read_urdf_file(robot, reading, data=data)
    frames = [_with_limits(frame, configuration.limits, reading.note) for frame in result.frames]
    return replace(result, frames=tuple(frames)), configuration


def _read(
    folder: Path, packages: PackageResolver, note: Note
) -> tuple[MoveItConfiguration, XacroArguments]:
    """Return the content of a package, and the arguments of its xacro files."""
    permission = packages.xacro.get(folder)
    values = None if permission is None else permission.values
    files = find_robot_files(folder, packages, values)
    declared = set() if permission is None else permission.declared
    stems = (file_stem(files.robot), file_stem(files.srdf))
    declared.update(name for name, value in (values or {}).items() if value in stems)
    arguments = XacroArguments({**files.arguments, **(values or {})}, declared)
    srdf, data = _text_of(files.srdf, arguments, packages, note)
    semantics = read_srdf_text(data, srdf, note=note)
    places = [files.srdf.parent, folder / "config"]
    if semantics.name == Path(semantics.name).name:
        places.append(folder / "config" / semantics.name)
    documents = _Documents(tuple(places), packages, arguments.values)
    configuration = MoveItConfiguration(
        folder,
        files.robot,
        semantics,
        documents.limits(),
        documents.kinematics(),
        documents.controllers(),
    )
    return configuration, arguments


def _text_of(
    file: Path, arguments: XacroArguments, packages: PackageResolver, note: Note
) -> tuple[Path, bytes | None]:
    """Return the path of a file for messages, and its text if xacro expands it."""
    if file.suffix != ".xacro":
        return file, None
    from tmkit.formats.xacro.expansion import expand_xacro

    data = expand_xacro(file, arguments, packages, note=note)
    return file.with_name(f"{file.name} (expanded)"), data


@dataclass(frozen=True)
class _Documents:
    """YAML files of a package, each optional.

    Attributes:
        folders: folders of the files, the first that has a file counts.
        packages: resolver of files.
        values: arguments of launch files, by name. Others are empty.
    """

    folders: tuple[Path, ...]
    packages: PackageResolver
    values: Mapping[str, str]

    def limits(self) -> dict[str, JointLimits]:
        """Return the limits by joint."""
        top = self._document(*_LIMIT_FILES)
        joints = None if top is None else _value(top, "joint_limits")
        if joints is None:
            return {}
        return {name: _joint_limits(joints.get(name)) for name in joints.table()}

    def kinematics(self) -> tuple[str, ...]:
        """Return the groups with inverse kinematics."""
        top = self._document("kinematics.yaml")
        return () if top is None else tuple(top.table())

    def controllers(self) -> dict[str, tuple[str, ...]]:
        """Return the joints by controller."""
        top = self._document(*_CONTROLLER_FILES)
        if top is None:
            return {}
        manager = _value(top, "moveit_simple_controller_manager") or top
        listed = _value(manager, "controller_list")
        if listed is not None:
            return {node.get("name").name(): _joints(node) for node in listed.items()}
        names = _value(manager, "controller_names")
        if names is None:
            return {}
        nodes = {node.name(): _value(manager, node.name()) for node in names.items()}
        return {name: () if node is None else _joints(node) for name, node in nodes.items()}

    def _document(self, *names: str) -> JsonNode | None:
        """Return the content of the first file with one of these names, or None."""
        files = (folder / name for name in names for folder in self.folders)
        file = next(filter(is_file, files), None)
        if file is None:
            return None
        documents = read_yaml(readable_file(self.packages, file), edit=self._substitute)
        return JsonNode(documents[0], str(file)) if any(documents) else None

    def _substitute(self, text: str) -> str:
        """Return a text with the arguments of launch files replaced by their values."""
        return _ARGUMENT.sub(lambda match: self.values.get(match[1], ""), text)


def _value(node: JsonNode, key: str) -> JsonNode | None:
    """Return the value of an optional key, or None."""
    return node.get(key) if node.table().get(key) is not None else None


def _joints(controller: JsonNode) -> tuple[str, ...]:
    """Return the joints of a controller."""
    joints = _value(controller, "joints")
    return () if joints is None else tuple(node.name() for node in joints.items())


def _joint_limits(node: JsonNode) -> JointLimits:
    """Return the limits of a joint, without those that are switched off."""

    def number(switch: str, key: str) -> float | None:
        value, flag = _value(node, key), _value(node, f"has_{switch}_limits")
        return None if value is None or (flag is not None and not flag.flag()) else value.number()

    velocity = number("velocity", "max_velocity")
    acceleration = number("acceleration", "max_acceleration")
    for name, value in (("max_velocity", velocity), ("max_acceleration", acceleration)):
        if value is not None and value <= 0.0:
            raise node.get(name).error(f"expected a positive number, received {value:g}")
    place = SourceLocation(node.path)
    lower, upper = number("position", "min_position"), number("position", "max_position")
    return JointLimits(lower, upper, velocity, acceleration, place)


def _with_limits(frame: FrameSpec, limits: Mapping[str, JointLimits], note: Note) -> FrameSpec:
    """Return a frame whose joint has the tighter of two limits.

    Raises:
        FileFormatError: if no value of the joint satisfies both.
    """
    joint = frame.joint
    name = joint.name or frame.name
    other = limits.get(name)
    if other is None or joint.type == "fixed":
        return frame
    lower = joint.lower if other.lower is None else max(joint.lower, other.lower)
    upper = joint.upper if other.upper is None else min(joint.upper, other.upper)
    velocity = joint.velocity if other.velocity is None else min(joint.velocity, other.velocity)
    if lower > upper:
        own = f"{joint.lower:g} to {joint.upper:g}"
        raise other.place.error(f"joint '{name}' has no value within these limits and {own}")
    looser = [
        f"{key} {value:g} exceeds {limit:g} of the robot, which holds"
        for key, value, limit in (
            ("max_position", other.upper, joint.upper),
            ("max_velocity", other.velocity, joint.velocity),
        )
        if value is not None and value > limit * (1.0 + _LIMIT_ROUNDING)
    ]
    if other.lower is not None and other.lower < joint.lower - _LIMIT_ROUNDING * abs(joint.lower):
        below = f"min_position {other.lower:g} is below {joint.lower:g} of the robot, which holds"
        looser.append(below)
    for text in looser:
        note(other.place, f"joint '{name}': {text}")
    return replace(frame, joint=replace(joint, lower=lower, upper=upper, velocity=velocity))
