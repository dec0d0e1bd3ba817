"""One frame of a scene as JSON, and back: its joint, its mass, the shapes on it, how it moves.

Numbers read back to the same bits; unlimited limits are null. A shape is named by its content digest, and stands
elsewhere in the document, once (:mod:`tmkit.formats.json.shapes`). What few frames have (attributes, twists, stamps,
errors) is said only where there is something to say.

Invariants: reading what was written gives an equal frame; a document that is wrong is refused at the value that is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tmkit._support.source_location import reported
from tmkit.formats.json.poses import (
    SourceList,
    noise_from_dict,
    numbers_to_list,
    pose_from_dict,
    stamps_from_dict,
    stamps_to_dict,
)
from tmkit.formats.json.reading import JsonNode
from tmkit.formats.spec.model import JointSpec
from tmkit.formats.spec.values import joint_of
from tmkit.graph import AttachedShape, Fixed, FrameSpecification, Free, Inertia, Joint, Mimic, NoiseSource, Shape

COLLISION_LEVELS = ("box", "hull", "exact")
_LIMITS = {"lower": -math.inf, "upper": math.inf, "velocity": math.inf, "effort": math.inf}  # null: unlimited
_DYNAMICS = ("damping", "friction")
JOINT_TYPES = ("fixed", "revolute", "continuous", "prismatic", "free")

Json = dict[str, Any]


def frame_to_dict(frame: FrameSpecification, sources: SourceList) -> Json:
    """Return a frame as a JSON object.

    Args:
        frame: the frame.
        sources: list of noise sources, to which those of the frame are added.
    """
    document: Json = {}
    if attributes := frame.attributes:
        from pyrsistent import thaw  # few scenes have attributes

        document["attributes"] = thaw(attributes)
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
        "body": frame.body, "classes": list(frame.classes), "inertia": _inertia_to_dict(frame.inertia),
        "joint": joint_to_dict(frame.joint), "name": frame.name, "parent": frame.parent,
        "pose": numbers_to_list(frame.pose.as_array()), "shapes": [_attached_to_dict(part) for part in frame.shapes],
    }  # fmt: skip


def frame_from_dict(node: JsonNode, shapes: Mapping[str, Shape], sources: list[NoiseSource]) -> FrameSpecification:
    """Return the frame of a JSON object.

    Args:
        node: the object.
        shapes: the document's shapes by digest.
        sources: the document's noise sources, in order.

    Raises:
        FileFormatError: something is missing, unknown, or refused by the core; said at its value.
    """
    known = ("attributes", "body", "classes", "inertia", "joint", "name", "noise", "parent", "pose", "shapes", "stamps")
    node.only(*known, "twist")
    parent = node.get("parent")
    moves = "twist" in node.table()
    is_uncertain = moves and "noise" in node.get("twist").table()
    return FrameSpecification(
        node.get("name").name(),
        None if parent.value is None else parent.name(),
        pose=pose_from_dict(node.get("pose")),
        joint=_joint_from_dict(node.get("joint")),
        body=node.get("body").name(),
        classes=[item.text() for item in node.get("classes").items()],
        shapes=[_attached_from_dict(item, shapes) for item in node.get("shapes").items()],
        inertia=_inertia_from_dict(node.get("inertia")),
        attributes=node.get("attributes").table() if "attributes" in node.table() else None,
        twist=_twist_from_dict(node.get("twist")) if moves else None,
        twist_noise=noise_from_dict(node.get("twist").get("noise"), sources) if is_uncertain else None,
        stamps=stamps_from_dict(node.get("stamps")) if "stamps" in node.table() else None,
        noise=noise_from_dict(node.get("noise"), sources) if "noise" in node.table() else None,
    )


def _twist_from_dict(node: JsonNode) -> tuple[str, Sequence[float]]:
    node.only("noise", "reference", "vector")
    return node.get("reference").name(), node.get("vector").numbers(6)


def joint_to_dict(joint: Joint) -> Json:
    """Return a joint as a JSON object."""
    if joint.type in ("fixed", "free"):
        return {"type": joint.type}
    document: Json = {"axis": numbers_to_list(joint.axis), "mimic": None, "name": joint.name, "type": joint.type}
    for key in (*_LIMITS, *_DYNAMICS):
        value = getattr(joint, key)
        document[key] = value if math.isfinite(value) else None
    if joint.mimic is not None:
        document["mimic"] = {key: getattr(joint.mimic, key) for key in ("joint", "multiplier", "offset")}
    return dict(sorted(document.items()))


def _joint_from_dict(node: JsonNode) -> Joint:
    kind = node.get("type").one_of(JOINT_TYPES)
    if kind in ("fixed", "free"):
        node.only("type")
        return Fixed() if kind == "fixed" else Free()
    node.only("axis", "mimic", "name", "type", *_LIMITS, *_DYNAMICS)
    rule = node.get("mimic")
    mimic = None
    if rule.value is not None:
        multiplier, offset = rule.get("multiplier").number(), rule.get("offset").number()
        mimic = Mimic(rule.get("joint").text(), multiplier=multiplier, offset=offset)
    x, y, z = node.get("axis").numbers(3)
    numbers: dict[str, Any] = {key: node.get(key).limit(unlimited) for key, unlimited in _LIMITS.items()}
    numbers |= {key: node.get(key).number() for key in _DYNAMICS}
    spec = replace(JointSpec(kind, node.get("name").text(), (x, y, z)), **numbers)
    with reported(node):
        return joint_of(spec, mimic=mimic)


def _inertia_to_dict(inertia: Inertia | None) -> Json | None:
    if inertia is None:
        return None
    return {"center": numbers_to_list(inertia.center), "mass": inertia.mass, "matrix": numbers_to_list(inertia.matrix)}


def _inertia_from_dict(node: JsonNode) -> Inertia | None:
    if node.value is None:
        return None
    node.only("center", "mass", "matrix")
    matrix = np.reshape(node.get("matrix").numbers(9), (3, 3))
    with reported(node):
        return Inertia(node.get("mass").number(), node.get("center").numbers(3), matrix=matrix)


def _attached_to_dict(part: AttachedShape) -> Json:
    level = {} if part.level is None else {"level": part.level}
    return level | {
        "collision": part.collision, "color": None if part.color is None else numbers_to_list(part.color),
        "friction": part.friction, "pose": numbers_to_list(part.pose.as_array()), "shape": part.shape.digest,
        "visual": part.visual,
    }  # fmt: skip


def _attached_from_dict(node: JsonNode, shapes: Mapping[str, Shape]) -> AttachedShape:
    node.only("collision", "color", "friction", "level", "pose", "shape", "visual")
    digest = node.get("shape").text()
    if digest not in shapes:
        raise node.get("shape").error(f"no shape of digest '{digest}' in 'shapes'")
    color = None if node.get("color").value is None else node.get("color").numbers(4)
    visual, collision = node.get("visual").flag(), node.get("collision").flag()
    friction = None if node.get("friction").value is None else node.get("friction").number()
    level = node.get("level").one_of(COLLISION_LEVELS) if "level" in node.table() else None
    pose = pose_from_dict(node.get("pose"))
    with reported(node):
        return AttachedShape(
            shapes[digest], pose, color=color, visual=visual, collision=collision, friction=friction, level=level
        )
