"""Links, joints, shapes and errors of robot descriptions."""

from __future__ import annotations

import itertools
import logging
import math
from pathlib import Path

import numpy as np
import pytest
from formats.conftest import Loader

from tmkit._support.source_location import ImportNote
from tmkit.errors import FileFormatError, MeshError, SceneError
from tmkit.formats import ReadingOptions, load_scene
from tmkit.graph import AttachedShape, SceneGraph, Sphere
from tmkit.motion import CollisionWorld
from tmkit.spatial import Pose

GEOMETRY = "<visual><geometry>{}</geometry></visual>"
SOLID = "<collision><geometry>{}</geometry></collision>"
TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
LIMIT = '<limit lower="-1" upper="2" velocity="3" effort="4"/>'


def robot(*elements: str) -> str:
    """Return a robot of a link ``base`` and more elements, one a line."""
    return "\n".join(
        ['<?xml version="1.0"?>', '<robot name="r">', '<link name="base"/>', *elements, "</robot>"]
    )


def joint(
    inside: str = "",
    *,
    kind: str = "revolute",
    name: str = "j",
    parent: str = "base",
    child: str = "tip",
) -> str:
    """Return a joint on one line."""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child'
        f' link="{child}"/>{inside}</joint>'
    )


def link(inside: str = "", *, name: str = "tip") -> str:
    """Return a link on one line."""
    return f'<link name="{name}">{inside}</link>'


def link_and_joint(inside: str) -> list[str]:
    """Return a link on the fourth line of the file, and the joint it needs."""
    return [link(inside), joint(kind="fixed")]


@pytest.fixture
def read(load: Loader) -> Loader:
    """Load a robot from elements."""
    return lambda *elements, **keywords: load(robot(*elements), suffix=".urdf", **keywords)


def robot_data(name: str) -> Path:
    """Return a file of pybullet_data."""
    return Path(pytest.importorskip("pybullet_data").getDataPath()) / name


# --- links and joints


def test_names_and_root(read: Loader) -> None:
    """A link is a frame and a body of its name, and the root is a child of ``world``."""
    scene = read(link(), joint(LIMIT))
    assert scene.frame_names == ("world", "base", "tip")
    assert scene.joint_names == ("j",)
    assert (scene.parent("base"), scene.parent("tip")) == ("world", "base")
    assert scene.local_pose("base") == Pose()
    assert scene.joint("base").type == "fixed"
    assert (scene.body("base"), scene.body("tip")) == ("base", "tip")


def test_a_root_called_world_is_the_world(load: Loader) -> None:
    """A root link ``world`` is the scene's own root, with its shapes."""
    text = (
        '<robot name="r"><link name="world"><visual><geometry><sphere'
        ' radius="1"/></geometry></visual></link><link name="a"/><joint name="j"'
        ' type="fixed"><parent link="world"/><child link="a"/></joint></robot>'
    )
    scene = load(text, suffix=".urdf")
    assert scene.frame_names == ("world", "a")
    assert len(scene.shapes("world")) == 1


@pytest.mark.parametrize(
    ("kind", "inside", "type_", "lower", "upper"),
    [
        ("fixed", '<axis xyz="0 0 0"/>', "fixed", -math.inf, math.inf),
        ("revolute", LIMIT, "revolute", -1, 2),
        ("prismatic", LIMIT, "prismatic", -1, 2),
        ("continuous", LIMIT, "continuous", -math.inf, math.inf),
        ("continuous", "", "continuous", -math.inf, math.inf),
        ("floating", "", "free", -math.inf, math.inf),
        ("revolute", '<limit upper="2"/>', "revolute", 0, 2),
    ],
)
def test_joint_types_and_limits(
    kind: str, inside: str, type_: str, lower: float, upper: float, read: Loader
) -> None:
    """Each type becomes its counterpart with the limits of the file; an omitted limit is 0."""
    tip_joint = read(link(), joint(inside, kind=kind)).joint("tip")
    assert tip_joint.type == type_
    assert (tip_joint.lower, tip_joint.upper) == (lower, upper)
    if tip_joint.is_actuated:
        assert (tip_joint.velocity, tip_joint.effort) == (
            (3, 4) if "velocity" in inside else (math.inf, math.inf)
        )


