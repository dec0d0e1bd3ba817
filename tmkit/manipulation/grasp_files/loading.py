"""Grasp samplers from files of GraspNet-1Billion, ACRONYM and MoveIt.

::

    mug_grasps = load_grasps("mug.h5", scene, "mug")
    samplers = tk.Samplers().with_grasps(mug_grasps, of_frame="mug")
    result = tk.plan(scene, goal="(holding mug)", options=tk.PlanningOptions(samplers=samplers))

A published grasp is a pose of an open gripper, often of another hand. :meth:`GraspFile.check` makes
grasps of the user's hand. Its fingertips come to the published place. Its fingers close on the
object, which moves to the middle between them. The check of the built-in samplers
(:mod:`tmkit.manipulation.grasps.hand`) rejects grasps that collide or slip.

Invariants: the grasps of an object depend on the file, the hand and the object's shapes alone. They
are in the order of their scores.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from tmkit._support.argument_errors import check_argument, with_keyword_hints
from tmkit._support.json_files import read_json
from tmkit._support.limits import ReadingLimits
from tmkit._support.source_location import did_you_mean
from tmkit.errors import (
    ConfigurationError,
    DisconnectedError,
    FileFormatError,
    MissingFileError,
    SceneError,
    UnknownNameError,
)
from tmkit.graph import SceneGraph
from tmkit.manipulation.concave_objects import with_convex_pieces
from tmkit.manipulation.grasp_files.acronym import (
    SUFFIXES as ACRONYM_SUFFIXES,
    acronym_of_document,
    is_acronym_document,
    read_acronym,
)
from tmkit.manipulation.grasp_files.graspnet import SUFFIXES as GRASPNET_SUFFIXES, read_graspnet
from tmkit.manipulation.grasp_files.moveit import (
    SUFFIXES as MOVEIT_SUFFIXES,
    moveit_of_documents,
    read_moveit,
)
from tmkit.manipulation.grasp_files.values import PublishedGrasp, PublishedGrasps
from tmkit.manipulation.grasps.hand import HandCheck
from tmkit.manipulation.grasps.values import FINGER_CLEARANCE, Grasp
from tmkit.manipulation.samplers import GraspRequest
from tmkit.motion.regions.solids import reach
from tmkit.robots import Manipulator
from tmkit.robots.robot_files import Robot, resolve_robot
from tmkit.spatial import Pose

_MAX_FEASIBLE = 100
"""Number of feasible grasps after which no more are checked."""

_BATCH_SIZE = 100
"""Number of published grasps that are checked at a time."""

_HALF_TURN = Pose([0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0])
"""Half a turn about the approach."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class GraspCheck:
    """Grasps of a file that are feasible for a hand, with the reasons against the others.

    Attributes:
        file: name of the file.
        object: frame of the object.
        feasible: feasible grasps, by decreasing score. The check ends when there are 100.
        checked: number of published grasps that were checked.
        published: number of published grasps.
        without_contact: number of those on which the fingers do not close.
        rejected: number of those at which the hand collides, or its fingers slip.
        distance: distance of the published poses from the origin of the object, the median [m].
    """

    file: str
    object: str
    feasible: tuple[Grasp, ...] = field(repr=False)
    checked: int
    published: int
    without_contact: int
    rejected: int
    distance: float

    @property
    def summary(self) -> str:
        """Text with all counts and, without a feasible grasp, likely causes."""
        number = len(self.feasible)
        text = (
            f"{_count(number)} of '{self.object}' by {self.checked} of {_count(self.published)} in"
            f" {self.file}: on {self.without_contact} the fingers do not close, at {self.rejected}"
            " the hand collides or slips"
        )
        if number:
            return text
        return (
            f"{text}; the published poses are {self.distance:.3g} m from the origin of"
            f" '{self.object}' (median): compare frame, unit and scale"
        )


