"""Pictures of relations and of a scene's edges, checked by their marks."""

from __future__ import annotations

import importlib.util
import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image
from support.effort import scaled_examples

import tmkit as tk
from tmkit.errors import MissingExtraError, OutputError, TmkitError, UnknownNameError
from tmkit.graph import SceneGraph, add_edge, add_twist, relate
from tmkit.graph.semantic_edges.edges import Node
from tmkit.relations import (
    AngularVelocityCoord,
    ForceCoord,
    LinearVelocityCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    SemanticError,
    SemanticTwist,
    SemanticWrench,
    TorqueCoord,
    TwistCoord,
    WrenchCoord,
)
from tmkit.relations.semantics import Coord
from tmkit.visualization import draw_semantics_graph
from tmkit.visualization.drawing import Area, Cross, Dot, Drawing, Label, Line, save_drawings
from tmkit.visualization.graph_picture import semantics_graph_drawing, try_edge
from tmkit.visualization.relation_picture import (
    Viewpoint,
    draw_relations,
    draw_semantics,
    relation_drawing,
    semantics_drawing,
)

ROOT = Path(__file__).resolve().parents[2]
NINE = {
    PositionCoord("e|C", "f|D", "[r]"): {"e|C", "f|D", "[r]", "C", "D", "p"},
    OrientationCoord("[a]|C", "[b]|D", "[r]"): {"[a]|C", "[b]|D", "[r]", "C", "D", "R"},
    PoseCoord("(e,[a])|C", "(f,[b])|D", "[r]"): {
        "e|C",
        "[a]|C",
        "f|D",
        "[b]|D",
        "[r]",
        "C",
        "D",
        "p",
        "R",
    },
    PoseCoord("{g}|C", "{h}|D", "[h]"): {"{g}|C", "{h}|D, [h]", "C", "D", "p", "R"},
    LinearVelocityCoord("e|C", "D", "[r]"): {"e|C", "[r]", "C", "D", "v(e)"},
    AngularVelocityCoord("C", "D", "[r]"): {"[r]", "C", "D", "ω"},
    TwistCoord("g|C", "D", "[g]"): {"g|C, [g]", "C", "D", "v(g)", "ω"},
    ForceCoord("C", "D", "[r]"): {"[r]", "C", "D", "f"},
    TorqueCoord("e|C", "D", "[r]"): {"e|C", "[r]", "C", "D", "τ(e)"},
    WrenchCoord("e|C", "D", "[r]"): {"e|C", "[r]", "C", "D", "f", "τ(e)"},
}


def texts(drawing: Drawing) -> set[str]:
    """Return the texts of a drawing."""
    return {mark.text for mark in drawing.marks if isinstance(mark, Label)}


def line(drawing: Drawing, meaning: str) -> Line:
    """Return the one line that stands for something."""
    (match,) = (
        mark for mark in drawing.marks if isinstance(mark, Line) and mark.meaning == meaning
    )
    return match


@pytest.mark.parametrize("coord", NINE, ids=str)
def test_the_words_of_coordinates_are_drawn(coord: Coord) -> None:
    """Every point, frame and body has its label in the papers' notation; the caption explains."""
    drawing = semantics_drawing(coord)
    assert texts(drawing) == NINE[coord]
    assert drawing.title == f"{type(coord).__name__}({', '.join(coord.notation())})"
    for name in coord.fields:
        assert f" {getattr(coord, name)}" in drawing.caption[0]
    assert drawing.meanings(Area) == ("body D", "body C")


def test_a_relation_inside_a_body_is_drawn_on_one() -> None:
    """A body that is its own reference has one outline."""
    assert semantics_drawing(PoseCoord("{g}|C", "{h}|C", "[h]")).meanings(Area) == ("body C",)


def moving_scene() -> SceneGraph:
    """Return two frames of body C on body D, and how C moves."""
    scene = (
        SceneGraph(root=None)
        .add_body("D")
        .add_body("C")
        .add_root("d", body="D")
        .add_root("g", body="C")
    )
    scene = scene.attach("g", "d", pose=tk.Pose.from_rpy([0.8, 0.3, 0.1], [0.1, 0.2, 0.5]))
    scene = scene.add_frame("e", "g", pose=tk.Pose([0.3, 0.2, 0.0]), body="C")
    return add_twist(
        scene, SemanticTwist(TwistCoord("g|C", "D", "[d]"), [0.1, 0.2, 0.3, 0.0, 0.0, 1.0])
    )


ABOVE = Viewpoint(azimuth=-math.pi / 2, elevation=math.pi / 2)


def test_arrows_begin_and_end_where_the_scene_has_their_points() -> None:
    """Looked at from above, the plane of the drawing is that of x and y of the root."""
    scene = moving_scene()
    position = PositionCoord("e|C", "d|D", "[d]")
    drawing = relation_drawing(scene, [position], viewpoint=ABOVE)
    arrow = line(drawing, f"Position of PositionCoord({', '.join(position.notation())})")
    np.testing.assert_allclose(
        arrow.points, [[0.0, 0.0], scene.pose("e", relative_to="d").translation[:2]], atol=1e-12
    )
    assert arrow.has_head
    dots = {mark.meaning: mark.center for mark in drawing.marks if isinstance(mark, Dot)}
    np.testing.assert_allclose(
        dots["point e"], scene.pose("e", relative_to="d").translation[:2], atol=1e-12
    )