def test_origin_axis_dynamics_and_mimic(read: Loader) -> None:
    """The origin is the pose at value 0; the axis is normalised and x by default."""
    follower = (
        '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><axis xyz="0 3 4"/><dynamics damping="0.5"'
        ' friction="0.25"/>'
    )
    scene = read(
        link(),
        link(name="lead"),
        joint(follower + LIMIT + '<mimic joint="k" multiplier="-2" offset="0.5"/>'),
        joint(LIMIT, name="k", child="lead"),
    )
    tip_joint = scene.joint("tip")
    assert scene.local_pose("tip") == Pose.from_rpy((1, 2, 3), (0.1, 0.2, 0.3))
    np.testing.assert_allclose(tip_joint.axis, [0, 0.6, 0.8], atol=1e-15)
    assert (tip_joint.damping, tip_joint.friction) == (0.5, 0.25)
    assert tip_joint.mimic is not None
    assert (tip_joint.mimic.joint, tip_joint.mimic.multiplier, tip_joint.mimic.offset) == (
        "k",
        -2,
        0.5,
    )
    assert scene.joint_names == ("k",)
    assert scene.joint("lead").axis.tolist() == [1, 0, 0]


def test_joints_are_in_the_order_of_the_file(read: Loader) -> None:
    """The configuration has the order of the joints in the file, with parents first."""
    names = ["c", "b", "a"]
    links = [link(name=name) for name in names]
    joints = [
        joint(LIMIT, name="j2", parent="a", child="b"),
        joint(LIMIT, name="j1", child="a"),
        joint(LIMIT, name="j3", child="c"),
    ]
    assert read(*links, *joints).joint_names == ("j1", "j2", "j3")


def test_inertia_is_turned_into_the_frame(read: Loader) -> None:
    """The inertia matrix is expressed in the axes of the link."""
    turned = '<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/>'
    matrix = '<inertia ixx="1" iyy="2" izz="2.5" ixy="0" ixz="0" iyz="0"/>'
    inertia = read(
        link(f'<inertial>{turned}<mass value="7"/>{matrix}</inertial>'), joint(kind="fixed")
    ).inertia("tip")
    assert inertia is not None
    assert inertia.mass == 7
    assert inertia.center.tolist() == [1, 2, 3]
    np.testing.assert_allclose(inertia.matrix, np.diag([2, 1, 2.5]), atol=1e-12)


def test_mass_zero_is_no_mass(read: Loader) -> None:
    """A link of mass 0 has no inertia."""
    zero = '<inertial><mass value="0"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    assert read(link(zero), joint(kind="fixed")).inertia("tip") is None


def test_impossible_inertia_is_a_point_mass_and_logged(
    read: Loader, caplog: pytest.LogCaptureFixture
) -> None:
    """An impossible inertia matrix is omitted with a warning at its line; the mass stays."""
    odd = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="5"/></inertial>'
    with caplog.at_level(logging.WARNING, "tmkit.formats"):
        inertia = read(link(odd), joint(kind="fixed")).inertia("tip")
    assert inertia is not None
    assert inertia.mass == 2
    assert not inertia.matrix.any()
    assert "main.urdf:4: 'tip': invalid inertia" in caplog.text


# --- shapes


@pytest.mark.parametrize(
    ("element", "kind", "dimensions"),
    [
        ('<box size="1 2 3"/>', "box", (1, 2, 3)),
        ('<sphere radius="2"/>', "sphere", (2,)),
        ('<cylinder radius="1" length="2"/>', "cylinder", (1, 2)),
        ('<capsule radius="1" length="2"/>', "capsule", (1, 2)),
    ],
)
def test_primitive_shapes(
    element: str, kind: str, dimensions: tuple[float, ...], read: Loader
) -> None:
    """Primitives are centred in their origin."""
    origin = '<origin xyz="1 0 0" rpy="0 0 1"/>'
    inside = f"<collision>{origin}<geometry>{element}</geometry></collision>"
    (attached,) = read(link(inside), joint(kind="fixed")).shapes("tip")
    assert (attached.shape.kind, attached.shape.dimensions) == (kind, dimensions)
    assert attached.pose == Pose.from_rpy((1, 0, 0), (0, 0, 1))
    assert (attached.visual, attached.collision) == (False, True)


