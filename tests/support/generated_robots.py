"""Random robots with few names, in every readable format; most of them have mistakes.

``world`` is one of the names.

A robot is drawn once and written in each format, as far as its words go. Most are invalid: a link
is the child of two joints or its own ancestor, a name is there twice, a joint mimics itself, limits
are the wrong way round.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

__all__ = ["FORMATS", "GeneratedJoint", "GeneratedRobot", "drawn_robot"]

_NAMES = ("a", "b", "c", "d", "world")
_KINDS = ("fixed", "revolute", "prismatic", "continuous", "floating")
_NUMBERS = (*[None, 0.0, -1.0, 1.0, 2.5] * 3, 1e300, math.inf, -math.inf, math.nan)


@dataclass(frozen=True)
class GeneratedJoint:
    """A joint between two links by name; ``mimic`` is a joint's name, empty for none."""

    name: str
    kind: str
    parent: str
    child: str
    lower: float | None
    upper: float | None
    mimic: str
    multiplier: float


@dataclass(frozen=True)
class GeneratedRobot:
    """Links by name, each with or without a shape, and joints."""

    links: tuple[tuple[str, bool], ...]
    joints: tuple[GeneratedJoint, ...]


def drawn_robot(random: Random) -> GeneratedRobot:
    """Return a robot: a tree with a few links changed for others, so that some are valid."""
    count = random.randint(1, 5)
    names = random.sample(_NAMES[: random.choice([-1, len(_NAMES)])], k=min(count, len(_NAMES) - 1))
    if random.random() < 0.2:
        names = [random.choice(_NAMES) for _ in range(count)]
    joints = []
    for index, child in enumerate(names):
        if index == 0 and random.random() < 0.9:
            continue
        parent = (
            names[random.randrange(max(index, 1))]
            if random.random() < 0.9
            else random.choice(_NAMES)
        )
        mimic = f"j{random.randrange(len(names))}" if random.random() < 0.3 else ""
        ends = [random.choice(_NUMBERS), random.choice(_NUMBERS)]
        if None not in ends and random.random() < 0.9:
            ends.sort(key=lambda end: (end != end, end))
        name = f"j{index}" if random.random() < 0.9 else random.choice(["j0", *_NAMES])
        kind = random.choice(_KINDS)
        joints.append(
            GeneratedJoint(
                name,
                kind,
                parent,
                child,
                ends[0],
                ends[1],
                mimic,
                random.choice([1.0, -2.0, 0.0, 1e-300]),
            )
        )
    links = tuple((name, random.random() < 0.5) for name in names)
    return GeneratedRobot(links, tuple(random.sample(joints, k=len(joints))))


def _attributes(values: Mapping[str, float | str | None]) -> str:
    return "".join(f' {key}="{value}"' for key, value in values.items() if value is not None)


def _urdf(robot: GeneratedRobot) -> str:
    shape = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
    lines = [
        f'<link name="{name}">{shape if is_solid else ""}</link>' for name, is_solid in robot.links
    ]
    for joint in robot.joints:
        mimic = (
            f'<mimic joint="{joint.mimic}" multiplier="{joint.multiplier}"/>' if joint.mimic else ""
        )
        limit = f"<limit{_attributes({'lower': joint.lower, 'upper': joint.upper})}/>"
        ends = f'<parent link="{joint.parent}"/><child link="{joint.child}"/>'
        lines.append(f'<joint name="{joint.name}" type="{joint.kind}">{ends}{limit}{mimic}</joint>')
    return '<robot name="r">\n' + "\n".join(lines) + "\n</robot>"


def _sdf(robot: GeneratedRobot) -> str:
    shape = (
        '<collision name="s"><geometry><sphere><radius>0.1</radius></sphere></geometry></collision>'
    )
    lines = [
        f'<link name="{name}">{shape if is_solid else ""}</link>' for name, is_solid in robot.links
    ]
    for joint in robot.joints:
        ends = f"<parent>{joint.parent}</parent><child>{joint.child}</child>"
        limits = {"lower": joint.lower, "upper": joint.upper}
        limit = "".join(
            f"<{key}>{value}</{key}>" for key, value in limits.items() if value is not None
        )
        mimic = (
            f'<mimic joint="{joint.mimic}"><multiplier>{joint.multiplier}</multiplier></mimic>'
            if joint.mimic
            else ""
        )
        kind = {"floating": "ball"}.get(joint.kind, joint.kind)
        axis = f"<axis><xyz>0 0 1</xyz><limit>{limit}</limit>{mimic}</axis>"
        lines.append(f'<joint name="{joint.name}" type="{kind}">{ends}{axis}</joint>')
    return '<sdf version="1.11"><model name="m">\n' + "\n".join(lines) + "\n</model></sdf>"


