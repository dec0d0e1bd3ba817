"""Scenes in RSG-DSL: published examples, extensions and errors."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.scene_edits import scenes

from tmkit.errors import FileFormatError
from tmkit.estimation import Latest, resolve_observations
from tmkit.formats import convert_scene, load_scene
from tmkit.formats.reading import read_specifications
from tmkit.formats.rsg.values import UNITS
from tmkit.formats.rsg.writer import rsg_from_scene
from tmkit.graph import SceneGraph, observations
from tmkit.graph.nodes import walk_nodes

TABLE = Path(__file__).parents[2] / "data" / "kitchen_table.rsg"
IDENTITY = (
    "value HomogeneousTransformationMatrix ([1, 0, 0, 0 m], [0, 1, 0, 0 m], [0, 0, 1, 0 m], [0, 0,"
    " 0, 1])"
)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def load(tmp_path: Path, text: str) -> SceneGraph:
    """Return the scene of a text."""
    path = tmp_path / "scene.rsg"
    path.write_text(text, encoding="utf-8")
    return load_scene(path)


def transform_text(name: str, x: float, *members: str, stamp: str = "") -> str:
    """Return a transform along x."""
    rows = f"[1, 0, 0, {x} m], [0, 1, 0, 0 m], [0, 0, 1, 0 m], [0, 0, 0, 1]"
    value = f"value HomogeneousTransformationMatrix ({rows})"
    return (
        f"Transform {name} {{ {' '.join(members)} transforms {{ RigidTransform t {{ {stamp} {value}"
        " } } }\n"
    )


def test_the_kitchen_table_of_the_paper() -> None:
    """Poses, sizes and stamps of listing 3, with notes about the errors of the listings."""
    notes: list[str] = []
    scene = load_scene(TABLE, on_note=lambda note: notes.append(note.text))
    (plate,) = scene.shapes("plate")
    assert plate.shape.dimensions == (1.8, 0.9, 0.05)
    corners = []
    for leg, x, y, stamp in (
        (1, 0.85, 0.4, 0.0),
        (2, 0.85, -0.4, 1.0),
        (3, -0.85, -0.4, 1.0),
        (4, -0.85, 0.4, 1.0),
    ):
        assert scene.pose(f"leg{leg}").translation.tolist() == [x, y, -0.38]
        (box,) = scene.shapes(f"leg{leg}")
        assert box.shape.dimensions == (0.1, 0.1, 0.76)
        stamps = scene.stamped_poses(f"leg{leg}_pose")
        assert stamps is not None
        assert list(stamps.stamps) == [stamp]
        corners += [
            scene.pose(f"leg{leg}").translation + side * np.array([0.05, 0.05, 0.38])
            for side in (-1, 1)
        ]
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    assert low == pytest.approx([-0.9, -0.45, -0.76])
    assert high == pytest.approx([0.9, 0.45, 0.0])
    assert scene.pose("camera_pose").translation.tolist() == [0, 0, 1]
    table = scene.group("table")
    assert table.frames == ("plate", "leg1_pose", "leg2_pose", "leg3_pose", "leg4_pose")
    assert list(table.attributes["affordance"]) == ["pushable", "wipeable"]
    assert scene.group("furniture").parents == ("scene",)
    assert scene.group("sensor").parents == ("camera_pose",)
    assert ("frame", "leg4") in walk_nodes(scene, "scene")
    assert "cloud" not in scene
    assert notes == [
        "the last row of the matrix is [0, 0, 0, 0], and is read as [0, 0, 0, 1]",
        "no stamp is common to all edges: 'camera_pose' is known until 0 s, 'leg2_pose' from 1 s",
        (
            "the hook 'sensor_cloud' is declared nowhere; did you mean 'sensor'?; it may come at"
            " run time"
        ),
    ]


def test_function_blocks_are_specified() -> None:
    """Structures with their types and cardinality, hooks and triggers."""
    (specification,) = read_specifications([TABLE]).specifications
    (block,) = specification.function_blocks
    assert (block.name, block.input_hook, block.output_hook) == (
        "plane_segmentation",
        "sensor_cloud",
        "sensor",
    )
    assert block.triggers == (("onChange", "sensor"),)
    assert block.input_structure is not None
    assert block.input_structure.content == "point_cloud"
    cloud_type = block.input_structure.content_type
    assert cloud_type is not None
    assert (cloud_type.name, cloud_type.type, cloud_type.shared_ptr, cloud_type.library) == (
        "cloud_type",
        "numpy.ndarray",
        "numpy.ndarray",
        "numpy",
    )
    assert block.output_structure is not None
    (pose,) = block.output_structure.children
    assert (pose.kind, pose.cardinality, pose.children[0].content) == (
        "Transform",
        None,
        "point_cloud",
    )


@given(scenes())
@settings(max_examples=scaled_examples(0.15))
def test_every_scene_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory, scene: SceneGraph
) -> None:
    """The text reads back to an equal scene, which gives the same text."""
    path = tmp_path_factory.mktemp("rsg") / "scene.rsg"
    text = rsg_from_scene(scene)
    path.write_text(text, encoding="utf-8", newline="")
    back = load_scene(path)
    assert back == scene
    assert back.digest() == scene.digest()
    assert back.frame_names == scene.frame_names
    assert rsg_from_scene(back) == text


@pytest.mark.parametrize(
    "names", [("panda_table", "blocks3"), ("xarm_table",), ("so101_table",), (str(TABLE),)]
)
def test_shipped_scenes_are_converted(tmp_path: Path, names: tuple[str, ...]) -> None:
    """By the proof of the conversion."""
    scene = load_scene(*names)
    (file,) = convert_scene(scene, tmp_path / "scene.rsg")
    assert load_scene(file) == scene


def test_a_frame_below_several_is_observed(tmp_path: Path) -> None:
    """In the graph of a public test, the policy uses the newest of two paths."""
    text = "root r\nGroup r { child tf1 child tf2 }\n"
    text += transform_text("tf1", 1, "child tf3", stamp="stamp TimeStamp ( 2 ms )")
    text += transform_text("tf2", 6, "child g4", stamp="stamp TimeStamp ( 3 ms )")
    text += transform_text("tf3", 7, "child node5", stamp="stamp TimeStamp ( 4 ms )")
    text += "Group g4 { child node5 }\nNode node5 { }\n"
    scene = load(tmp_path, text)
    assert scene.parent("node5") == "tf3"
    assert scene.pose("node5").translation.tolist() == [8, 0, 0]
    positions = {
        seen.relative_to: scene.pose(seen.name).translation.tolist()
        for seen in observations(scene, "node5")
    }
    assert positions == {"tf3": [8, 0, 0], "tf2": [6, 0, 0]}
    assert load(tmp_path, rsg_from_scene(scene)) == scene
    nearest = resolve_observations(
        scene, "node5", policy=Latest("newest"), base="r", probability=None
    ).scene
    assert nearest.pose("node5").translation.tolist() == [8, 0, 0]


def test_extensions(tmp_path: Path) -> None:
    """Templates, levels of detail, covariances, observations, stamped attributes, quoted names."""
    text = """
    root world
    Group world { child "left leg" child right child body }
    Transform "left leg" { child foot covers }
    """
    with pytest.raises(
        FileFormatError,
        match=r"4:39: unexpected 'covers', expected 'Attribute' or 'body' or .*'\}'",
    ):
        load(tmp_path, text)
    text = """
    root world
    Group world { child "left leg" child right child body }
    Transform "left leg" {
      child foot
      transforms { RigidTransform t {
        value Pose ([0, 10, 0 cm], [0, 0, 0, 1]) covariance [1, 1, 1, 2, 2, 2] } }
    }
    GeometricNode foot { Attribute ("size", 42, TimeStamp ( 2 min ))
      geometry ball { color [1, 0, 0, 1] } }
    Instance right of "left leg"
    GeometricNode body { geometry ball { lod 0 } geometry box { lod 1 }
      geometry middle { lod 0 friction 0.5 } }
    Sphere ball { radius 5 cm }
    Sphere middle { radius 6 cm }
    Box box { sizeX 1 m sizeY 1 m sizeZ 1 m }
    """
    scene = load(tmp_path, text)
    assert scene.pose("right/foot").translation.tolist() == [0, 0.1, 0]
    assert scene.edge_covariance("right") == pytest.approx(np.diag([1, 1, 1, 2, 2, 2]))
    assert scene.attributes("foot")["size"] == 42
    assert scene.specification("foot").attribute_stamps["size"] == 120.0
    drawn = [(part.visual, part.collision) for part in scene.shapes("body")]
    assert drawn == [(True, False), (False, True), (True, False)]
    assert load(tmp_path, rsg_from_scene(scene)) == scene


def test_files_import_each_other_and_other_languages(tmp_path: Path) -> None:
    """Imports of RSG-DSL share declarations; robots in other formats are mounted with a prefix."""
    (tmp_path / "parts.rsg").write_text('Sphere ball { radius 1 cm }\nimport "scene.rsg"\n')
    (tmp_path / "arm.urdf").write_text(
        '<robot name="a"><link name="base"/><link name="hand"/><joint name="j"'
        ' type="continuous"><parent link="base"/><child link="hand"/></joint></robot>'
    )
    text = (
        'import "parts.rsg"\nimport "arm.urdf" as left at cart\nimport "arm.urdf" as right at'
        " cart\nroot w\n"
    )
    scene = load(
        tmp_path,
        f"{text}Group w {{ child cart child b }}\n{transform_text('cart', 2)}"
        "GeometricNode b { geometry ball }",
    )
    assert scene.joint_names == ("left/j", "right/j")
    assert scene.pose("right/hand", q=[0, 0]).translation.tolist() == [2, 0, 0]
    assert scene.shapes("b")[0].shape.dimensions == (0.01,)


def test_relations_of_the_geometric_notation(tmp_path: Path) -> None:
    """A pose joins two trees; a twist defines the motion of a body."""
    text = "root table root cup\nGroup table { }\nGroup cup { }\n"
    text += 'Relation Pose ("{cup}|cup", "{table}|table", "[table]") [1, 2, 3, 0, 0, 0, 1]\n'
    text += 'Relation Twist ("cup|cup", "table", "[table]") [0.5, 0, 0, 0, 0, 0]\n'
    scene = load(tmp_path, text)
    assert scene.pose("cup", relative_to="table").translation.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Group a {", r"1:10: the file ends too early: expected 'Attribute' or .*'\}'"),
        ("Gruop a { }", r"1:1: unexpected 'Gruop', expected .*did you mean 'Group'"),
        ("Group a { chidl b }", r"1:11: unexpected 'chidl'.*did you mean 'child'"),
        ("Group a { }\nGroup a { }", r"2:7: 'a' is already declared at .*:1:7"),
        (
            "root a\nGroup a { child bb }\nNode b { }",
            r"2:17: the child 'bb' is declared nowhere; did you mean 'b'",
        ),
        ("Node a { child b }\nNode b { }", r"1:10: a Node has no 'child'; a Transform has"),
        ("Group a { child b }\nGroup b { child a }", r"nodes are below themselves: .*a.*b"),
        ("root a\nGroup a { child a }", r"2:17: the root 'a' cannot be a child, here of 'a'"),
        ("root b\nGroup a { }", r"1:6: the root 'b' is declared nowhere"),
        ("Box b { sizeX 1 kg sizeY 1 m sizeZ 1 m }", ""),
        (
            (
                f"Transform t {{ transforms {{ RigidTransform a {{ {IDENTITY} }} RigidTransform a"
                f" {{ {IDENTITY} }} }} }}"
            ),
            "two rigid transforms 'a'",
        ),
        (
            (
                f"Transform t {{ transforms {{ RigidTransform a {{ stamp TimeStamp (1 s) {IDENTITY}"
                f" }} RigidTransform b {{ stamp TimeStamp (1000 ms) {IDENTITY} }} }} }}"
            ),
            "two rigid transforms at 1 s",
        ),
        (
            (
                "Transform t { transforms { RigidTransform a { value"
                " HomogeneousTransformationMatrix ([1, 0, 0, 0 m], [0, 1, 0, 0 m], [0, 0, 2, 0 m],"
                " [0, 0, 0, 1]) } } }"
            ),
            "no rotation: the nearest rotation is 1 away",
        ),
        (
            (
                "Transform t { transforms { RigidTransform a { value"
                " HomogeneousTransformationMatrix ([1, 0, 0, 0 s], [0, 1, 0, 0 m], [0, 0, 1, 0 m],"
                " [0, 0, 0, 1]) } } }"
            ),
            "'s' is a unit of time, expected one of length",
        ),
        (
            (
                "Transform t { transforms { RigidTransform a { value"
                " HomogeneousTransformationMatrix ([1, 0, 0, 0 m], [0, 1, 0, 0 m], [0, 0, 1, 0 m])"
                " } } }"
            ),
            "expected a matrix of 4 rows .* received rows of 4, 4, 4\n",
        ),
        (
            (
                "Transform t { transforms { RigidTransform a { value"
                " HomogeneousTransformationMatrix ([1, 0, 0, 0 m], [0, 1, 0, 0 m], [0, 0, 1, 0 m],"
                " [0, 0, 0, 2]) } } }"
            ),
            r"last row of the matrix must be \[0, 0, 0, 1\]",
        ),
        (
            "Transform t { transforms { RigidTransform a { } } }",
            "rigid transform 'a' has no 'value'",
        ),
        (
            'Node t { joint {"type": "revolut"} }',
            "joint.type: unknown word 'revolut'; did you mean 'revolute'",
        ),
        ('Node t { Attribute ("a" "b") }', r"1:25: unexpected '\"b\"', expected ','"),
        ('Node t { Attribute ("a, "b") }', "not closed on its line|unexpected"),
        (
            "Instance a of a",
            "'a' is below the node 'a' of which it is an instance|instance of itself",
        ),
        ("Instance a of b\nInstance b of a", "is an instance of itself: a -> b -> a"),
        ("GeometricNode a { geometry g }", "1:28: the geometry 'g' is declared nowhere"),
        ("/* open", "this comment is never closed"),
        ("Node a { } §", "unexpected character '§'"),
        ("AllowCollision a b", "unknown frame 'a'"),
        ("FunctionBlock f { inputStructure x }", "the structure 'x' is declared nowhere"),
        ("FunctionBlock f { trigger every 0 Hz }", "a rate is above 0"),
        ('import "gone.rsg"', "gone.rsg"),
        ('import "/etc/passwd"', "passwd"),
    ],
)
def test_what_is_wrong_is_refused_at_its_place(tmp_path: Path, text: str, message: str) -> None:
    """Every error names file, line and column."""
    if not message:  # a shape that nothing uses
        text, message = f"{text}\nGeometricNode n {{ geometry b }}", "1:9: unknown unit 'kg'"
    with pytest.raises(FileFormatError, match=message):
        load(tmp_path, text)


def test_all_errors_are_told_at_once(tmp_path: Path) -> None:
    """Those of syntax, and else those of names and values; each with its place."""
    with pytest.raises(FileFormatError) as failure:
        load(tmp_path, "Group a { chidl b }\nNode c { }\nNode d { child }\nNode c { }\n")
    first, second, third = failure.value.data["errors"]
    assert ["1:11" in str(first), "3:16" in str(second), "4:6" in str(third)] == [True] * 3
    with pytest.raises(FileFormatError, match=r"(?s)1:17: the child 'b' .*3:6: the root 'x'"):
        load(tmp_path, "Group a { child b }\nGeometricNode c { geometry g }\nroot x\n")
    many = "".join(f"Group a{n} {{ child b{n} }}\n" for n in range(30))
    with pytest.raises(FileFormatError, match=r"\.\.\. and 10 more errors"):
        load(tmp_path, many)


def test_units_agree_with_pint() -> None:
    """Every unit that is known, by its symbol."""
    pint = pytest.importorskip("pint")
    registry = pint.UnitRegistry()
    for dimension, si in (("length", "m"), ("time", "s"), ("frequency", "Hz")):
        for unit, (factor, divisor) in UNITS[dimension].items():
            word = unit.lower() if len(unit) > 2 and unit != "kHz" else unit
            assert math.isclose(
                registry.Quantity(1.0, word).to(si).magnitude, factor / divisor, rel_tol=1e-12
            )


_DAMAGE = ("", "{", "}", "(", '"', "child scene ", "*", "/*", "1e999", "\u00e9")


@given(st.data())
@settings(max_examples=scaled_examples(0.2))
def test_damaged_files_are_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever is cut out of a file or put into it: an error of the format, or a scene."""
    text = TABLE.read_text(encoding="utf-8")
    for _ in range(data.draw(st.integers(1, 3))):
        begin = data.draw(st.integers(0, len(text)))
        end = min(len(text), begin + data.draw(st.integers(0, 40)))
        text = (
            text[:begin]
            + data.draw(
                st.sampled_from(["", "{", "}", "(", '"', "child scene ", "*", "/*", "1e999", "é"])
            )
            + text[end:]
        )
    path = tmp_path_factory.mktemp("rsg") / "scene.rsg"
    path.write_text(text, encoding="utf-8")
    try:
        load_scene(path)
    except FileFormatError as error:
        assert "scene.rsg" in str(error)  # noqa: PT017