def test_equal_visual_and_collision_are_one_shape(read: Loader) -> None:
    """Equal shapes with equal poses are merged; each collision shape is merged once."""
    sphere = '<geometry><sphere radius="1"/></geometry>'
    box = '<geometry><box size="1 1 1"/></geometry>'
    inside = (
        f'<visual>{sphere}<material name="m"><color rgba="1 0 0'
        f' 1"/></material></visual><visual><origin xyz="0 0 1"/>{box}</visual><collision><origin'
        ' xyz="0 0 0" rpy="0 0'
        f' 0"/>{sphere}</collision><collision>{sphere}</collision><collision>{box}</collision>'
    )
    shapes = read(link(inside), joint(kind="fixed")).shapes("tip")
    assert [(s.shape.kind, s.visual, s.collision) for s in shapes] == [
        ("sphere", True, True),
        ("box", True, False),
        ("sphere", False, True),
        ("box", False, True),
    ]
    assert shapes[0].color == (1, 0, 0, 1)


def test_materials_by_name(read: Loader, caplog: pytest.LogCaptureFixture) -> None:
    """Materials are found in the whole file; without a definition there is no colour."""
    visuals = "".join(
        f"<visual><geometry><sphere radius='{n}'/></geometry><material name='{name}'/></visual>"
        for n, name in enumerate(("top", "inline", "texture", "nowhere"), start=1)
    )
    inline = '<visual><geometry><sphere radius="9"/></geometry>'
    inline += '<material name="inline"><color rgba="0 0 1 .5"/></material></visual>'
    top = '<material name="top"><color rgba="0 1 0 1"/></material>'
    texture = '<material name="texture"><texture filename="x.png"/></material>'
    with caplog.at_level(logging.WARNING, "tmkit.formats"):
        scene = read(
            link(visuals),
            link(inline, name="z"),
            joint(kind="fixed"),
            joint(kind="fixed", name="k", child="z"),
            top,
            texture,
        )
    assert [shape.color for shape in scene.shapes("tip")] == [
        (0, 1, 0, 1),
        (0, 0, 1, 0.5),
        None,
        None,
    ]
    assert "the material 'nowhere' is undefined" in caplog.text


def test_mesh_with_scale(read: Loader) -> None:
    """A mesh is scaled along each axis, also mirrored, and found beside the description."""
    mesh = '<mesh filename="m.obj" scale="1 -2 0.5"/>'
    scene = read(
        link(f"<visual><geometry>{mesh}</geometry></visual>"),
        joint(kind="fixed"),
        m__obj="v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n",
    )
    shape = scene.shapes("tip")[0].shape
    lower, upper = shape.bounds
    assert (lower.tolist(), upper.tolist()) == ([0, -2, 0], [1, 0, 0.5])
    assert shape.volume == pytest.approx(1 / 6)
    assert shape.source == "m.obj#scale=1.0,-2.0,0.5"


