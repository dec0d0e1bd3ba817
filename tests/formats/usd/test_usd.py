"""Round trips of scenes through USD, files of other programs, layers and errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from support.effort import scaled_examples

import tmkit as tk
from tmkit.errors import FileFormatError, SceneError
from tmkit.formats import convert_scene, load_scene
from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Cone,
    Continuous,
    Cylinder,
    Fixed,
    Free,
    Inertia,
    Joint,
    Mesh,
    Mimic,
    Plane,
    PointCloud,
    Prismatic,
    Revolute,
    SceneGraph,
    Sphere,
)
from tmkit.spatial import Pose

pytest.importorskip("pxr")

# --- written and read again

_numbers = st.floats(-3, 3)
_triples = st.tuples(_numbers, _numbers, _numbers)
_poses = st.builds(lambda t, w: Pose.from_rpy(t, w), _triples, _triples)
_axes = _triples.filter(lambda axis: np.linalg.norm(axis) > 0.1)
_sizes = st.floats(0.01, 3)
_shapes = st.one_of(
    st.builds(lambda a, b, c: Box([a, b, c]), _sizes, _sizes, _sizes),
    st.builds(Sphere, _sizes),
    st.builds(Cylinder, _sizes, _sizes),
    st.builds(Capsule, _sizes, _sizes),
    st.builds(Cone, _sizes, _sizes),
    st.just(Plane()),
    st.builds(
        lambda t: Mesh(
            np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], t]),
            [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]],
        ),
        st.tuples(_numbers, _numbers, st.floats(0.1, 1)),
    ),
)
_unit = st.floats(0, 1)
_parts = st.builds(
    lambda shape, pose, color, kind, friction: AttachedShape(
        shape,
        pose,
        color=color,
        visual=kind != "solid",
        collision=kind != "drawn",
        friction=friction,
    ),
    _shapes,
    _poses,
    st.none() | st.tuples(_unit, _unit, _unit, _unit),
    st.sampled_from(["both", "solid", "drawn"]),
    st.none() | _sizes,
)


@st.composite
def joints(draw: st.DrawFn, leaders: list[str]) -> Joint:
    """Draw a joint, which may mimic one of others."""
    kind = draw(st.sampled_from([Fixed, Free, Revolute, Prismatic, Continuous]))
    if kind in (Fixed, Free):
        return kind()
    rule = None
    if leaders and draw(st.booleans()):
        rule = Mimic(
            draw(st.sampled_from(leaders)), multiplier=draw(_numbers), offset=draw(_numbers)
        )
    most = {key: draw(st.just(np.inf) | _sizes) for key in ("velocity", "effort")}
    losses = {key: draw(st.just(0.0) | _sizes) for key in ("damping", "friction")}
    limits = (
        {}
        if kind is Continuous
        else {"lower": -draw(_sizes), "upper": draw(_sizes | st.just(np.inf))}
    )
    return kind(draw(_axes), mimic=rule, **most, **limits).replace(**losses)


@st.composite
def scenes(draw: st.DrawFn) -> SceneGraph:
    """Draw a scene that USD can store."""
    scene, leaders = SceneGraph(), list[str]()
    names = [f"f{number}" for number in range(draw(st.integers(1, 5)))]
    for number, name in enumerate(names):
        joint = draw(joints(leaders))
        parent = draw(st.sampled_from(["world", *names[:number]]))
        classes = draw(st.lists(st.sampled_from(["movable", "surface"]), unique=True))
        parts = draw(st.lists(_parts, max_size=2))
        pose = draw(_poses)
        try:
            scene = scene.add_frame(
                name, parent, pose=pose, joint=joint, classes=classes, shapes=parts
            )
        except SceneError as error:
            # The drawn limits of a leader and its followers may contradict each other.
            assume("no value of joint" not in str(error))
            raise
        if joint.type not in ("fixed", "free") and joint.mimic is None:
            leaders.append(name)
        if draw(st.booleans()):
            a, b = draw(_sizes), draw(_sizes)
            turn = draw(_poses).rotation
            matrix = turn @ np.diag([a, b, a + b]) @ turn.T
            scene = scene.set_inertia(
                name, Inertia(draw(_sizes), draw(_triples), matrix=0.5 * (matrix + matrix.T))
            )
    if len(names) > 1 and draw(st.booleans()):
        scene = scene.allow_collision(*names[:2], reason="touching")
    return scene


@given(scenes())
@settings(max_examples=scaled_examples(0.3))
def test_what_is_written_reads_back(
    tmp_path_factory: pytest.TempPathFactory, scene: SceneGraph
) -> None:
    """A scene reads back equal, with equal kinematics in all configurations."""
    file = tmp_path_factory.mktemp("usd") / "scene.usda"
    convert_scene(scene, file)
    again = load_scene(file)
    q = np.linspace(-1, 1, len(scene.joint_names))
    assert again.joint_names == scene.joint_names
    for name in scene.frame_names:
        np.testing.assert_allclose(
            again.pose(name, q=q).as_matrix(), scene.pose(name, q=q).as_matrix(), atol=1e-9
        )


def test_robots_and_scenes_of_ours(tmp_path: Path) -> None:
    """A robot with meshes, mimic joints and classes reads back equal."""
    scene = load_scene("panda_table", "blocks2")
    convert_scene(scene, tmp_path / "panda.usd")
    again = load_scene(tmp_path / "panda.usd")
    assert again.frame_names == scene.frame_names
    assert [part.shape.digest for part in again.shapes("panda_hand")] == [
        part.shape.digest for part in scene.shapes("panda_hand")
    ]
    assert again.classes("a") == scene.classes("a")


@pytest.mark.parametrize(
    ("scene", "message"),
    [
        (
            SceneGraph().add_frame(
                "a", "world", shapes=[AttachedShape(PointCloud([[0, 0, 0]], radius=0.1))]
            ),
            "no point cloud",
        ),
        (
            SceneGraph().add_frame("a", "world").set_attribute("a", "key", 1),
            "the attributes of frame 'a' would be lost",
        ),
        (SceneGraph(root="island").add_frame("a", "island"), "its frames would read back"),
    ],
)
def test_what_usd_cannot_hold(tmp_path: Path, scene: SceneGraph, message: str) -> None:
    """A scene that USD cannot store is rejected, and nothing is written."""
    with pytest.raises(SceneError, match=message):
        convert_scene(scene, tmp_path / "x.usda")
    assert not (tmp_path / "x.usda").exists()


# --- files of other programs

HEAD = '#usda 1.0\n(\n    upAxis = "Y"\n    metersPerUnit = 0.01\n    kilogramsPerUnit = 1\n)\n'
RIGID = 'prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]'
ARM = (
    HEAD
    + f"""