def _mjcf(robot: GeneratedRobot) -> str:
    """Write bodies in one another, the links of joints first."""
    below: dict[str, list[GeneratedJoint]] = {}
    for joint in robot.joints:
        below.setdefault(joint.parent, []).append(joint)
    kinds = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "floating": "free"}

    def body(name: str, joint: GeneratedJoint | None, depth: int) -> str:
        text = f'<body name="{name}"><geom size="0.1"/>'
        if joint is not None and joint.kind != "fixed":
            limits = (joint.lower, joint.upper)
            bounds = (
                f' range="{limits[0]} {limits[1]}"'
                if None not in limits and joint.kind != "continuous"
                else ""
            )
            text += f'<joint name="{joint.name}" type="{kinds[joint.kind]}"{bounds}/>'
        if depth < 8:
            text += "".join(body(other.child, other, depth + 1) for other in below.get(name, ()))
        return text + "</body>\n"

    children = {joint.child for joint in robot.joints}
    tops = "".join(body(name, None, 0) for name, _ in robot.links if name not in children)
    rules = "".join(
        f'<joint joint1="{joint.name}" joint2="{joint.mimic}" polycoef="0 {joint.multiplier} 0 0'
        ' 0"/>'
        for joint in robot.joints
        if joint.mimic
    )
    return f"<mujoco><worldbody>{tops}</worldbody><equality>{rules}</equality></mujoco>"


def _robray(robot: GeneratedRobot) -> str:
    above = {joint.child: joint for joint in robot.joints}
    lines = []
    for name, is_solid in robot.links:
        joint = above.get(name)
        words = f'parent "{joint.parent}"; ' if joint else ""
        if joint and joint.kind in ("revolute", "prismatic"):
            words += f'type {joint.kind}; axis [0, 0, 1]; variable "{joint.mimic or joint.name}"; '
            limits = {"lower": joint.lower, "upper": joint.upper}
            words += "".join(
                f"{key} {value}; " for key, value in limits.items() if value is not None
            )
        words += "geometry { shape sphere; radius 0.1; } " if is_solid else ""
        lines.append(f'frame "{name}" {{ {words}}}')
    return "\n".join(lines)


def _rsg(robot: GeneratedRobot) -> str:
    above = {joint.child: joint for joint in robot.joints}
    rows = "[1, 0, 0, 1 m], [0, 1, 0, 0 m], [0, 0, 1, 0 m], [0, 0, 0, 1]"
    value = (
        f"transforms {{ RigidTransform t {{ value HomogeneousTransformationMatrix ({rows}) }} }}"
    )
    lines = [f"Transform {name} {{ {value} }}" for name, _ in robot.links]
    lines += [f"Group {joint.parent} {{ {name} }}" for name, joint in above.items()]
    return "\n".join(lines)


def _json(robot: GeneratedRobot) -> str:
    above = {joint.child: joint for joint in robot.joints}
    frames = []
    for name, _ in robot.links:
        joint = above.get(name)
        edge: dict[str, object] = {"type": "fixed"}
        if joint and joint.kind in ("revolute", "prismatic"):
            mimic = (
                {"joint": joint.mimic, "multiplier": joint.multiplier, "offset": 0.0}
                if joint.mimic
                else None
            )
            limits = {"lower": joint.lower, "upper": joint.upper, "velocity": None, "effort": None}
            edge = {
                "type": joint.kind,
                "name": joint.name,
                "axis": [0, 0, 1],
                "mimic": mimic,
                **limits,
            }
            edge |= {"damping": 0.0, "friction": 0.0}
        pose = [0.0] * 6 + [1.0]
        common = {"body": name, "classes": [], "inertia": None, "shapes": []}
        frames.append(
            {
                "name": name,
                "parent": joint.parent if joint else None,
                "pose": pose,
                "joint": edge,
                **common,
            }
        )
    return json.dumps(
        {"format": "tmkit-scene", "version": 1, "frames": frames, "allowed": [], "shapes": {}}
    )