def test_package_path(tmp_path: Path) -> None:
    """Packages are found in the folders of ``package_path`` and ``packages``."""
    (tmp_path / "packages" / "arm").mkdir(parents=True)
    (tmp_path / "packages" / "arm" / "m.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    path = tmp_path / "r.urdf"
    path.write_text(
        robot(
            link(
                '<collision><geometry><mesh filename="package://arm/m.obj"/></geometry></collision>'
            ),
            joint(kind="fixed"),
        )
    )
    with pytest.raises(MeshError, match=r"r.urdf:4: .*'arm' was not found"):
        load_scene(path)
    for options in (
        {"package_path": [tmp_path / "packages"]},
        {"packages": {"arm": tmp_path / "packages" / "arm"}},
    ):
        shape = load_scene(path, reading=ReadingOptions(**options)).shapes("tip")[0].shape  # type: ignore[arg-type]
        assert shape.source == "package://arm/m.obj"


def test_an_unreadable_visual_mesh_is_omitted(read: Loader, tmp_path: Path) -> None:
    """The robot loads without an unreadable visual mesh, with a note at its line."""
    (tmp_path / "broken.stl").write_text("solid x")
    for name, reason in [
        ("m.obj", "there is no file 'm.obj'"),
        ("package://no/m.obj", "the package 'no' was not found"),
        ("broken.stl", "the text has no 'endsolid'"),
        ("/etc/passwd", "outside the folders that this scene may read"),
        ("http://127.0.0.1:9/a.stl", "cannot read"),
    ]:
        notes: list[ImportNote] = []
        elements = (link(GEOMETRY.format(f'<mesh filename="{name}"/>')), joint(kind="fixed"))
        scene = read(*elements, options={"on_note": notes.append})
        assert scene.shapes("tip") == ()
        (note,) = notes
        assert note.line == 4
        assert reason in note.text
        assert note.text.endswith("this visual shape is ignored")


def test_meshes_may_be_skipped_or_be_those_that_are_available(read: Loader, tmp_path: Path) -> None:
    """``skip`` opens no mesh, and ``available`` omits unreadable ones; other words are rejected."""
    (tmp_path / "m.obj").write_text(TETRAHEDRON)
    shapes = [SOLID.format(f'<mesh filename="{name}"/>') for name in ("m.obj", "n.obj")]
    elements = (link("".join([*shapes, SOLID.format('<sphere radius="1"/>')])), joint(kind="fixed"))
    notes: list[ImportNote] = []
    available = read(*elements, options={"meshes": "available", "on_note": notes.append})
    assert [part.shape.kind for part in available.shapes("tip")] == ["mesh", "sphere"]
    assert [note.text.endswith("this collision shape is ignored") for note in notes] == [True]
    skipped = read(*elements, options={"meshes": "skip", "on_note": notes.append})
    assert [part.shape.kind for part in skipped.shapes("tip")] == ["sphere"]
    assert len(notes) == 1
    with pytest.raises(
        SceneError, match=r"meshes='skipp': expected one of .*; did you mean 'skip'"
    ):
        read(*elements, options={"meshes": "skipp"})


@pytest.mark.parametrize(
    ("inertial", "mass", "text"),
    [
        ('<inertia ixx="1" iyy="1" izz="1"/>', None, "<inertial> gives no mass; the link has none"),
        (
            '<mass/><inertia ixx="1" iyy="1" izz="1"/>',
            None,
            "<inertial> gives no mass; the link has none",
        ),
        ("", None, "<inertial> gives no mass; the link has none"),
        ('<mass value="2"/>', 2.0, "the inertia has no ixx; it is taken as that of a point mass"),
        (
            '<mass value="2"/><inertia ixx="1" iyy="1"/>',
            2.0,
            "the inertia has no izz; it is taken as that of a point",
        ),
    ],
)
def test_missing_parts_of_an_inertial_are_noted(
    inertial: str, mass: float | None, text: str, read: Loader
) -> None:
    """Without a mass there is no inertia, and without a matrix that of a point mass."""
    notes: list[ImportNote] = []
    scene = read(
        link(f"<inertial>{inertial}</inertial>"),
        joint(kind="fixed"),
        options={"on_note": notes.append},
    )
    inertia = scene.inertia("tip")
    assert (inertia.mass if inertia is not None else None) == mass
    assert [note.text.startswith(text) for note in notes] == [True]


def test_a_flat_collision_mesh_gets_a_thickness(read: Loader, tmp_path: Path) -> None:
    """A flat mesh has a hull of 0.1 mm for collisions, and stays flat as a visual."""
    (tmp_path / "flat.obj").write_text("v 0 0 1\nv 1 0 1\nv 0 1 1\nv 1 1 1\nf 1 2 3\nf 2 4 3\n")
    (tmp_path / "line.obj").write_text("v 0 0 0\nv 1 1 0\nv 3 3 0\nf 1 2 3\n")
    both = "".join(mesh.format('<mesh filename="flat.obj"/>') for mesh in (GEOMETRY, SOLID))
    notes: list[ImportNote] = []
    scene = read(
        link(both + SOLID.format('<mesh filename="line.obj"/>')),
        joint(kind="continuous"),
        options={"on_note": notes.append},
    )
    drawn, solid, line = scene.shapes("tip")
    assert (drawn.collision, solid.visual) == (False, False)
    assert np.ptp(drawn.shape.vertices[:, 2]) == 0.0
    assert np.ptp(solid.shape.vertices[:, 2]) == pytest.approx(1e-4)
    scene = scene.add_frame(
        "ball", "world", pose=Pose((0.5, 0.5, 1.0)), shapes=[AttachedShape(Sphere(0.01))]
    )
    assert CollisionWorld(scene).is_in_collision([0.0])
    assert line.shape.bounds[1] == pytest.approx([3, 3, 0], abs=1e-4)
    assert [note.text for note in notes] == [
        f"the mesh {name}.obj is flat; in collisions it has a thickness of 0.1 mm"
        for name in ("flat", "line")
    ]


def test_prefixes_without_a_namespace_are_overlooked(read: Loader) -> None:
    """Undeclared prefixes load with a note for each; other XML errors are rejected."""
    notes: list[ImportNote] = []
    extra = '<drake:a drake:b="1"/><sensor:c/><drake:d/>'
    scene = read(link(), joint(kind="fixed"), extra, options={"on_note": notes.append})
    assert scene.frame_names == ("world", "base", "tip")
    assert [note.text for note in notes] == [
        f"the prefix '{name}' has no namespace; elements with it are ignored"
        for name in ("drake", "sensor")
    ]
    with pytest.raises(
        FileFormatError, match="is not well-formed XML: Opening and ending tag mismatch"
    ):
        read(link(), joint(kind="fixed"), "<drake:a></drake:b>")
    with pytest.raises(FileFormatError, match="expand it to URDF first"):
        read(link(), joint(kind="fixed"), '<xacro:property name="a" value="1"/>')


@pytest.mark.parametrize("value", ["$(arg width)", "${width / 2}", "$(find arm)/m.obj"])
def test_expressions_of_xacro_are_named(value: str, read: Loader) -> None:
    """Unexpanded xacro is rejected at its line, not as an invalid number or file."""
    shape = f'<mesh filename="{value}"/>' if "find" in value else f'<sphere radius="{value}"/>'
    with pytest.raises(
        FileFormatError,
        match=r"main.urdf:4: .* has the xacro expression '\$.*run xacro on it first",
    ):
        read(link(GEOMETRY.format(shape)), joint(kind="fixed"))


@pytest.mark.parametrize("uri", ["package://arm/meshes/m.obj", "package://m.obj"])
def test_a_robot_copied_out_of_its_package_finds_its_meshes(uri: str, tmp_path: Path) -> None:
    """If a package is unknown, its path without the name is tried, with a note."""
    (tmp_path / "meshes").mkdir()
    for file in (tmp_path / "meshes" / "m.obj", tmp_path / "m.obj"):
        file.write_text(TETRAHEDRON)
    (tmp_path / "urdf").mkdir()
    path = tmp_path / "urdf" / "r.urdf"
    path.write_text(robot(link(SOLID.format(f'<mesh filename="{uri}"/>')), joint(kind="fixed")))
    notes: list[ImportNote] = []
    assert len(load_scene(path, on_note=notes.append).shapes("tip")) == 1
    assert [note.text.endswith("m.obj is taken") for note in notes] == [True]


# --- allowed pairs


def solid(name: str, radius: float = 0.1) -> str:
    """Return a link with a collision sphere."""
    return link(
        f'<collision><geometry><sphere radius="{radius}"/></geometry></collision>', name=name
    )


def test_adjacent_links_may_touch(read: Loader) -> None:
    """Adjacent links may touch, also through links without a collision shape."""
    distant_limits = '<origin xyz="1 0 0"/>' + LIMIT
    scene = read(
        solid("a"),
        link(name="hollow"),
        solid("b"),
        solid("c"),
        joint(kind="fixed", child="a"),
        joint(distant_limits, name="j1", parent="a", child="hollow"),
        joint(distant_limits, name="j2", parent="hollow", child="b"),
        joint(distant_limits, name="j3", parent="b", child="c"),
    )
    assert list(scene.allowed_pairs) == [("a", "b", "adjacent"), ("b", "c", "adjacent")]


def test_links_that_always_collide_may_touch(read: Loader) -> None:
    """Exactly the pairs that collide in every configuration are allowed, reproducibly."""
    offset_limits = '<origin xyz="{} 0 0"/><axis xyz="0 0 1"/>' + LIMIT
    elements = (
        solid("a", 0.5),
        solid("b"),
        solid("c"),
        solid("d"),
        joint(kind="fixed", child="a"),
        joint(offset_limits.format(0.3), name="j1", parent="a", child="b"),
        joint(offset_limits.format(0.1), name="j2", parent="b", child="c"),
        joint(offset_limits.format(0.4), name="j3", parent="c", child="d"),
    )
    scene = read(*elements)
    assert ("a", "c", "always") in scene.allowed_pairs
    assert {pair[:2] for pair in scene.allowed_pairs if pair[2] == "always"} == {("a", "c")}
    assert read(*elements).allowed_pairs == scene.allowed_pairs


def test_a_pair_of_the_robot_keeps_its_reason(load: Loader) -> None:
    """Pairs that another file allows do not change the reason of the robot's pairs."""
    text = robot(
        solid("a"),
        solid("b"),
        joint(kind="fixed", child="a"),
        joint(LIMIT, parent="a", child="b", name="k"),
    )
    scene = load('include "r.urdf" allow_collision b a; allow_collision base b;', r__urdf=text)
    assert set(scene.allowed_pairs) == {("a", "b", "adjacent"), ("base", "b", "user")}


# --- errors

INERTIAL = '<inertial><mass value="{}"/><inertia ixx="{}" iyy="1" izz="1"/></inertial>'


@pytest.mark.parametrize(
    ("elements", "line", "reason"),
    [
        ([link()], 4, r"2 root links \('base', 'tip'\), expected one"),
        (
            [link(), joint(LIMIT), link(name="base")],
            6,
            "the link 'base' is already declared at .*main.urdf:3",
        ),
        (
            [link(), joint(LIMIT), link(name="x"), joint(LIMIT, child="x")],
            7,
            "the joint 'j' is already declared at",
        ),
        (
            [link(), joint(LIMIT, parent="bas")],
            5,
            "joint 'j' names the unknown link 'bas'; did you mean 'base'",
        ),
        ([link(), joint(LIMIT, child="tap")], 5, "unknown link 'tap'; did you mean 'tip'"),
        (
            [link(), joint(kind="fixed"), joint(kind="fixed", name="k")],
            6,
            "link 'tip' is already the child of the joint 'j' at .*main.urdf:5",
        ),
        (
            [
                link(),
                joint(kind="fixed"),
                joint(kind="fixed", name="k", parent="tip", child="base"),
            ],
            5,
            "form a cycle, .*: base -> tip -> base",
        ),
        (
            [link(), joint('<origin xyz="1,5 2 3"/>' + LIMIT)],
            5,
            "expected a finite number, received '1,5'",
        ),
        (
            link_and_joint(GEOMETRY.format('<sphere radius="-1"/>')),
            4,
            "'radius' of <sphere>: expected a number above 0",
        ),
        ([link(), joint(kind="revolut")], 5, "unknown type 'revolut'; did you mean 'revolute'"),
        (
            [link(), joint('<limit lower="nan" upper="0"/>')],
            5,
            "'lower' of <limit>: .*finite number, received 'nan'",
        ),
        (
            [link(), joint('<limit lower="0" upper="1" velocity="-1"/>')],
            5,
            "'velocity' of <limit>: .*at least 0",
        ),
        (
            [link(), joint('<axis xyz="0 0 0"/>' + LIMIT)],
            5,
            "'xyz' of <axis>: expected a direction",
        ),
        ([link(), joint('<axis xyz="0 0"/>' + LIMIT)], 5, "expected 3 numbers, received '0 0'"),
        ([link(), joint("<axis/>" + LIMIT)], 5, "<axis> needs the attribute 'xyz'"),
        (
            [link(), joint('<origin rpy="0 0 one"/>' + LIMIT)],
            5,
            "expected a finite number, received 'one'",
        ),
        ([link(), joint(LIMIT + "<mimic/>")], 5, "<mimic> needs the attribute 'joint'"),
        (
            [link(), joint('<dynamics damping="-1"/>' + LIMIT)],
            5,
            "'damping' of <dynamics>: expected a number of at least",
        ),
        (
            [link(), '<joint name="j" type="fixed"><parent link="base"/></joint>'],
            5,
            "<joint> needs <child>",
        ),
        ([link(), '<joint type="fixed"/>'], 5, "<joint> needs the attribute 'name'"),
        ([link(), '<joint name="" type="fixed"/>'], 5, "the attribute 'name' of <joint> is empty"),
        (
            [link(), '<joint name="j"><parent link="base"/><child link="tip"/></joint>'],
            5,
            "needs the attribute 'type'",
        ),
        (
            link_and_joint(INERTIAL.format(-1, 1)),
            4,
            "'value' of <mass>: expected a number of at least 0, received -1",
        ),
        (link_and_joint(INERTIAL.format("x", 1)), 4, "expected a finite number, received 'x'"),
        (
            link_and_joint(INERTIAL.format(1, "nan")),
            4,
            "'ixx' of <inertia>: expected a finite number",
        ),
        (
            link_and_joint('<inertial><mas value="1"/></inertial>'),
            4,
            "<inertial> needs <mass>, it has <mas>",
        ),
        (
            link_and_joint(GEOMETRY.format('<box size="1 1 -1"/>')),
            4,
            "'size' of <box>: expected numbers above 0",
        ),
        (
            link_and_joint(GEOMETRY.format('<cylinder radius="1"/>')),
            4,
            "<cylinder> needs the attribute 'length'",
        ),
        (
            link_and_joint(GEOMETRY.format('<cylinder radius="1" lenght="2"/>')),
            4,
            "needs the attribute 'length', it has 'lenght'",
        ),
        (
            link_and_joint(GEOMETRY.format("<cilinder/>")),
            4,
            "expected one of .*, received <cilinder>; did you mean 'cylinder'",
        ),
        (
            link_and_joint(GEOMETRY.format("")),
            4,
            "expected one of box, capsule, cylinder, mesh, sphere, it is empty",
        ),
        (link_and_joint("<visual/>"), 4, "<visual> needs <geometry>"),
        (link_and_joint(SOLID.format('<mesh filename="m.obj"/>')), 4, "there is no file 'm.obj'"),
        (
            link_and_joint(SOLID.format('<mesh filename="package://no/m.obj"/>')),
            4,
            "the package 'no' was not found in",
        ),
        (link_and_joint(SOLID.format('<mesh filename="e.obj"/>')), 4, "e.obj: the mesh is empty"),
        (
            ['<xacro:macro xmlns:xacro="http://ros.org/xacro" name="m"/>'],
            4,
            "expand it to URDF first",
        ),
    ],
)
def test_errors_are_rejected_with_line(
    elements: list[str], line: int, reason: str, read: Loader
) -> None:
    """Every error has the file, the line, its text and the expected value."""
    with pytest.raises(FileFormatError, match=rf"main.urdf:{line}: .*{reason}") as caught:
        read(*elements, e__obj="")
    # of a long line its beginning
    shown = str(caught.value).splitlines()[1].strip().removesuffix("...")
    assert shown
    assert robot(*elements).splitlines()[line - 1].strip().startswith(shown)


@pytest.mark.parametrize("name", ["m.obj", "package://no/m.obj"])
def test_a_missing_collision_mesh_is_a_mesh_error(name: str, read: Loader) -> None:
    """A missing collision mesh is rejected, with the option to load the robot without it."""
    with pytest.raises(
        MeshError, match=r"main.urdf:4: .*--meshes available \(ReadingOptions\(meshes='available'\)"
    ):
        read(link(SOLID.format(f'<mesh filename="{name}"/>')), joint(kind="fixed"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "main.urdf:1:1: is not well-formed XML"),
        (
            "<robot><link name='a'></robot>",
            "main.urdf:1:.*: is not well-formed XML: Opening and ending tag mismatch",
        ),
        ("<robot/>", "main.urdf:1: the robot has no link"),
        ("<sdf/>", "main.urdf:1: expected <robot> as the outermost element, received <sdf>"),
        ("<!DOCTYPE robot><robot><link name='a'/></robot>", "declares a document type"),
        (
            "<!DOCTYPE r [<!ENTITY x 'y'>]><robot><link name='&x;'/></robot>",
            "declares a document type",
        ),
    ],
)
def test_files_that_are_no_description(text: str, reason: str, load: Loader) -> None:
    """Broken XML, another root, and document types are rejected."""
    with pytest.raises(FileFormatError, match=reason):
        load(text, suffix=".urdf")


