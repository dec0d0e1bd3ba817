"""Grasp lists of MoveIt: messages ``moveit_msgs/Grasp`` as YAML or JSON.

Such a list is the output of a grasp generator, as ``ros2 topic echo`` and ``rostopic echo`` print
it: documents of one grasp each, a list, or a message with ``grasps`` or ``possible_grasps``. The
pose is that of a frame of the user's robot: the ``parent_link`` of the end effector in the SRDF, or
the ``ik_frame`` of MoveIt Task Constructor. It is relative to
``grasp_pose.header.frame_id``. ``pre_grasp_posture`` has the values of the open finger joints.

Approach and retreat of the message are not used: the planner approaches along the tool's z axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tmkit._support.yaml_files import read_yaml
from tmkit.errors import FileFormatError, TmkitError
from tmkit.formats.json.reading import JsonNode
from tmkit.manipulation.grasp_files.values import PublishedGrasp, PublishedGrasps, require_count
from tmkit.spatial import Pose

SUFFIXES = (".yaml", ".yml")
"""Suffixes of the YAML files."""

_LIST_KEYS = ("grasps", "possible_grasps")
"""Keys of lists of grasps in other messages."""

_GENERATOR_KEYS = {"end_effector_name", "grasp_resolution", "angle_resolution"}
"""Keys of the configuration of moveit_grasps, which describes a hand."""


def read_moveit(path: Path) -> PublishedGrasps:
    """Read the grasps of a YAML file.

    Args:
        path: file with one or several documents.

    Raises:
        FileFormatError: if the file is not YAML, or a value is missing or invalid.
        MissingExtraError: if PyYAML is not installed.
    """
    documents = read_yaml(path)
    _require_text_keys(path, documents)
    return moveit_of_documents(path, documents)


def moveit_of_documents(path: Path, documents: list[object]) -> PublishedGrasps:
    """Return the grasps of documents, each with one grasp or a list.

    Raises:
        FileFormatError: if a value is missing or invalid.
    """
    grasps: list[PublishedGrasp] = []
    directions = 0
    for number, document in enumerate(documents):
        prefix = f"document[{number}]" if len(documents) > 1 else ""
        for node in _grasp_nodes(JsonNode(document, str(path), prefix)):
            grasps.append(_grasp(node, len(grasps)))
            directions += "pre_grasp_approach" in node.table()
    require_count(path, len(grasps))
    notes = []
    if directions:
        notes.append("the planner approaches along the tool's z axis, not by pre_grasp_approach")
    return PublishedGrasps(
        path,
        "MoveIt",
        tuple(grasps),
        has_fingertip_frames=False,
        is_symmetric=False,
        notes=(*notes,),
    )


def _grasp_nodes(node: JsonNode) -> Iterator[JsonNode]:
    """Yield the messages of a document."""
    if node.value is None:  # rostopic prints a separator after the last message
        return
    if isinstance(node.value, list):
        yield from node.items()
        return
    keys = node.table()
    if "grasp_pose" in keys:
        yield node
        return
    for key in _LIST_KEYS:
        if key in keys:
            yield from node.get(key).items()
            return
    inner = [value for value in keys.values() if isinstance(value, dict)]
    if any(_GENERATOR_KEYS & set(table) for table in (keys, *inner)):
        reason = (
            "this configures the generator moveit_grasps and has no grasps: save those that it"
            " generates (moveit_msgs/Grasp)"
        )
        raise node.error(reason)
    raise node.error("expected a moveit_msgs/Grasp with 'grasp_pose', or a list 'grasps' of them")


def _grasp(node: JsonNode, number: int) -> PublishedGrasp:
    """Return the grasp of a message."""
    keys = node.table()
    stamped = node.get("grasp_pose")
    pose = stamped.get("pose")
    position = [_number(pose.get("position").get(axis)) for axis in "xyz"]
    orientation = [_number(pose.get("orientation").get(axis)) for axis in "xyzw"]
    try:
        reference_from_gripper = Pose(position, orientation)
    except TmkitError as error:  # a zero quaternion
        raise pose.error(str(error)) from None
    header = stamped.get("header")
    name = node.get("id").value if "id" in keys else ""
    label = f" '{name}'" if isinstance(name, str) and name else ""
    return PublishedGrasp(
        reference_from_gripper,
        f"message {number}{label}",
        _number(node.get("grasp_quality")) if "grasp_quality" in keys else 0.0,
        reference=header.get("frame_id").text().removeprefix("/"),  # ROS 1 has the slash
        open_joints=_open_joints(node),
    )


def _open_joints(node: JsonNode) -> tuple[tuple[str, float], ...]:
    """Return the finger joint values before the grasp; empty without a posture."""
    if "pre_grasp_posture" not in node.table():
        return ()
    posture = node.get("pre_grasp_posture")
    names = [entry.text() for entry in posture.get("joint_names").items()]
    points = list(posture.get("points").items())
    if not names or not points:
        return ()
    values = [_number(entry) for entry in points[-1].get("positions").items()]
    if len(values) != len(names):
        raise posture.error(f"expected {len(names)} positions, one a joint, received {len(values)}")
    return tuple(zip(names, values, strict=True))


def _number(node: JsonNode) -> float:
    """Return a number, also one without a point, as 1e-05, which YAML 1.1 reads as a text."""
    if isinstance(node.value, str):
        try:
            return replace(node, value=float(node.value)).number()
        except ValueError:
            pass
    return node.number()


def _require_text_keys(path: Path, value: object) -> None:
    """Check that all keys of nested mappings are texts.

    Raises:
        FileFormatError: if a key is another value, such as a number.
    """
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise FileFormatError.at(path, f"expected texts as keys, received {key!r}")
        parts = list(value.values())
    else:
        parts = value if isinstance(value, list) else []
    for part in parts:
        _require_text_keys(path, part)