@dataclass(frozen=True, eq=False)
class GraspFile:
    """Grasps of a file for one object, a grasp sampler (:class:`tmkit.manipulation.GraspSampler`).

    :func:`load_grasps` reads them.

    Attributes:
        path: the file.
        publisher: name of the format.
        object: frame of the object.
        grasps: published grasps with poses relative to the object, by decreasing score.
        gripper_frame: frame of the robot whose poses these are. None for those of fingertips.
        is_symmetric: whether each grasp is also tried turned by half a turn about the approach.
        notes: properties of the file, such as the mesh of the object.
    """

    path: Path
    publisher: str
    object: str
    grasps: tuple[PublishedGrasp, ...] = field(repr=False)
    gripper_frame: str | None
    is_symmetric: bool
    notes: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of published grasps."""
        return len(self.grasps)

    @property
    def summary(self) -> str:
        """Text with the number of grasps and their frames."""
        frame = f"of '{self.gripper_frame}'" if self.gripper_frame else "of fingertips"
        heading = f"{_count(len(self))} of '{self.object}' in {self.path.name} ({self.publisher})"
        return "; ".join((heading, f"poses {frame} {self.notes[0]}", *self.notes[1:]))

    def __call__(self, request: GraspRequest, /) -> tuple[Grasp, ...]:
        """Return the feasible grasps of the requested object, by decreasing score.

        Raises:
            ConfigurationError: if the hand has no fingers, or ``gripper_frame`` moves in it.
            SceneError: if the scene has no complete hand, or the object no collision shape.
        """
        check = self._check(request.scene, request.object, request.robot)
        log = logger.info if check.feasible else logger.warning
        log("%s", check.summary)
        return check.feasible

    def check(self, scene: SceneGraph, *, robot: Robot) -> GraspCheck:
        """Return the grasps that are feasible for a hand, and the reasons against others.

        Concave meshes of the object count as convex pieces, as in :func:`tmkit.plan`. A hundred
        grasps take about a second.

        Args:
            scene: scene with the object and the hand.
            robot: name or description of the arm with the hand.

        Raises:
            ConfigurationError: if the hand has no fingers, or ``gripper_frame`` moves in it.
            MissingFileError: if there is no robot of the name.
            SceneError: if the scene has no complete hand, or the object no collision shape.
        """
        check_argument(scene, SceneGraph, "scene", function="check")
        return self._check(scene, self.object, resolve_robot(robot, scene, function="check"))

    def _check(self, scene: SceneGraph, object: str, robot: Manipulator) -> GraspCheck:
        """Return the grasps of an object that are feasible for a hand."""
        if object not in scene:
            raise UnknownNameError.of("frame", object, scene.frame_names)
        if not robot.is_two_fingered:
            raise ConfigurationError(
                f"{self.path}: its grasps are for two fingers, and '{robot.name}' has the gripper"
                f" kind '{robot.gripper_kind}'"
            )
        if not HandCheck.has_hand(scene, robot):
            raise SceneError(
                f"the scene has no complete hand of '{robot.name}', with which the grasps of"
                f" {self.path} are checked",
                frame=robot.tip,
            )
        scene = with_convex_pieces(scene, frames=[object])
        solids = tuple(part for part in scene.shapes(object) if part.collision)
        if not solids:
            raise SceneError(
                f"object '{object}' has no collision shape to grasp it by", frame=object
            )
        attempts = _Attempts(
            HandCheck(scene, solids, robot=robot),
            self._gripper_from_tool(scene, robot),
            self.is_symmetric,
            self.path.name,
        )
        feasible: list[Grasp] = []
        without_contact = rejected = checked = 0
        for start in range(0, len(self.grasps), _BATCH_SIZE):
            batch = self.grasps[start : start + _BATCH_SIZE]
            closed, held = attempts.feasible_grasps(batch)
            checked += len(batch)
            without_contact += len(batch) - closed
            rejected += closed - len({grasp.name for grasp in held})
            feasible += held
            if len(feasible) >= _MAX_FEASIBLE:
                break
        distances = [
            float(np.sqrt(np.sum(np.square(grasp.pose.translation)))) for grasp in self.grasps
        ]
        return GraspCheck(
            self.path.name,
            object,
            tuple(feasible),
            checked,
            len(self.grasps),
            without_contact,
            rejected,
            float(np.median(distances)),
        )

    def _gripper_from_tool(self, scene: SceneGraph, robot: Manipulator) -> Pose:
        """Return the pose of the tool in the frame of the published poses.

        Raises:
            ConfigurationError: if the frame of the poses moves relative to the tool.
            UnknownNameError: if the scene has no such frame.
        """
        if self.gripper_frame is None:
            offset = robot.finger_offset(robot.width_open)
            return Pose([0.0, -offset, -_fingertip_distance(scene, robot)])
        if self.gripper_frame not in scene:
            raise UnknownNameError.of("frame", self.gripper_frame, scene.frame_names)
        try:
            return scene.pose(robot.tool, relative_to=self.gripper_frame)
        except (ConfigurationError, DisconnectedError):
            reason = f"'{self.gripper_frame}' moves relative to the tool '{robot.tool}'"
            raise ConfigurationError(
                f"{self.path}: {reason} of '{robot.name}'; gripper_frame is a frame that is fixed"
                " to it"
            ) from None


@with_keyword_hints
def load_grasps(
    path: str | Path,
    scene: SceneGraph,
    object: str,
    *,
    frame: str | None = None,
    gripper_frame: str | None = None,
    object_id: int | None = None,
    q: ArrayLike | None = None,
) -> GraspFile:
    """Load the grasps of an object from a file, as a grasp sampler.

    The format follows from the suffix: ``.npy`` and ``.npz`` of GraspNet-1Billion, ``.h5`` and
    ``.json`` of ACRONYM, ``.yaml`` and ``.json`` of MoveIt (moveit_msgs/Grasp). O(n log n) in the
    number of grasps.

    Args:
        path: the file. It runs no code; see docs/howto/grasp_files.md for the formats.
        scene: scene with the object.
        object: frame of the object.
        frame: frame to which the poses are relative, such as that of a camera. Defaults to the
            frame that the file names, or the object.
        gripper_frame: frame of the robot whose poses a file of MoveIt has, such as
            ``"panda_link8"``. Other formats have grippers of their own.
        object_id: number of the object in a file of several objects.
        q: (n_joints,) configuration, if a joint is between the object and ``frame`` [rad or m].

    Raises:
        ConfigurationError: if ``gripper_frame`` or ``object_id`` is missing, or has no meaning.
        FileFormatError: if the file has another format, or a grasp is invalid.
        MissingExtraError: if the library of the format is not installed.
        MissingFileError: if there is no such file.
        UnknownNameError: if a frame is unknown.
    """
    check_argument(path, (str, Path), "path", function="load_grasps")
    check_argument(scene, SceneGraph, "scene", function="load_grasps")
    check_argument(object, str, "object", function="load_grasps")
    for name in (object, frame, gripper_frame):
        if name is not None and name not in scene:
            raise UnknownNameError.of("frame", name, scene.frame_names)
    published = read_grasps(Path(path))
    if published.has_fingertip_frames and gripper_frame is not None:
        raise ConfigurationError(
            f"{path}: gripper_frame has no meaning, since {published.publisher} defines its gripper"
        )
    if not published.has_fingertip_frames and gripper_frame is None:
        raise ConfigurationError(
            f"{path}: gripper_frame is missing: the frame of your robot whose poses these are, such"
            " as the parent_link of the end effector in the SRDF"
        )
    grasps = []
    object_from: dict[str, Pose] = {}
    for grasp in _of_object(published, object_id):
        reference = grasp.reference or object if frame is None else frame
        if reference not in object_from:
            object_from[reference] = _object_from_frame(published, scene, object, reference, q)
        grasps.append(replace(grasp, pose=object_from[reference] @ grasp.pose))
    grasps.sort(key=lambda grasp: -grasp.score)
    notes = (f"relative to {', '.join(map(repr, object_from))}", *published.notes)
    return GraspFile(
        published.path,
        published.publisher,
        object,
        tuple(grasps),
        gripper_frame,
        published.is_symmetric,
        notes,
    )


def read_grasps(path: Path) -> PublishedGrasps:
    """Read the grasps of a file, in the format of its suffix and content.

    Raises:
        FileFormatError: if the format is unknown, or a grasp is invalid.
        MissingExtraError: if the library of the format is not installed.
        MissingFileError: if there is no such file.
    """
    if not path.exists():
        raise MissingFileError(f"there is no file '{path}'", path=str(path), nearest=None)
    suffix = path.suffix.lower()
    if suffix in GRASPNET_SUFFIXES:
        return read_graspnet(path)
    if suffix in ACRONYM_SUFFIXES:
        return read_acronym(path)
    if suffix in MOVEIT_SUFFIXES:
        return read_moveit(path)
    if suffix == ".json":
        document, _ = read_json(path, limit=ReadingLimits().mesh_bytes)
        if is_acronym_document(document):
            return acronym_of_document(path, document)
        return moveit_of_documents(path, [document])
    suffixes = (*GRASPNET_SUFFIXES, *ACRONYM_SUFFIXES, *MOVEIT_SUFFIXES, ".json")
    hint = did_you_mean(suffix, suffixes)
    raise FileFormatError.at(
        path, f"unknown format of grasps '{suffix}'{hint} (known: {', '.join(suffixes)})"
    )


def _count(number: int) -> str:
    """Return a number of grasps with its noun."""
    return "1 grasp" if number == 1 else f"{number} grasps"


def _of_object(published: PublishedGrasps, object_id: int | None) -> list[PublishedGrasp]:
    """Return the grasps of one object of a file.

    Raises:
        ConfigurationError: if the file has several objects, or none of the number.
    """
    ids = {grasp.object_id for grasp in published.grasps}
    numbers = ", ".join(str(number) for number in sorted(ids - {None}, key=str)) or "none"
    if object_id is None:
        if len(ids) > 1:
            raise ConfigurationError(
                f"{published.path}: object_id is missing, since the file has several objects:"
                f" {numbers}"
            )
        return list(published.grasps)
    grasps = [grasp for grasp in published.grasps if grasp.object_id == object_id]
    if not grasps:
        raise ConfigurationError(
            f"{published.path}: it has no grasp of the object {object_id} (objects: {numbers})"
        )
    return grasps


def _object_from_frame(
    published: PublishedGrasps, scene: SceneGraph, object: str, frame: str, q: ArrayLike | None
) -> Pose:
    """Return the pose of the frame to which poses are relative.

    Raises:
        ConfigurationError: if a joint is between both and there is no configuration.
        FileFormatError: if the file names a frame that the scene does not have.
    """
    if frame not in scene:
        hint = did_you_mean(frame, scene.frame_names)
        raise FileFormatError.at(
            published.path,
            f"its poses are relative to '{frame}', which the scene does not have{hint}; give"
            " another frame by the argument 'frame'",
        )
    return scene.pose(frame, relative_to=object, q=q)


def _fingertip_distance(scene: SceneGraph, robot: Manipulator) -> float:
    """Return the distance from the tool to the fingertips, along the tool's z axis [m].

    The fingers are half open, since those of a linkage also move along this axis.
    """
    width = 0.5 * (robot.width_closed + robot.width_open)
    q = scene.configuration(robot.finger_values(width), base=scene.zero_configuration())
    kinematics = scene.at(q)
    distances = []
    for link in robot.contact_links:
        tool_from_link = kinematics.pose(link, relative_to=robot.tool)
        solids = tuple(part for part in scene.shapes(link) if part.collision)
        forward = tool_from_link.inverse().rotate([0.0, 0.0, 1.0])
        distances.append(reach(solids, forward) + float(tool_from_link.translation[2]))
    return max(distances)


@dataclass(frozen=True, eq=False)
class _Attempts:
    """Grasps of published poses, with a hand that closes on the object.

    Attributes:
        hand_check: check of the hand and the object.
        gripper_from_tool: pose of the tool in the frame of the published poses.
        is_symmetric: whether a pose is also tried turned by half a turn about the approach.
        file: name of the file, for the names of grasps.
    """

    hand_check: HandCheck
    gripper_from_tool: Pose
    is_symmetric: bool
    file: str

    def feasible_grasps(self, batch: Sequence[PublishedGrasp]) -> tuple[int, list[Grasp]]:
        """Return the number of poses at which the fingers close, and the feasible grasps."""
        turns = (Pose(), _HALF_TURN) if self.is_symmetric else (Pose(),)
        closed = [[self._close(published, turn) for turn in turns] for published in batch]
        grasps = [grasp for group in closed for grasp in group if grasp is not None]
        return sum(any(group) for group in closed), _held_grasps(self.hand_check, grasps)

    def _close(self, published: PublishedGrasp, turn: Pose) -> Grasp | None:
        """Return the grasp after the fingers have closed, or None without contact.

        Args:
            published: grasp of the file.
            turn: rotation about the approach before the fingers close.
        """
        closed = self.hand_check.close(published.pose @ turn @ self.gripper_from_tool)
        if closed is None:
            return None
        pose, width = closed
        opening = _opening(published, width, self.hand_check.robot)
        return Grasp(pose, width, f"{published.place} of {self.file}", opening)


def _opening(published: PublishedGrasp, width: float, robot: Manipulator) -> float | None:
    """Return the published distance of the open fingers, with room for the object; None for full.

    Args:
        published: grasp of the file.
        width: distance of the closed fingers [m].
        robot: arm with the hand.
    """
    opening = published.opening
    values = dict(published.open_joints)
    joint = next((name for name in robot.gripper_joints if name in values), None)
    if joint is not None:
        low, high = robot.gripper_closed, robot.gripper_open
        fraction = (values[joint] - low[joint]) / (high[joint] - low[joint])
        opening = robot.finger_width(
            {name: low[name] + fraction * (high[name] - low[name]) for name in high}
        )
    least = width + 2.0 * FINGER_CLEARANCE
    if opening is None or max(opening, least) >= robot.width_open:
        return None
    return max(opening, least)


def _held_grasps(hand_check: HandCheck, grasps: Sequence[Grasp]) -> list[Grasp]:
    """Return the grasps that are feasible for the hand, in the given order.

    The check rejects tilting grasps if others in the batch do not tilt. Published grasps have been
    tried by their publishers, so the tilting ones are checked among themselves, too.
    """
    is_flush = hand_check.are_feasible(grasps)
    is_held = is_flush.copy()
    indices = np.flatnonzero(~is_flush)
    is_held[indices] = hand_check.are_feasible([grasps[k] for k in indices.tolist()])
    return [grasps[k] for k in np.flatnonzero(is_held).tolist()]