def test_entities_read_no_files(load: Loader) -> None:
    """A description cannot pull in another file."""
    text = (
        '<!DOCTYPE r [<!ENTITY x SYSTEM "secret.txt">]><robot name="r"><link'
        ' name="a">&x;</link></robot>'
    )
    with pytest.raises(FileFormatError):
        load(text, suffix=".urdf", secret__txt="hush")


def test_odd_xml_version_is_accepted(load: Loader) -> None:
    """The XML version 0.0 of many descriptions is accepted."""
    assert "a" in load(
        '<?xml version="0.0" ?>\n<robot name="r"><link name="a"/></robot>', suffix=".urdf"
    )


# --- whole robots, compared with pinocchio


def pinocchio_configuration(model: object, scene: SceneGraph, q: np.ndarray) -> np.ndarray:
    """Return pinocchio's configuration, with mimic joints and cosines and sines."""
    values = dict(zip(scene.joint_names, q, strict=True))
    for name in scene.frame_names:
        rule = scene.joint(name).mimic
        if rule is not None:
            values[scene.joint(name).name] = rule.multiplier * values[rule.joint] + rule.offset
    full = np.zeros(model.nq)  # type: ignore[attr-defined]  # pinocchio has no stubs
    for index in range(1, model.njoints):  # type: ignore[attr-defined]
        value, part = values[model.names[index]], model.joints[index]  # type: ignore[attr-defined]
        full[part.idx_q : part.idx_q + part.nq] = (
            [value] if part.nq == 1 else [math.cos(value), math.sin(value)]
        )
    return full