def _gltf(robot: GeneratedRobot) -> str:
    names = [name for name, _ in robot.links]
    children: dict[str, list[int]] = {}
    for joint in robot.joints:
        children.setdefault(joint.parent, []).append(names.index(joint.child))
    nodes = [
        {"name": name, **({"children": children[name]} if name in children else {})}
        for name in names
    ]
    tops = [
        index
        for index, name in enumerate(names)
        if name not in {joint.child for joint in robot.joints}
    ]
    return json.dumps(
        {
            "asset": {"version": "2.0"},
            "scene": 0,
            "scenes": [{"nodes": tops or [0]}],
            "nodes": nodes,
        }
    )


def _usda(robot: GeneratedRobot) -> str:
    lines = [
        "#usda 1.0",
        '(\ndefaultPrim = "World"\nupAxis = "Z"\nmetersPerUnit = 1\n)',
        'def Xform "World" {',
    ]
    for name, is_solid in robot.links:
        sphere = (
            'def Sphere "s" (\nprepend apiSchemas = ["PhysicsCollisionAPI"]\n) {\ndouble radius ='
            " 0.1\n}"
        )
        schema = 'prepend apiSchemas = ["PhysicsRigidBodyAPI"]'
        lines.append(f'def Xform "{name}" (\n{schema}\n) {{\n{sphere if is_solid else ""}\n}}')
    for index, joint in enumerate(robot.joints):
        kind = {"continuous": "Revolute", "floating": "Spherical"}.get(
            joint.kind, joint.kind.capitalize()
        )
        words = (
            f"rel physics:body0 = </World/{joint.parent}>\nrel physics:body1 ="
            f" </World/{joint.child}>\n"
        )
        if kind in ("Revolute", "Prismatic"):
            words += 'uniform token physics:axis = "Z"\n'
            limits = {"lower": joint.lower, "upper": joint.upper}
            words += "".join(
                f"float physics:{key}Limit = {value}\n"
                for key, value in limits.items()
                if value is not None
            )
            if joint.mimic:
                words += f'custom string tmkit:mimic = "{joint.mimic}"\n'
        lines.append(
            f'def Physics{kind}Joint "joint_{index}" {{\n{words}custom string tmkit:joint ='
            f' "{joint.name}"\n}}'
        )
    return "\n".join([*lines, "}"])


def _srdf(robot: GeneratedRobot) -> str:
    """Write groups, states and pairs of a robot, beside the robot itself."""
    lines = [
        f'<disable_collisions link1="{link}" link2="{other}"/>'
        for link, _ in robot.links
        for other, _ in robot.links[:2]
        if link != other
    ]
    for joint in robot.joints:
        ends = f'<chain base_link="{joint.parent}" tip_link="{joint.child}"/>'
        lines.append(f'<group name="{joint.child}">{ends}<group name="{joint.parent}"/></group>')
        value = f'<joint name="{joint.name}" value="{joint.upper}"/>'
        lines.append(f'<group_state name="s" group="{joint.child}">{value}</group_state>')
        lines.append(
            f'<virtual_joint name="v{joint.mimic}" type="floating" parent_frame="world"'
            f' child_link="{joint.child}"/>'
        )
    lines += [
        f'<disable_default_collisions link="{name}"/>' for name, is_solid in robot.links if is_solid
    ]
    return '<robot name="r">' + "\n".join(lines) + "</robot>"


FORMATS: Mapping[str, Callable[[GeneratedRobot], str]] = {
    "urdf": _urdf,
    "sdf": _sdf,
    "xml": _mjcf,
    "robray": _robray,
    "rsg": _rsg,
    "json": _json,
    "gltf": _gltf,
    "usda": _usda,
    "srdf": _srdf,
}
"""Writers by suffix; a robot in SRDF is read with the same in URDF."""
