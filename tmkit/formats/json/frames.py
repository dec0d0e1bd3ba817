"""Frames in JSON: pose, joint, inertia, shapes, twist, stamped poses and noise.

A pose is a list of seven numbers, x y z and the quaternion's x y z w. Stamped poses are listed by
ascending stamp, with the bounds of their history; an unlimited window is null.

A document lists its noise sources once, under ``noise_sources``, each with its dimension and label.
A frame with an uncertain pose has ``noise``: the covariance and, for each source, its index in that
list and the map, row by row. So errors that are correlated in the scene are correlated after
reading. Reading creates new sources, which no scene in memory shares.

Invariants: a frame that was written reads back equal. An error about an invalid document names the
    invalid value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tmkit import graph
from tmkit._core import EdgeNoise, Group, StampedPoses
from tmkit._support.limits import MAX_SOURCE_DIMENSION
from tmkit._support.source_location import Note, SourceLocation, locate_errors
from tmkit.errors import SceneError
from tmkit.formats.json.reading import JsonNode
from tmkit.formats.spec.build import inertia_or_point_mass, split_mesh
from tmkit.formats.spec.parts import JOINTS_WITHOUT_VALUE, PIECES, JointSpec
from tmkit.formats.spec.values import joint_of
from tmkit.graph.traversal import Stamped
from tmkit.spatial import GaussianPose, Pose

COLLISION_LEVELS = ("box", "hull", "exact")
"""Collision levels of a shape."""

_LIMITS = {"lower": -math.inf, "upper": math.inf, "velocity": math.inf, "effort": math.inf}
"""Value of each unlimited limit of a joint, which is null in JSON."""

_DYNAMICS = ("damping", "friction")
"""Names of the dynamic coefficients of a joint."""

JOINT_TYPES = ("fixed", "revolute", "continuous", "prismatic", "free", "unstated")
"""Types of a joint."""

_UNIT_TOLERANCE = 1e-3
"""Largest deviation of a quaternion's length from 1, for numbers of three digits."""

_FRAME_KEYS = (
    "attributes",
    "body",
    "classes",
    "inertia",
    "joint",
    "name",
    "noise",
    "parent",
    "pose",
    "shapes",
    "stamps",
    "attribute_stamps",
    "twist",
)
"""Keys of a frame."""

Json = dict[str, Any]


def frame_to_dict(frame: graph.FrameSpecification, sources: SourceList) -> Json:
    """Return a frame as a JSON object, and append its noise sources to ``sources``."""
    document = attributes_to_dict(frame)
    if frame.noise is not None:
        document["noise"] = sources.noise_to_dict(frame.noise)
    if frame.twist is not None:
        reference, vector = frame.twist
        document["twist"] = {"reference": reference, "vector": numbers_to_list(vector)}
        if frame.twist_noise is not None:
            document["twist"]["noise"] = sources.noise_to_dict(frame.twist_noise)
    if frame.stamps is not None:
        document["stamps"] = stamps_to_dict(frame.stamps)
    return document | {
        "body": frame.body,
        "classes": list(frame.classes),
        "inertia": inertia_to_dict(frame.inertia),
        "joint": joint_to_dict(frame.joint),
        "name": frame.name,
        "parent": frame.parent,
        "pose": numbers_to_list(frame.pose.as_array()),
        "shapes": [_attached_to_dict(part) for part in frame.shapes],
    }


def attributes_to_dict(owner: graph.FrameSpecification | Group) -> Json:
    """Return the attributes of a frame or a group and their stamps, empty if there are none."""
    if not owner.attributes:
        return {}
    from tmkit.graph.attributes import plain_attributes  # few scenes have attributes

    tables = {
        "attributes": plain_attributes(owner.attributes),
        "attribute_stamps": plain_attributes(owner.attribute_stamps),
    }
    return {key: values for key, values in tables.items() if values}