@pytest.mark.parametrize(
    "name", ["franka_panda/panda.urdf", "kuka_iiwa/model.urdf", "ur5", "tiago"]
)
def test_forward_kinematics_agrees_with_pinocchio(name: str) -> None:
    """Poses, limits and masses of a real robot agree with pinocchio."""
    import pinocchio

    if "/" in name:
        path = robot_data(name)
    else:
        share = Path(pinocchio.__file__).parents[4] / "share/example-robot-data/robots"
        path = (
            share
            / {
                "ur5": "ur_description/urdf/ur5_robot.urdf",
                "tiago": "tiago_description/robots/tiago.urdf",
            }[name]
        )
    scene = load_scene(path)
    model = pinocchio.buildModelFromUrdf(str(path))
    data = model.createData()
    rng = np.random.default_rng(1)
    limits = np.clip(scene.joint_limits, -3, 3)
    for _ in range(5):
        q = rng.uniform(limits[:, 0], limits[:, 1])
        pinocchio.framesForwardKinematics(model, data, pinocchio_configuration(model, scene, q))
        kinematics = scene.at(q)
        for frame in scene.frame_names:
            if frame != "world":
                expected = data.oMf[model.getFrameId(frame, pinocchio.FrameType.BODY)].homogeneous
                np.testing.assert_allclose(kinematics.pose(frame).as_matrix(), expected, atol=1e-12)
    masses = [scene.inertia(frame) for frame in scene.frame_names]
    # pinocchio leaves the mass of a fixed base out; this one has none
    base = path.name == "model.urdf"
    total = sum(mass.mass for mass in masses if mass is not None)
    if base:
        assert total == pytest.approx(sum(inertia.mass for inertia in model.inertias))
    for joint_name, (lower, upper) in zip(scene.joint_names, scene.joint_limits, strict=True):
        part = model.joints[model.getJointId(joint_name)]
        if part.nq == 1:
            assert model.lowerPositionLimit[part.idx_q] == lower
            assert model.upperPositionLimit[part.idx_q] == upper