def test_velocities_are_turned_into_the_plane_and_in_proportion() -> None:
    """Arrows of two velocities in different axes have the directions and ratio of the scene."""
    scene = moving_scene()
    coords = [LinearVelocityCoord("g|C", "D", "[g]"), LinearVelocityCoord("e|C", "D", "[d]")]
    drawing = relation_drawing(scene, coords, viewpoint=ABOVE)
    drawn = [
        line(drawing, f"LinearVelocity of LinearVelocityCoord({', '.join(c.notation())})").points
        for c in coords
    ]
    steps = [points[1] - points[0] for points in drawn]
    in_root = [
        relate(scene, LinearVelocityCoord(f"{p}|C", "D", "[d]")).numbers[0][:2] for p in ("g", "e")
    ]
    np.testing.assert_allclose(
        steps[0] * np.linalg.norm(in_root[1]), in_root[0] * np.linalg.norm(steps[1]), atol=1e-9
    )
    np.testing.assert_allclose(
        drawn[1][0], scene.pose("e", relative_to="d").translation[:2], atol=1e-12
    )


def test_turning_goes_round_its_axis_by_the_right_hand() -> None:
    """Seen from above, a turn about z goes from x to y; a body that does not turn has no arc."""
    scene = moving_scene()
    drawing = relation_drawing(scene, [AngularVelocityCoord("C", "D", "[d]")], viewpoint=ABOVE)
    ring = line(drawing, "AngularVelocity of AngularVelocityCoord(C, D, [d])").points
    middle = (ring[0] + ring[25]) / 2  # half a turn on
    first, second = ring[0] - middle, ring[3] - middle
    assert first[0] * second[1] - first[1] * second[0] > 0.0
    still = add_twist(scene, SemanticTwist(TwistCoord("g|C", "D", "[g]"), np.zeros(6)))
    assert not any(
        "Angular" in what
        for what in relation_drawing(still, [TwistCoord("g|C", "D", "[g]")]).meanings(Line)
    )


def test_wrenches_are_drawn_from_their_numbers() -> None:
    """A scene has no forces: coordinates without numbers are rejected, with the repair."""
    scene = moving_scene()
    coord = WrenchCoord("e|C", "D", "[d]")
    drawing = relation_drawing(
        scene,
        [SemanticWrench(coord, [1.0, 0.0, 0.0, 0.0, 0.0, 2.0])],
        viewpoint=ABOVE,
        frames=["g"],
    )
    force = line(drawing, "Force of WrenchCoord(e|C, D, [d])").points
    assert force[1][0] > force[0][0]
    assert force[1][1] == pytest.approx(force[0][1])
    assert {"f", "τ(e)", "g"} <= texts(drawing)
    with pytest.raises(
        SemanticError, match=r"forces are drawn from their numbers .* give a SemanticWrench"
    ):
        relation_drawing(scene, [coord])
    with pytest.raises(UnknownNameError, match="nobody"):
        relation_drawing(scene, [PositionCoord("nobody|C", "d|D", "[d]")])


# ------------------------------------------------------------------------------------------- graphs


def test_poses_are_solid_and_twists_dashed() -> None:
    """Every edge of the scene is an arrow from tail to head, every body a box around its frames."""
    drawing = semantics_graph_drawing(moving_scene(), has_notation=True)
    pose, twist = (
        line(drawing, "pose edge from frame 'd' to frame 'g'"),
        line(drawing, "twist edge from body 'D' to frame 'g'"),
    )
    assert (pose.is_dashed, twist.is_dashed) == (False, True)
    assert {
        "PoseCoord({g}|C, {d}|D, [d])",
        "TwistCoord(g|C, D, [g])",
        "PoseCoord({e}|C, {g}|C, [g])",
    } <= texts(drawing)
    assert drawing.meanings(Area) == ("body D", "body C", "frame {d}", "frame {g}", "frame {e}")
    outlines = {mark.meaning: mark.outline for mark in drawing.marks if isinstance(mark, Area)}
    for frame, body in (("d", "D"), ("g", "C"), ("e", "C")):
        assert (
            outlines[f"frame {{{frame}}}"].min(axis=0) > outlines[f"body {body}"].min(axis=0)
        ).all()
        assert (
            outlines[f"frame {{{frame}}}"].max(axis=0) < outlines[f"body {body}"].max(axis=0)
        ).all()