def Xform "Robot"
{{
    def Xform "base" ({RIGID})
    {{
        bool physics:kinematicEnabled = 1
        float physics:mass = 2
        float3 physics:diagonalInertia = (1, 2, 2.5)
        double3 xformOp:translate = (0, 100, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        def Xform "visuals"
        {{
            def Cylinder "c"
            {{
                token axis = "Y"
                double radius = 10
                double height = 50
                color3f[] primvars:displayColor = [(1, 0, 0)]
            }}
            def Sphere "s" (prepend apiSchemas = ["PhysicsCollisionAPI"])
            {{
                double radius = 1
                token purpose = "guide"
                float3 xformOp:scale = (10, 20, 10)
                uniform token[] xformOpOrder = ["xformOp:scale"]
            }}
        }}
        def Xform "tool"
        {{
            double3 xformOp:translate = (0, 0, 10)
            uniform token[] xformOpOrder = ["xformOp:translate"]
        }}
    }}
    def Xform "arm" ({RIGID})
    {{
        double3 xformOp:translate = (50, 100, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        def Cube "box" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {{
            double size = 2
            float3 xformOp:scale = (10, 5, 1)
            uniform token[] xformOpOrder = ["xformOp:scale"]
        }}
    }}
    def PhysicsRevoluteJoint "turn" (prepend apiSchemas = ["PhysicsDriveAPI:angular"])
    {{
        rel physics:body0 = </Robot/base>
        rel physics:body1 = </Robot/arm>
        point3f physics:localPos0 = (20, 0, 0)
        point3f physics:localPos1 = (-30, 0, 0)
        uniform token physics:axis = "Y"
        float physics:lowerLimit = -90
        float physics:upperLimit = 180
        float drive:angular:physics:maxForce = 40
    }}
}}
def Xform "Table"
{{
def Mesh "top"
{{
    point3f[] points = [(0, 0, 0), (100, 0, 0), (100, 0, 100), (0, 0, 100), (0, 100, 0)]
    int[] faceVertexCounts = [4, 3, 3, 3, 3]
    int[] faceVertexIndices = [0, 1, 2, 3, 0, 4, 1, 1, 4, 2, 2, 4, 3, 3, 4, 0]
}}
}}
"""
)


def test_a_robot_of_another_program(tmp_path: Path) -> None:
    """Units, the up axis and scales are applied to poses, limits and shapes."""
    (tmp_path / "arm.usda").write_text(ARM)
    notes: list[str] = []
    scene = load_scene(tmp_path / "arm.usda", on_note=lambda note: notes.append(note.text))
    assert scene.frame_names == ("world", "base", "tool", "arm/turn", "arm", "Table")
    assert scene.pose("base").translation == pytest.approx([0, 0, 1])
    assert scene.pose("tool").translation == pytest.approx([0, -0.1, 1])
    assert scene.joint("base").type == "fixed"
    turn = scene.joint(scene.joint_frame("turn"))
    assert (turn.lower, turn.upper, turn.effort) == (
        pytest.approx(-np.pi / 2),
        pytest.approx(np.pi),
        40,
    )
    assert scene.pose("arm", q=[0.0]).translation == pytest.approx([0.5, 0, 1], abs=1e-6)
    # A quarter turn about the stage's y, which is up.
    assert scene.pose("arm", q=[np.pi / 2]).translation == pytest.approx([0.2, 0.3, 1], abs=1e-6)
    cylinder, sphere = scene.shapes("base")
    assert (cylinder.shape.dimensions, cylinder.color, cylinder.collision) == (
        (0.1, 0.5),
        (1, 0, 0, 1),
        False,
    )
    assert scene.pose("base").rotation @ cylinder.pose.rotation @ [0, 0, 1] == pytest.approx(
        [0, 0, 1]
    )
    assert (sphere.shape.kind, sphere.visual, sphere.collision) == ("mesh", False, True)
    assert sphere.shape.bounds[1] == pytest.approx([0.1, 0.2, 0.1], rel=0.02)
    assert scene.shapes("arm")[0].shape.dimensions == pytest.approx((0.2, 0.1, 0.02))
    inertia = scene.inertia("base")
    assert inertia is not None
    assert np.diag(inertia.matrix) == pytest.approx(np.array([1, 2, 2.5]) * 1e-4)
    assert scene.inertia("arm") is None
    (top,) = scene.shapes("Table")
    assert (len(top.shape.faces), top.shape.volume) == (6, pytest.approx(1 / 3))
    assert scene.is_allowed("base", "arm")


def test_loops_and_other_joints_are_left_out(tmp_path: Path) -> None:
    """Omitted elements are noted; a spherical joint becomes three; a used name a path."""
    bodies = "".join(f'def Xform "{path}" ({RIGID})\n{{\n}}\n' for path in ("a", "b"))
    ends = "rel physics:body0 = </a>\nrel physics:body1 = </b>"
    kinds = ("Spherical", "Fixed", "Distance")
    joints = "".join(f'def Physics{kind}Joint "{kind}"\n{{\n{ends}\n}}\n' for kind in kinds)
    scope = f'def Scope "s"\n{{\ndef Xform "a" ({RIGID})\n{{\n}}\n}}\n'
    (tmp_path / "x.usda").write_text(f"#usda 1.0\n{bodies}{joints}{scope}")
    notes: list[str] = []
    scene = load_scene(
        tmp_path / "x.usda", on_note=lambda note: notes.append(str(note).rpartition("(prim ")[2])
    )
    assert scene.joint_names == ("Spherical/x", "Spherical/y", "Spherical/z")
    assert set(scene.frame_names) >= {"a", "b", "s/a"}
    assert notes == [
        "/Distance): a joint of type PhysicsDistanceJoint is omitted",
        "/Fixed): the joint closes a loop, and is omitted",
        "/Spherical): the spherical joint is read as three turns, 'Spherical/x', '/y' and '/z'",
    ]


# --- layers and bad files


def test_layers_are_read_where_a_scene_may_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Layers outside the allowed folders are rejected; missing layers are noted."""
    other_folder, folder = (
        tmp_path_factory.mktemp("far"),
        tmp_path_factory.mktemp("near") / "a" / "b",
    )
    folder.mkdir(parents=True)
    (folder / "part.usda").write_text(
        '#usda 1.0\n(defaultPrim = "p")\ndef Xform "p"\n{\ndef Cube "c"\n{\n}\n}\n'
    )
    (other_folder / "secret.usda").write_text((folder / "part.usda").read_text())
    main = (
        '#usda 1.0\ndef Xform "x" (references = [@./{}@, @gone.usda@,'
        " @omniverse://host/a.usd@])\n{{\n}}\n"
    )
    (folder / "main.usda").write_text(main.format("part.usda"))
    notes: list[str] = []
    scene = load_scene(folder / "main.usda", on_note=lambda note: notes.append(note.text))
    assert scene.shapes("x")[0].shape.kind == "box"
    assert notes == [
        "the layer 'gone.usda' is missing, and is omitted",
        "the layer 'omniverse://host/a.usd' is missing, and is omitted",
    ]
    (folder / "part.usda").write_text(f"#usda 1.0\n(subLayers = [@{other_folder}/secret.usda@])\n")
    with pytest.raises(FileFormatError, match="outside the folders that this scene may read"):
        load_scene(folder / "main.usda")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "USD rejects the file: .*is not a valid usda layer"),
        ("#usda 1.0\ndef Xform {", "USD rejects the file: .*x.usda:2:1: parse error"),
        (
            '#usda 1.0\ndef PhysicsFixedJoint "j"\n{\nrel physics:body0 = </no>\n}',
            r"prim /j\).*names the unknown prim /no",
        ),
        (
            (
                '#usda 1.0\ndef Cube "c"\n{\nfloat3 xformOp:scale = (0, 1, 1)\n'
                'uniform token[] xformOpOrder = ["xformOp:scale"]\n}'
            ),
            "has a scale of 0",
        ),
        (
            (
                '#usda 1.0\ndef Mesh "m"\n{\npoint3f[] points = [(0, 0, 0)]\nint[] faceVertexCounts'
                " = [3]\nint[] faceVertexIndices = [0, 1, 9]\n}"
            ),
            "not a point of it",
        ),
        (
            (
                '#usda 1.0\ndef Mesh "m"\n{\npoint3f[] points = [(0, 0, 0)]\nint[] faceVertexCounts'
                " = [2]\nint[] faceVertexIndices = [0, 1]\n}"
            ),
            "without three corners",
        ),
        ('#usda 1.0\ndef Sphere "s"\n{\ndouble radius = -1\n}', r"prim /s\)"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    """Errors have the path of the prim if there is one."""
    (tmp_path / "x.usda").write_text(text)
    with pytest.raises(FileFormatError, match=message):
        load_scene(tmp_path / "x.usda")


def test_plans_of_a_scene_in_usd(tmp_path: Path) -> None:
    """A scene that was converted to USD and back plans as before."""
    scene = load_scene("panda_table", "blocks1")
    convert_scene(scene, tmp_path / "scene.usda")
    result = tk.plan(
        load_scene(tmp_path / "scene.usda"),
        domain="blocks",
        goal="(holding a)",
        robot="panda",
        seed=0,
    )
    assert result.is_solved
