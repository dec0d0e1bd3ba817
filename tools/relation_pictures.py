"""Draw the pictures of relations and of the rules of edges in the documentation.

Run by hand, where the words or the pictures change: ``python tools/relation_pictures.py [--out
docs/images]``.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import tmkit as tk
from tmkit.graph import SceneGraph, add_edge, add_twist, relate
from tmkit.graph.semantic_edges.edges import Node
from tmkit.relations import (
    AngularVelocityCoord,
    ForceCoord,
    LinearVelocityCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    SemanticTwist,
    TorqueCoord,
    TwistCoord,
    WrenchCoord,
)
from tmkit.relations.semantic.base import SemanticRelation
from tmkit.visualization.drawing import Drawing, Label, Line, Mark, save_drawings
from tmkit.visualization.graph_picture import Rejection, semantics_graph_drawing, try_edge
from tmkit.visualization.relation_picture import Viewpoint, relation_drawing, semantics_drawing

ROOT = Path(__file__).resolve().parent.parent


def frame(name: str) -> Node:
    """Return the node of a frame."""
    return Node("frame", name)


def body(name: str) -> Node:
    """Return the node of a body."""
    return Node("body", name)


def pose_pictures() -> list[Drawing]:
    """Draw the six pieces of a pose, and how they come in pairs where frames are used."""
    return [
        semantics_drawing(PoseCoord("(e,[a])|C", "(f,[b])|D", "[r]")),
        semantics_drawing(PoseCoord("{g}|C", "{h}|D", "[h]")),
    ]


def relation_pictures() -> list[Drawing]:
    """Draw the nine relations."""
    coords = [
        PositionCoord("e|C", "f|D", "[r]"),
        OrientationCoord("[a]|C", "[b]|D", "[r]"),
        PoseCoord("{g}|C", "{h}|D", "[h]"),
        LinearVelocityCoord("e|C", "D", "[r]"),
        AngularVelocityCoord("C", "D", "[r]"),
        TwistCoord("e|C", "D", "[r]"),
        ForceCoord("C", "D", "[r]"),
        TorqueCoord("e|C", "D", "[r]"),
        WrenchCoord("e|C", "D", "[r]"),
    ]
    return [dataclasses.replace(semantics_drawing(coord), caption=()) for coord in coords]


def turning_body() -> SceneGraph:
    """Return a body C that moves past a body D: g is a frame of it, e a corner."""
    scene = (
        SceneGraph(root=None)
        .add_body("D")
        .add_body("C")
        .add_root("d", body="D")
        .add_root("g", body="C")
    )
    scene = scene.attach("g", "d", pose=tk.Pose.from_rpy([0.8, 0.3, 0.0], [0.0, 0.0, 0.5]))
    scene = scene.add_frame("e", "g", pose=tk.Pose([0.3, 0.25, 0.0]), body="C")
    return add_twist(
        scene, SemanticTwist(TwistCoord("g|C", "D", "[d]"), [-0.1, 0.9, 0.0, 0.0, 0.0, 1.0])
    )


def point_pictures() -> list[Drawing]:
    """Draw one motion as four twists: of three points, and in two sets of axes."""
    scene = turning_body()
    pose_twist = relate(scene, TwistCoord("g|C", "D", "[d]"))
    to_corner = relate(scene, PositionCoord("e|C", "g|C", "[d]"))
    shown: list[tuple[str, list[SemanticRelation]]] = [
        ("pose twist", [pose_twist]),
        ("pose twist at another point", [pose_twist.change_point(to_corner), to_corner]),
        ("screw twist", [relate(scene, TwistCoord("d|C", "D", "[d]"))]),
        ("body-fixed twist", [relate(scene, TwistCoord("g|C", "D", "[g]"))]),
    ]
    drawings = []
    for name, relations in shown:
        twist = relations[0]
        v, w = twist.numbers
        drawings.append(
            relation_drawing(
                scene,
                relations,
                viewpoint=Viewpoint(azimuth=-math.pi / 2, elevation=math.radians(65.0), size=1.1),
                frames=["d", "g", "e"],
                title=f"{name}: TwistCoord({', '.join(twist.coord.notation())})",
                caption=[f"v = {_numbers(v)} m/s, ω = {_numbers(w)} rad/s"],
            )
        )
    return drawings


def _numbers(vector: np.ndarray) -> str:
    return "(" + ", ".join(f"{round(float(number), 3) + 0.0:g}" for number in vector) + ")"


def bodies(frames: Mapping[str, Sequence[str]]) -> SceneGraph:
    """Return a scene of bodies with frames that nothing joins yet."""
    scene = SceneGraph(root=None)
    for name, on in frames.items():
        scene = scene.add_body(name)
        for each in on:
            scene = scene.add_root(each, body=name)
    return scene


def rejection(kind: str, name: str, scene: SceneGraph, *, rule: str, on: str = "") -> Rejection:
    """Return the rejection of a node."""
    try:
        if kind == "body":
            scene.add_body(name)
        else:
            scene.add_root(name, body=on)
    except tk.TmkitError as error:
        return Rejection(
            "body" if kind == "body" else "frame", str(error), Node("frame", name), rule=rule
        )
    raise ValueError(f"the scene accepts {kind} {name}")


def node_pictures() -> list[Drawing]:
    """Draw valid and rejected bodies and frames."""
    scene = bodies({"A": ["a"], "C": ["c1", "c2"], "E": ["f"]})
    rejections = [
        rejection("body", "E", scene, rule="N1"),
        rejection("frame", "a", scene, rule="N2", on="C"),
    ]
    scene = scene.add_root("z")
    drawing = semantics_graph_drawing(scene, rejections=rejections, title="Bodies and frames")
    note = "N3: a frame without a body is on a body of its own name: {z}"
    return [dataclasses.replace(drawing, caption=(*drawing.caption, note))]


def pose_graph_pictures() -> list[Drawing]:
    """Draw valid and rejected pose edges."""
    few = bodies({"D": ["h"], "C": ["g"]})
    few = add_edge(few, "pose", tail=frame("h"), head=frame("g"), value=tk.Pose([0.3, 0.0, 0.0]))
    kinds = [(body("D"), frame("g")), (frame("h"), body("C")), (body("D"), body("C"))]
    rejections = [try_edge(few, "pose", tail=tail, head=head, rule="PE1") for tail, head in kinds]
    positions = {"D": (0.0, 0.0), "C": (4.2, 0.0)}
    first = semantics_graph_drawing(
        few, rejections=rejections, places=positions, has_notation=True, title="Ends of a pose edge"
    )

    scene = bodies({"A": ["a"], "B": ["b2", "b1"], "C": ["c1", "c2"], "D": ["d"], "F": ["f"]})
    for tail, head in (("a", "b2"), ("b2", "b1"), ("b1", "c1"), ("d", "c2")):
        scene = add_edge(
            scene, "pose", tail=frame(tail), head=frame(head), value=tk.Pose([0.1, 0.0, 0.0])
        )
    rejections = [
        try_edge(scene, "pose", tail=frame("b2"), head=frame("b1")),
        try_edge(scene, "pose", tail=frame("f"), head=frame("c2")),
        try_edge(scene, "pose", tail=frame("d"), head=frame("a")),
        try_edge(scene, "pose", tail=frame("c1"), head=frame("a")),
    ]
    places = {
        "A": (0.0, 0.0),
        "B": (0.0, -2.1),
        "C": (0.0, -4.2),
        "D": (3.0, -2.1),
        "F": (3.6, -4.2),
    }
    return [
        first,
        semantics_graph_drawing(
            scene, rejections=rejections, places=places, title="At most one path of poses"
        ),
    ]


def twist_graph_pictures() -> list[Drawing]:
    """Draw valid and rejected twist edges."""
    few = bodies({"D": ["h"], "C": ["g"]})
    few = add_edge(few, "twist", tail=body("D"), head=frame("g"), value=np.zeros(6))
    kinds = [(frame("h"), frame("g")), (body("D"), body("C")), (frame("h"), body("C"))]
    rejections = [try_edge(few, "twist", tail=tail, head=head, rule="TE1") for tail, head in kinds]
    positions = {"D": (0.0, 0.0), "C": (4.2, 0.0)}
    first = semantics_graph_drawing(
        few,
        rejections=rejections,
        places=positions,
        has_notation=True,
        title="Ends of a twist edge",
    )

    scene = bodies({"A": ["a"], "D": ["d"], "F": ["f"], "C": ["c3", "c1", "c2"]})
    scene = add_edge(
        scene, "pose", tail=frame("c1"), head=frame("c3"), value=tk.Pose([0.1, 0.0, 0.0])
    )
    for tail, head in (("A", "c1"), ("D", "c2")):
        scene = add_edge(scene, "twist", tail=body(tail), head=frame(head), value=np.zeros(6))
    rejections = [
        try_edge(scene, "twist", tail=body("F"), head=frame("c2")),
        try_edge(scene, "twist", tail=body("A"), head=frame("c3")),
        try_edge(scene, "twist", tail=body("C"), head=frame("a")),
    ]
    places = {"A": (-1.2, 0.0), "D": (1.2, 0.0), "F": (3.4, 0.0), "C": (0.4, -3.0)}
    return [
        first,
        semantics_graph_drawing(
            scene, rejections=rejections, places=places, title="At most one path of twists"
        ),
    ]


def motion_pictures() -> list[Drawing]:
    """Draw the motions of a frame for three meanings of a constant twist."""
    start = tk.Pose.from_rpy([0.7, 0.0, 0.0], [0.0, 0.0, 0.6])
    linear, turn, seconds = np.array([0.35, 0.5, 0.0]), 0.9, 2.2

    def body_fixed(t: float) -> tk.Pose:
        return start @ tk.Pose.exp([*(linear * t), 0.0, 0.0, turn * t])

    def screw(t: float) -> tk.Pose:
        return tk.Pose.exp([*(linear * t), 0.0, 0.0, turn * t]) @ start

    def pose_twist(t: float) -> tk.Pose:
        turned = tk.Pose.from_rpy([0.0, 0.0, 0.0], [0.0, 0.0, turn * t])
        return tk.Pose(start.translation + linear * t, (turned @ start).quat_xyzw)

    cases = [
        (body_fixed, "constant TwistCoord(o1|O1, B1, [o1])", "T exp(ξ t)"),
        (screw, "constant TwistCoord(b1|O1, B1, [b1])", "exp(ξ t) T"),
        (
            pose_twist,
            "constant TwistCoord(o1|O1, B1, [b1])",
            "rejected: point and axes are of two frames",
        ),
    ]
    drawings = []
    for number, (motion, title, caption) in enumerate(cases):
        path = np.array([motion(t).translation[:2] for t in np.linspace(0.0, seconds, 60)])
        color = "#c2262e" if number == 2 else "#1d7f4e"
        marks: list[Mark] = [Line("path of o1", path, color, is_dashed=number == 2)]
        for t in np.linspace(0.0, seconds, 6):
            marks += _flat_frame(motion(t), "" if t > 0.0 else "{o1}|O1")
        marks += _flat_frame(tk.Pose(), "{b1}|B1")
        drawings.append(Drawing(tuple(marks), title=title, caption=(caption,), largest_unit=1.35))
    return drawings


def _flat_frame(pose: tk.Pose, text: str) -> list[Mark]:
    """Return the x and y axes of a frame, seen from above."""
    origin = pose.translation[:2]
    tips = [pose.apply(0.22 * axis)[:2] for axis in np.eye(3)[:2]]
    axes: list[Mark] = [
        Line("axis", np.array([origin, tip]), color, width=2.0, has_head=True)
        for tip, color in zip(tips, ("#d03a3a", "#3f9142"), strict=True)
    ]
    return [*axes, Label(text, origin, text, offset=(5.0, -9.0))] if text else axes


def painting_pictures() -> list[Drawing]:
    """Draw the graph of the example of spray painting."""
    scene = runpy.run_path(str(ROOT / "examples" / "spray_painting.py"))["build"]()
    places = {
        "B": (0.0, 0.0),
        "E": (3.2, 0.0),
        "O2": (6.4, 0.0),
        "C": (0.0, -2.0),
        "O1": (4.0, -2.0),
    }
    return [semantics_graph_drawing(scene, places=places)]


PICTURES = {
    "relations_pose": (pose_pictures, 2, 4.2),
    "relations_nine": (relation_pictures, 3, 3.1),
    "relations_point": (point_pictures, 2, 4.2),
    "relations_motions": (motion_pictures, 3, 3.2),
    "relations_nodes": (node_pictures, 1, 6.0),
    "relations_pose_edges": (pose_graph_pictures, 2, 4.6),
    "relations_twist_edges": (twist_graph_pictures, 2, 4.6),
    "relations_painting": (painting_pictures, 1, 6.5),
}


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    folder = parser.parse_args().out
    for name, (drawn, columns, width) in PICTURES.items():
        path = save_drawings(drawn(), folder / f"{name}.png", columns=columns, width=width)
        sys.stdout.write(f"{path} {path.stat().st_size}\n")


if __name__ == "__main__":
    main()