def attributes_from_dict(node: JsonNode) -> Json | None:
    """Return the attributes of a frame or group with their stamps, or None if omitted."""
    if "attributes" not in node.table() and "attribute_stamps" not in node.table():
        return None
    values = node.get("attributes")
    attributes = {key: _attribute(values.get(key), key) for key in values.table()}
    if "attribute_stamps" not in node.table():
        return attributes
    stamps = node.get("attribute_stamps")
    return attributes | {
        key: Stamped(values.get(key).value, stamps.get(key).number()) for key in stamps.table()
    }


def _attribute(node: JsonNode, key: str) -> Any:
    from tmkit.graph.attributes import plain_attribute  # few scenes have attributes

    try:
        return plain_attribute(key, node.value)
    except SceneError as error:
        raise node.error(str(error)) from None


def frame_from_dict(
    node: JsonNode,
    shapes: Mapping[str, graph.Shape],
    sources: list[graph.NoiseSource],
    *,
    in_file: bool,
    note: Note,
) -> graph.FrameSpecification:
    """Return the frame of a JSON object.

    Args:
        node: JSON object.
        shapes: shapes of the document by key.
        sources: noise sources of the document.
        in_file: whether the document is a file. Only files may request the slow decomposition of a
            mesh into convex pieces.
        note: receives import notes.
    """
    node.require_keys_among(*_FRAME_KEYS)
    parent = node.get("parent")
    has_twist = "twist" in node.table()
    has_twist_noise = has_twist and "noise" in node.get("twist").table()
    return graph.FrameSpecification(
        node.get("name").name(),
        None if parent.value is None else parent.name(),
        pose=pose_from_dict(node.get("pose")),
        joint=joint_from_dict(node.get("joint")),
        body=node.get("body").name(),
        classes=[item.text() for item in node.get("classes").items()],
        shapes=[
            part
            for item in node.get("shapes").items()
            for part in _attached_from_dict(item, shapes, in_file)
        ],
    ).replace(
        inertia=inertia_from_dict(node.get("inertia"), node.get("name").name(), note),
        attributes=attributes_from_dict(node),
        twist=twist_from_dict(node.get("twist")) if has_twist else None,
        twist_noise=(
            noise_from_dict(node.get("twist").get("noise"), sources) if has_twist_noise else None
        ),
        stamps=_stamps_from_dict(node.get("stamps")) if "stamps" in node.table() else None,
        noise=noise_from_dict(node.get("noise"), sources) if "noise" in node.table() else None,
    )


def twist_from_dict(node: JsonNode) -> tuple[str, Sequence[float]]:
    """Return the reference body of a frame's twist, and the twist (6,)."""
    node.require_keys_among("noise", "reference", "vector")
    return node.get("reference").name(), node.get("vector").numbers(6)


def joint_to_dict(joint: graph.Joint) -> Json:
    """Return a joint as a JSON object."""
    if not joint.is_actuated:
        return {"type": joint.type if joint.is_stated else "unstated"}
    document: Json = {
        "axis": numbers_to_list(joint.axis),
        "mimic": None,
        "name": joint.name,
        "type": joint.type,
    }
    for key in (*_LIMITS, *_DYNAMICS):
        value = getattr(joint, key)
        document[key] = value if math.isfinite(value) else None
    if joint.mimic is not None:
        document["mimic"] = {
            key: getattr(joint.mimic, key) for key in ("joint", "multiplier", "offset")
        }
    return dict(sorted(document.items()))


def joint_from_dict(node: JsonNode) -> graph.Joint:
    """Return the joint of a JSON object."""
    kind = node.get("type").one_of(JOINT_TYPES)
    if kind in JOINTS_WITHOUT_VALUE:
        node.require_keys_among("type")
        return joint_of(JointSpec(kind))
    node.require_keys_among("axis", "mimic", "name", "type", *_LIMITS, *_DYNAMICS)
    rule = node.get("mimic")
    mimic = None
    if rule.value is not None:
        multiplier, offset = rule.get("multiplier").number(), rule.get("offset").number()
        mimic = graph.Mimic(rule.get("joint").text(), multiplier=multiplier, offset=offset)
    x, y, z = node.get("axis").numbers(3)
    numbers: dict[str, Any] = {
        key: node.get(key).limit(unlimited) for key, unlimited in _LIMITS.items()
    }
    numbers |= {key: node.get(key).number() for key in _DYNAMICS}
    spec = replace(JointSpec(kind, node.get("name").text(), (x, y, z)), **numbers)
    with locate_errors(node):
        return joint_of(spec, mimic=mimic)