def test_rejected_edges_are_crossed_out_with_the_message_of_the_scene() -> None:
    """An edge that breaks a rule is drawn in red with a cross, and the caption has the reason."""
    scene = moving_scene().add_body("F").add_root("f", body="F")
    rejection = try_edge(
        scene, "pose", tail=Node("frame", "f"), head=Node("frame", "g"), rule="PE3"
    )
    drawing = semantics_graph_drawing(scene, rejections=[rejection])
    assert drawing.meanings(Cross) == ("rejected pose",)
    assert line(drawing, "rejected pose edge from frame 'f' to frame 'g'").has_head
    assert drawing.caption == (
        "1  PE3: frame 'g' already has parent 'd' and can have only one; change it with reparent",
    )
    with pytest.raises(
        ValueError, match="the scene accepts a pose edge from frame 'f' to frame 'd'"
    ):
        try_edge(scene, "pose", tail=Node("frame", "f"), head=Node("frame", "d"))


@st.composite
def graphs(draw: st.DrawFn) -> SceneGraph:
    """Draw a scene of some bodies with frames and random edges."""
    scene = SceneGraph(root=None)
    names = []
    for number in range(draw(st.integers(1, 5))):
        scene = scene.add_body(f"B{number}")
        for index in range(draw(st.integers(0, 3))):
            names.append(f"f{number}{'x' * index}")
            scene = scene.add_root(names[-1], body=f"B{number}")
    for _ in range(draw(st.integers(0, 8)) if names else 0):
        head = Node("frame", draw(st.sampled_from(names)))
        kind = draw(st.sampled_from(["pose", "twist"]))
        tail = (
            Node("frame", draw(st.sampled_from(names)))
            if kind == "pose"
            else Node("body", scene.body_names[0])
        )
        try:
            scene = add_edge(
                scene,
                kind,
                tail=tail,
                head=head,
                value=tk.Pose() if kind == "pose" else np.zeros(6),
            )
        except TmkitError:
            continue
    return scene


@settings(max_examples=scaled_examples(0.4), deadline=None)
@given(graphs())
def test_boxes_are_apart_and_every_edge_is_drawn(scene: SceneGraph) -> None:
    """In any layout no two boxes overlap, and there is one arrow for each edge of the scene."""
    drawing = semantics_graph_drawing(scene)
    boxes = [
        mark.outline
        for mark in drawing.marks
        if isinstance(mark, Area) and mark.meaning.startswith("body")
    ]
    assert len(boxes) == len(scene.body_names)
    for number, box in enumerate(boxes):
        for other in boxes[:number]:
            apart = (box.min(axis=0) > other.max(axis=0)) | (other.min(axis=0) > box.max(axis=0))
            assert apart.any()
    count = sum(scene.parent(name) is not None for name in scene.frame_names) + len(
        scene.twist_frames
    )
    assert len(drawing.meanings(Line)) == count
    assert drawing.meanings() == semantics_graph_drawing(scene).meanings()


# ----------------------------------------------------------------------------------------- pictures


def test_pictures_are_repeatable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal drawings give equal bytes and no other file. An unwritable path is rejected."""
    pytest.importorskip("matplotlib")
    drawings = [semantics_drawing(coord) for coord in list(NINE)[:4]]
    first, again = (
        save_drawings(drawings, tmp_path / name, columns=3, width=3.0)
        for name in ("a.png", "b.png")
    )
    assert first.read_bytes() == again.read_bytes()
    with Image.open(first) as image:
        assert image.size[0] == 900
    scene = moving_scene()
    draw_relations(scene, [TwistCoord("g|C", "D", "[d]")], tmp_path / "c.png")
    draw_semantics(next(iter(NINE)), tmp_path / "d.png")
    draw_semantics_graph(scene, tmp_path / "e.png")
    save_drawings([Drawing(())], tmp_path / "f.png")
    assert {path.name for path in tmp_path.iterdir()} == {f"{letter}.png" for letter in "abcdef"}
    with pytest.raises(OutputError, match=r"a plot must end in \.png or \.svg"):
        draw_semantics_graph(scene, tmp_path / "a.gif")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[pictures\]'"):
        draw_semantics_graph(scene, tmp_path / "a.png")


def test_the_pictures_of_the_pages_show_what_the_rules_refuse() -> None:
    """Each rule that a picture names is the scene's rule, and a page shows each picture."""
    tool: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "relation_pictures.py"))
    pages = ("concepts/relations.md", "reference/scene_edge_rules.md")
    text = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in pages)
    captions = []
    for name, (drawn, _, _) in tool["PICTURES"].items():
        assert f"images/{name}.png" in text
        assert (ROOT / "docs" / "images" / f"{name}.png").stat().st_size < 150_000
        captions += [text for drawing in drawn() for text in drawing.caption]
    rules = {
        "N1": "a body named 'E' is already in the scene",
        "N2": "a frame named 'a' is already in the scene",
        "PE1": "a pose edge joins two frames",
        "PE3": "can have only one",
        "PE4": "so the pose between them cannot change",
        "PE5": "cannot have parent 'c1', which is itself or its descendant",
        "PE6": "would give body 'C' two paths",
        "TE1": "a twist edge joins a body and a frame of another body",
        "TE3": "has a twist relative to body 'D' already",
        "TE4": "would be the second: frame 'c1', joined to it by poses",
        "TE5": "would close a cycle",
    }
    for rule, words in rules.items():
        shown = [text for text in captions if f"{rule}:" in text]
        assert shown
        assert all(words in text for text in shown)