def test_panda(caplog: pytest.LogCaptureFixture) -> None:
    """The Panda loads with joints, mimic rule, portable mesh names and adjacent pairs."""
    with caplog.at_level(logging.WARNING, "tmkit"):
        scene = load_scene(robot_data("franka_panda/panda.urdf"))
    assert scene.joint_names == (*(f"panda_joint{i}" for i in range(1, 8)), "panda_finger_joint1")
    assert scene.joint("panda_rightfinger").mimic is not None
    assert len(scene.frame_names) == 14
    sources = {shape.shape.source for name in scene.frame_names for shape in scene.shapes(name)}
    assert all(
        source.startswith("package://pybullet_data/franka_panda/meshes/") for source in sources
    )
    assert ("panda_link7", "panda_hand", "adjacent") in scene.allowed_pairs
    both = scene.shapes("panda_link0")
    assert len(both) == 1
    assert both[0].visual
    assert both[0].collision
    assert caplog.text == ""


def test_every_link_pair_of_a_robot_is_named_once() -> None:
    """No pair is allowed twice or with itself."""
    scene = load_scene(robot_data("kuka_iiwa/model.urdf"))
    pairs = [frozenset(pair[:2]) for pair in scene.allowed_pairs]
    assert len(pairs) == len(set(pairs))
    assert all(len(pair) == 2 for pair in pairs)
    names = scene.frame_names[1:]
    assert {frozenset(pair) for pair in itertools.pairwise(names)} >= set(pairs)