def inertia_to_dict(inertia: graph.Inertia | None) -> Json | None:
    """Return an inertia as a JSON object, null for None."""
    if inertia is None:
        return None
    return {
        "center": numbers_to_list(inertia.center),
        "mass": inertia.mass,
        "matrix": numbers_to_list(inertia.matrix),
    }


def inertia_from_dict(node: JsonNode, frame: str, note: Note) -> graph.Inertia | None:
    """Return the inertia of a JSON object, None for null.

    Args:
        node: JSON object or null.
        frame: name of the frame, for notes.
        note: receives import notes; see :func:`inertia_or_point_mass`.
    """
    if node.value is None:
        return None
    node.require_keys_among("center", "mass", "matrix")
    matrix = np.reshape(node.get("matrix").numbers(9), (3, 3))
    mass, center = node.get("mass").number(), node.get("center").numbers(3)
    place = SourceLocation(node.path)
    with locate_errors(node):
        return inertia_or_point_mass(mass, center, matrix, frame=frame, place=place, note=note)


def _attached_to_dict(part: graph.AttachedShape) -> Json:
    optional = {
        key: value for key in ("level", "stamp") if (value := getattr(part, key)) is not None
    }
    return optional | {
        "collision": part.collision,
        "color": None if part.color is None else numbers_to_list(part.color),
        "friction": part.friction,
        "pose": numbers_to_list(part.pose.as_array()),
        "shape": part.shape.digest,
        "visual": part.visual,
    }


def _attached_from_dict(
    node: JsonNode, shapes: Mapping[str, graph.Shape], in_file: bool
) -> Sequence[graph.AttachedShape]:
    node.require_keys_among(
        "collision", "color", "friction", "level", "pose", "shape", "stamp", "visual"
    )
    digest = node.get("shape").text()
    if digest not in shapes:
        raise node.get("shape").error(f"no shape of digest '{digest}' in 'shapes'")
    color = None if node.get("color").value is None else node.get("color").numbers(4)
    visual, collision = node.get("visual").flag(), node.get("collision").flag()
    friction = None if node.get("friction").value is None else node.get("friction").number()
    levels = (*COLLISION_LEVELS, PIECES) if in_file else COLLISION_LEVELS
    level = node.get("level").one_of(levels) if "level" in node.table() else None
    stamp = node.get("stamp").number() if "stamp" in node.table() else None
    pose = pose_from_dict(node.get("pose"))
    with locate_errors(node):
        part = graph.AttachedShape(
            shapes[digest],
            pose,
            color=color,
            visual=visual,
            collision=collision,
            friction=friction,
            level=None if level == PIECES else level,
        ).replace(stamp=stamp)
        return (part,) if level != PIECES else split_mesh(part)


def numbers_to_list(values: Any) -> list[float]:
    """Return an array as a list of Python floats."""
    return [float(value) for value in np.asarray(values).reshape(-1)]


def pose_from_dict(node: JsonNode) -> Pose:
    """Return the pose of a list of seven numbers."""
    numbers = node.numbers(7)
    with locate_errors(node):
        pose = Pose.from_array(numbers)
    length = math.hypot(*numbers[3:])
    if abs(length - 1.0) > _UNIT_TOLERANCE:
        raise node.error(
            "expected a unit quaternion as the last four numbers, received one of length"
            f" {length:g}"
        )
    return pose


def stamps_to_dict(stamps: StampedPoses) -> dict[str, Any]:
    """Return the stamped poses of an edge as a JSON document."""
    rows: list[Json] = [
        {"pose": numbers_to_list(pose.as_array()), "stamp": stamp}
        for stamp, pose in zip(numbers_to_list(stamps.stamps), stamps.poses, strict=True)
    ]
    for row, covariance in zip(rows, stamps.covariances, strict=True):
        if covariance is not None:
            row["covariance"] = numbers_to_list(covariance)
    window = stamps.window if math.isfinite(stamps.window) else None
    return {"capacity": stamps.capacity, "poses": rows, "window": window}


def _stamps_from_dict(node: JsonNode) -> StampedPoses:
    node.require_keys_among("capacity", "poses", "window")
    rows = list(node.get("poses").items())
    for row in rows:
        row.require_keys_among("covariance", "pose", "stamp")
    capacity = node.get("capacity").number()
    if capacity != int(capacity) or not 0 < capacity < 2**31:
        raise node.get("capacity").error(f"expected a whole number above 0, received {capacity:g}")
    times = [row.get("stamp").number() for row in rows]
    poses = [pose_from_dict(row.get("pose")) for row in rows]
    covariances = [
        _covariance_from_dict(row.get("covariance")) if "covariance" in row.table() else None
        for row in rows
    ]
    window = node.get("window").limit(math.inf)
    with locate_errors(node):
        return StampedPoses(
            times, poses, covariances=covariances, capacity=int(capacity), window=window
        )


def _covariance_from_dict(node: JsonNode) -> np.ndarray:
    """Return the (6, 6) covariance of a list of 36 numbers."""
    matrix = np.reshape(node.numbers(36), (6, 6))
    with locate_errors(node):
        return GaussianPose(covariance=matrix).covariance


class SourceList:
    """Indices of the noise sources of a scene, in order of their first use."""

    def __init__(self) -> None:
        self._numbers: dict[graph.NoiseSource, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def noise_to_dict(self, noise: EdgeNoise) -> dict[str, Any]:
        """Return the noise of an edge as a JSON object."""
        numbers = {
            source: self._numbers.setdefault(source, len(self._numbers)) for source in noise.sources
        }
        terms = [
            {"map": numbers_to_list(noise.map(source)), "source": number}
            for source, number in numbers.items()
        ]
        return {"covariance": numbers_to_list(noise.covariance), "terms": terms}

    def to_list(self) -> list[dict[str, Any]]:
        """Return the sources as a list of JSON objects."""
        return [{"dimension": source.dimension, "label": source.label} for source in self._numbers]


def sources_from_dict(node: JsonNode) -> list[graph.NoiseSource]:
    """Return the noise sources of a JSON list."""
    sources = []
    for item in node.items():
        item.require_keys_among("dimension", "label")
        dimension = item.get("dimension").integer()
        if not 1 <= dimension <= MAX_SOURCE_DIMENSION:
            raise item.get("dimension").error(
                f"expected a number from 1 to {MAX_SOURCE_DIMENSION}, received {dimension}"
            )
        sources.append(graph.NoiseSource(dimension, item.get("label").text()))
    return sources


def noise_from_dict(node: JsonNode, sources: Sequence[graph.NoiseSource]) -> EdgeNoise:
    """Return the noise of an edge, from a JSON object and the sources of the document."""
    node.require_keys_among("covariance", "terms")
    maps: dict[graph.NoiseSource, Any] = {}
    for term in node.get("terms").items():
        term.require_keys_among("map", "source")
        number = term.get("source").integer()
        if not 0 <= number < len(sources):
            raise term.get("source").error(
                f"expected the number of a noise source, 0 to {len(sources) - 1}"
            )
        if sources[number] in maps:
            raise term.get("source").error(f"noise source {number} is given twice")
        dimension = sources[number].dimension
        maps[sources[number]] = np.reshape(term.get("map").numbers(6 * dimension), (6, dimension))
    covariance = np.reshape(node.get("covariance").numbers(36), (6, 6))
    with locate_errors(node):
        return EdgeNoise(maps, covariance=covariance)
