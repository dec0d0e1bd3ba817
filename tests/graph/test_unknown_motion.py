"""Motions that a pose does not state: the tables of docs/reference/scene_edge_rules.md."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tmkit.errors import SceneError, StampError, TmkitError
from tmkit.formats import compile_scene, convert_scene, load_scene, scene_to_dict, write_json_scene
from tmkit.graph import (
    Continuous,
    Evidence,
    FactPolicy,
    Fixed,
    Free,
    Inertia,
    Joint,
    Prismatic,
    Revolute,
    SceneArrays,
    SceneGraph,
    Unstated,
    When,
    acceleration,
    add_edge,
    add_fact,
    add_pose,
    add_twist,
    at_stamp,
    collapse_fixed_frames,
    diff,
    gaussian_pose,
    gaussian_twist,
    integrate,
    is_rigid,
    momentum,
    payload_wrench,
    relate,
    rigid_frames,
    rigid_inertia,
    set_wrench_bias,
    transport,
    twist,
    update_pose,
)
from tmkit.graph.semantic_edges.edges import Node
from tmkit.graph.semantic_edges.integration import finite_difference
from tmkit.graph.semantic_edges.wrenches import wrench_bias
from tmkit.motion import twist_jacobian, velocity_ik
from tmkit.relations import (
    AngularVelocityCoord,
    LinearVelocityCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    SemanticError,
    SemanticOrientation,
    SemanticPose,
    SemanticPosition,
    SemanticTwist,
    SemanticWrench,
    TwistCoord,
    WrenchCoord,
)
from tmkit.spatial import Pose
from tmkit.store import Store
from tmkit.world import (
    Buffer,
    Client,
    Header,
    InProcessTransport,
    Quaternion,
    Time,
    Transform,
    TransformStamped,
    Vector3,
    WorldServer,
)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "scene_edge_rules.md"
UP = Pose([0.0, 0.0, 1.0])
SPEED = np.array([0.1, 0.2, 0.3, 0.0, 0.0, 0.0])
"""Twist of the cup in the rows of twists [m/s]."""
SEEN = SemanticPose(PoseCoord("{cup}|cup", "{table}|table", "[table]"), UP)
TOLD = SemanticTwist(TwistCoord("cup|cup", "table", "[cup]"), SPEED)
UNKNOWN = r"the motion of the edge between '(cup|table)' and its parent '(cup|table)' is unknown"
WAYS_TO_STATE = r"add_twist.*set_joint \(Fixed\(\).*attach, mount or reparent"


def rows(table: str) -> list[tuple[str, str]]:
    """Return the names in the rows of a table of the page, and their results."""
    text = (
        PAGE.read_text(encoding="utf-8").split(f"<!-- table: {table} -->\n\n")[1].split("\n\n")[0]
    )
    cells = [re.split(r" \| ", line.strip("| ")) for line in text.splitlines()[2:]]
    return [(name, result) for names, result in cells for name in names.split("; ")]


# -------------------------------------------------------------------------------- ways to an edge


def apart() -> SceneGraph:
    """Return a table and a cup in two trees."""
    return SceneGraph(root=None).add_root("table").add_root("cup")


def seen() -> SceneGraph:
    """Return the scene in which the pose of the cup was measured."""
    return add_pose(apart(), SEEN)


def stated() -> SceneGraph:
    """Return the scene in which the cup is fixed to the table."""
    return SceneGraph("table").add_frame("cup", "table", pose=UP)


def by_parts() -> SceneGraph:
    """Return the scene of a position and an orientation."""
    position = SemanticPosition(PositionCoord("cup|cup", "table|table", "[table]"), [0, 0, 1])
    orientation = SemanticOrientation(
        OrientationCoord("[cup]|cup", "[table]|table", "[table]"), np.eye(3)
    )
    return add_fact(add_fact(apart(), position), orientation)


def transform() -> TransformStamped:
    """Return the pose of the cup as a message."""
    return TransformStamped(
        Header(Time(1), "table"), "cup", Transform(Vector3(0, 0, 1), Quaternion(0, 0, 0, 1))
    )


def buffered(scene: SceneGraph | None = None, *, is_static: bool) -> SceneGraph:
    """Return the scene of a buffer that received the pose of the cup."""
    buffer = Buffer(scene=scene)
    assert (
        buffer.set_transform_static(transform()) if is_static else buffer.set_transform(transform())
    )
    return buffer.scene


def loaded(folder: Path, name: str, text: str) -> SceneGraph:
    """Return the scene of a text."""
    (folder / name).write_text(text)
    return load_scene(folder / name)


def converted(scene: SceneGraph, folder: Path, suffix: str) -> SceneGraph:
    """Return a scene, written and read."""
    return load_scene(convert_scene(scene, folder / f"scene{suffix}")[0])


def from_relation(folder: Path) -> SceneGraph:
    """Return the scene of a file with a relation."""
    relation = 'Relation Pose ("{cup}|cup", "{table}|table", "[table]") [0, 0, 1, 0, 0, 0, 1]\n'
    return loaded(
        folder, "relation.rsg", "root table root cup\nGroup table { }\nGroup cup { }\n" + relation
    )


def from_json(scene: SceneGraph, folder: Path) -> SceneGraph:
    """Return a scene, written as JSON and read."""
    write_json_scene(scene, folder / "scene.json")
    return load_scene(folder / "scene.json")


def from_python(scene: SceneGraph, folder: Path) -> SceneGraph:
    """Return the scene of a generated module."""
    names: dict[str, Any] = {"__name__": "generated", "__file__": str(folder / "generated.py")}
    compile_scene(scene, folder / "generated.py")
    exec((folder / "generated.py").read_text(), names)
    made = names["scene"]()
    assert isinstance(made, SceneGraph)
    return made


def from_store(scene: SceneGraph, folder: Path) -> SceneGraph:
    """Return a scene that a store holds as the difference to another."""
    with Store(folder / "store") as store:
        store.put(apart())
        return store.get(store.put(scene))


def from_service(scene: SceneGraph) -> SceneGraph:
    """Return a scene after it went over the wire, whole and as a difference."""
    transport = InProcessTransport()
    with WorldServer(transport, scene):
        assert Client(transport).scene() == scene
    transport = InProcessTransport()
    with WorldServer(transport, apart()) as server:
        Client(transport).update(lambda _: scene)
        return server.live.scene


def renamed() -> SceneGraph:
    """Return the measured cup, under a new name."""
    scene = SceneGraph("table").add_body("cup").add_root("mug", body="cup")
    pose = SemanticPose(PoseCoord("{mug}|cup", "{table}|table", "[table]"), UP)
    return add_pose(scene, pose).rename_frame("mug", "cup")


def folded() -> SceneGraph:
    """Return the measured cup, after a handle was folded into it."""
    scene = seen().add_frame("handle", "cup")
    made = collapse_fixed_frames(scene)
    assert "handle" not in made
    return made


def by_frame(**given: Any) -> SceneGraph:
    """Return the scene of one edit."""
    return SceneGraph("table").add_frame("cup", "table", **given)


def arrays_of(scene: SceneGraph, *edits: Callable[[SceneArrays], None]) -> SceneGraph:
    """Return a scene that was edited in place."""
    arrays = SceneArrays(scene)
    for edit in edits:
        edit(arrays)
    return arrays.freeze()


MJCF = (
    '<mujoco><worldbody><body name="table">{0}<body name="cup" pos="0 0'
    ' 1">{0}</body></body></worldbody></mujoco>'
)
SDF = (
    '<sdf version="1.9"><model name="m"><link name="table"/><link name="cup"><pose>0 0 1 0 0'
    ' 0</pose></link><joint name="j"'
    ' type="fixed"><parent>table</parent><child>cup</child></joint></model></sdf>'
)
URDF = (
    '<robot name="r"><link name="table"/><link name="cup"/><joint name="j" type="fixed"><origin'
    ' xyz="0 0 1"/><parent link="table"/><child link="cup"/></joint></robot>'
)
Builder = Callable[[Path], SceneGraph]
WAYS: dict[str, list[Builder]] = {
    "`add_pose`, `add_edge`": [
        lambda _: seen(),
        lambda _: add_edge(
            apart(), "pose", tail=Node("frame", "table"), head=Node("frame", "cup"), value=UP
        ),
        lambda _: add_pose(
            SceneGraph("x").add_frame("cup", "x").add_root("table"),
            SemanticPose(PoseCoord("{table}|table", "{cup}|cup", "[cup]"), UP.inverse()),
        ),
    ],
    "`add_fact` of a pose": [
        lambda _: add_fact(apart(), SEEN),
        lambda _: add_fact(
            apart(),
            UP,
            frame="cup",
            relative_to="table",
            evidence=Evidence(covariance=np.eye(6) * 1e-6, stamp=1.0),
        ),
        lambda _: add_fact(
            SceneGraph("a").add_frame("table", "a").add_root("b").add_frame("cup", "b"), SEEN
        ),
        lambda _: add_fact(seen(), UP.inverse(), frame="table", relative_to="cup"),
    ],
    "`add_fact` of a position and an orientation": [lambda _: by_parts()],
    "relation `Pose` in a file": [from_relation],
    "`Buffer.set_transform`": [
        lambda _: buffered(is_static=False),
        lambda _: buffered(apart(), is_static=False),
        lambda _: buffered(
            SceneGraph("x").add_frame("cup", "x").add_root("table"), is_static=False
        ),
    ],
    "`add_frame` with joint `Unstated()`": [lambda _: by_frame(pose=UP, joint=Unstated())],
    "`add_pose`, then `set_pose`, `update_pose` or another `add_pose`": [
        lambda _: seen().set_pose("cup", UP @ UP),
        lambda _: update_pose(seen(), SEEN),
        lambda _: add_pose(seen(), SEEN),
        lambda _: arrays_of(seen(), lambda arrays: arrays.set_pose("cup", UP @ UP)),
        lambda _: add_fact(
            seen(), UP @ UP, frame="cup", relative_to="table", policy=FactPolicy(moves="cup")
        ),
    ],
    "`add_pose`, then `rename_frame`, `make_root`, `collapse_fixed_frames` or `merge`": [
        lambda _: renamed(),
        lambda _: seen().make_root("cup"),
        lambda _: folded(),
        lambda _: SceneGraph("table").merge(seen()),
        lambda _: SceneGraph("w").mount(seen(), "w", prefix=""),
    ],
    "`add_pose`, then `set_twist` and `remove_twist`": [
        lambda _: seen().set_twist("cup", SPEED, relative_to_body="table").remove_twist("cup")
    ],
    "`add_pose`, kept in JSON, RSG, Python or glTF": [
        lambda folder: from_json(seen(), folder),
        lambda folder: converted(seen(), folder, ".rsg"),
        lambda folder: from_python(seen(), folder),
        lambda folder: converted(seen(), folder, ".gltf"),
    ],
    "`add_pose`, kept by `pickle`, `Store`, `SceneArrays` or the service": [
        lambda _: pickle.loads(pickle.dumps(seen())),
        lambda folder: from_store(seen(), folder),
        lambda _: arrays_of(seen()),
        lambda _: from_service(seen()),
        lambda _: SceneGraph.from_frames(
            [seen().specification(name) for name in seen().frame_names]
        ),
    ],
    "`add_pose`, then `apply` of a difference": [
        lambda _: apart().apply(diff(apart(), seen())),
        lambda _: stated().apply(diff(stated(), stated().set_joint("cup", Unstated()))),
        lambda _: seen().apply(diff(stated(), stated().set_classes("cup", ["movable"]))),
    ],
    "`add_pose` with joint `Fixed()`": [lambda _: add_pose(apart(), SEEN, joint=Fixed())],
    "`add_pose`, then `set_joint` with `Fixed()`": [
        lambda _: seen().set_joint("cup", Fixed()),
        lambda _: arrays_of(seen(), lambda arrays: arrays.set_joint("cup", Fixed())),
        lambda _: seen().apply(diff(stated().set_joint("cup", Unstated()), stated())),
    ],
    "`add_pose`, then `add_pose` with joint `Fixed()`": [
        lambda _: add_pose(seen(), SEEN, joint=Fixed())
    ],
    "`add_pose`, then `reparent`, to the same parent too": [
        lambda _: seen().reparent("cup", "table"),
        lambda _: seen().reparent("cup", "table", pose=UP),
        lambda _: seen().add_frame("hand", "table").reparent("cup", "hand"),
        lambda _: (
            seen()
            .set_covariance("cup", np.eye(6))
            .add_frame("hand", "table")
            .reparent("cup", "hand")
        ),
        lambda _: arrays_of(seen(), lambda arrays: arrays.reparent("cup", "table")),
        lambda _: arrays_of(
            seen().add_frame("hand", "table"), lambda arrays: arrays.reparent("cup", "hand")
        ),
        lambda _: arrays_of(
            seen().add_frame("hand", "table"),
            lambda arrays: arrays.reparent("cup", "hand", pose=UP),
        ),
    ],
    "`add_pose`, then `Buffer.set_transform_static`": [lambda _: buffered(seen(), is_static=True)],
    "`add_frame` with or without a pose, body or joint `Fixed()`": [
        lambda _: by_frame(),
        lambda _: by_frame(pose=UP),
        lambda _: by_frame(joint=Fixed()),
        lambda _: SceneGraph("table").add_body("b").add_frame("cup", "table", body="b"),
        lambda _: arrays_of(
            SceneGraph("table"), lambda arrays: arrays.add_frame("cup", "table", pose=UP)
        ),
    ],
    "`add_frame`, then `set_pose`": [lambda _: stated().set_pose("cup", UP @ UP)],
    "`attach`, `mount`": [
        lambda _: apart().attach("cup", "table", pose=UP),
        lambda _: arrays_of(apart(), lambda arrays: arrays.attach("cup", "table", pose=UP)),
        lambda _: SceneGraph("table").mount(SceneGraph("cup"), "table", prefix="", pose=UP),
        lambda _: SceneGraph("table").mount(seen().extract("cup"), "table", prefix="", pose=UP),
    ],
    "fixed joint of URDF, SDF or USD, body in a body of MJCF": [
        lambda folder: loaded(folder, "scene.urdf", URDF),
        lambda folder: loaded(folder, "scene.sdf", SDF),
        lambda folder: converted(SceneGraph("world").mount(stated(), "world"), folder, ".usda"),
        lambda folder: loaded(folder, "scene.xml", MJCF.format('<geom type="sphere" size="0.1"/>')),
    ],
    "frame of robray, `Transform` of RSG, node of glTF, frame of JSON": [
        lambda folder: loaded(
            folder, "a.robray", "frame table {} frame cup { parent table; translation [0, 0, 1]; }"
        ),
        *[
            lambda folder, suffix=suffix: converted(stated(), folder, suffix)
            for suffix in (".rsg", ".gltf", ".json")
        ],
    ],
    "`Buffer.set_transform_static`": [
        lambda _: buffered(is_static=True),
        lambda _: buffered(apart(), is_static=True),
        lambda _: buffered(buffered(is_static=False), is_static=True),
    ],
    "`add_pose`, then `finite_difference` of two versions": [
        lambda _: finite_difference(seen(), seen().set_pose("cup", UP @ Pose(SPEED[:3])), 1.0)
    ],
    "`add_pose`, then `set_twist`, `add_twist` or `add_fact` of a twist": [
        lambda _: seen().set_twist("cup", SPEED, relative_to_body="table"),
        lambda _: add_twist(seen(), TOLD),
        lambda _: add_fact(seen(), TOLD),
        lambda _: arrays_of(
            seen(), lambda arrays: arrays.set_twist("cup", SPEED, relative_to_body="table")
        ),
    ],
    "joint `Revolute`, `Continuous`, `Prismatic` or `Free`": [
        lambda _: add_pose(apart(), SEEN, joint=Revolute([0, 0, 1])),
        lambda _: seen().set_joint("cup", Continuous([0, 0, 1])),
        lambda _: by_frame(joint=Prismatic([0, 0, 1])),
        lambda _: by_frame(joint=Free()),
    ],
}


def test_the_tables_of_the_page_are_those_tested() -> None:
    """Each row of the page has builders or queries here, and each of these a row."""
    assert [name for name, _ in rows("ways")] == list(WAYS)
    assert [name for name, _ in rows("queries")] == list(QUERIES)


# ------------------------------------------------------------------------------ queries of motion


def edge_of(scene: SceneGraph) -> str:
    """Return the frame below the edge between the cup and the table."""
    return "table" if scene.parent("table") == "cup" else "cup"


def velocity(scene: SceneGraph, kind: str) -> Any:
    """Return a velocity of the cup, in the axes of the table."""
    cup, table = scene.body("cup"), scene.body("table")
    if kind == "angular":
        return relate(scene, AngularVelocityCoord(cup, table, "[table]"))
    coord = LinearVelocityCoord if kind == "linear" else TwistCoord
    return relate(scene, coord(f"cup|{cup}", table, "[table]"))


def coord_of(scene: SceneGraph) -> TwistCoord:
    """Return the coordinates of the twist of the cup."""
    return TwistCoord(f"cup|{scene.body('cup')}", scene.body("table"), "[table]")


def zeros(scene: SceneGraph) -> np.ndarray[Any, Any]:
    """Return the configuration of zeros."""
    return np.asarray(scene.zero_configuration())


def with_masses(scene: SceneGraph) -> SceneGraph:
    """Return the scene whose table and cup have a mass."""
    return scene.set_inertia("cup", Inertia(1.0, [0, 0, 0])).set_inertia(
        "table", Inertia(2.0, [0, 0, 0])
    )


def without_stamps(scene: SceneGraph) -> SceneGraph:
    """Return the scene whose edge has no history."""
    return scene.set_stamped_poses(edge_of(scene), None)


def later(scene: SceneGraph) -> SceneGraph:
    """Return the scene half a second after the last stamped pose of its edge."""
    edge = edge_of(scene)
    scene = without_stamps(scene).add_stamped_pose(edge, scene.local_pose(edge), stamp=0.0)
    return at_stamp(scene, When(0.5, extrapolate=1.0))


def transported(scene: SceneGraph) -> Any:
    """Return a wrench on the table, as one on the cup."""
    coord = WrenchCoord(f"table|{scene.body('table')}", "partner", "[table]")
    return transport(
        scene.add_root("partner"), SemanticWrench(coord, [1, 0, 0, 0, 0, 0]), point="cup"
    )


def rigid_parts(scene: SceneGraph) -> Any:
    """Return what moves as one with the cup: whether the table does, their mass and their bias."""
    biased = set_wrench_bias(with_masses(scene), "table", [1, 0, 0, 0, 0, 0])
    mass = rigid_inertia(biased, "cup")
    assert mass is not None
    force = wrench_bias(biased, "cup").numbers[0]
    return "table" in rigid_frames(biased, "cup"), mass.mass, float(np.linalg.norm(force))


def places(scene: SceneGraph) -> Any:
    """Return numbers that depend on poses alone."""
    q = zeros(scene)
    pose = scene.pose("cup", relative_to="table", q=q)
    load = payload_wrench(with_masses(scene), scene.root("cup"), gravity=[0, 0, -9.81], q=q)
    edge = edge_of(scene)
    stamped = without_stamps(scene).add_stamped_pose(edge, scene.local_pose(edge), stamp=0.0)
    at_zero = gaussian_pose(stamped, "cup", relative_to="table", stamp=0.0)
    jacobian = scene.at(q).jacobian("cup")
    return [
        *pose.as_array(),
        *np.concatenate(load.numbers),
        *at_zero.mean.as_array(),
        *np.ravel(jacobian),
    ]


QUERIES: dict[str, list[Callable[[SceneGraph], Any]]] = {
    "`twist` and `relate` of a velocity, also at `scene.at(q, qd)`": [
        lambda scene: twist(scene, "cup", relative_to="table"),
        lambda scene: twist(scene, "cup", relative_to="table", q=zeros(scene), qd=zeros(scene)),
        lambda scene: twist(scene.at(zeros(scene), zeros(scene)), "cup", relative_to="table"),
        lambda scene: twist(scene.at(zeros(scene)), "table", relative_to="cup"),
        lambda scene: velocity(scene, "linear"),
        lambda scene: velocity(scene, "angular"),
        lambda scene: velocity(scene, "twist"),
        lambda scene: relate(scene.at(zeros(scene), zeros(scene)), coord_of(scene)),
        lambda scene: twist(without_stamps(scene), "cup", relative_to="table", stamp=0.0),
    ],
    "`gaussian_twist`, `acceleration`, `momentum`": [
        lambda scene: gaussian_twist(scene, coord_of(scene)),
        lambda scene: acceleration(
            scene, "cup", relative_to="table", q=zeros(scene), qd=zeros(scene), qdd=zeros(scene)
        ),
        lambda scene: momentum(
            with_masses(scene), scene.root("cup"), q=zeros(scene), qd=zeros(scene)
        ),
    ],
    "`twist_jacobian`, `velocity_ik`": [
        lambda scene: twist_jacobian(scene, "cup", relative_to="table", q=zeros(scene)),
        lambda scene: velocity_ik(
            scene, SemanticTwist(coord_of(scene), np.zeros(6)), q=zeros(scene)
        ),
    ],
    "`integrate`": [
        lambda scene: integrate(scene, 0.5),
        lambda scene: integrate(scene, 0.5, q=zeros(scene), qd=zeros(scene)),
    ],
    "`transport` of a wrench to the other body": [transported],
    "`scene.at(q, qd).twist`, `SceneArrays.twist`": [
        lambda scene: scene.at(zeros(scene), zeros(scene)).twist("cup", relative_to="table"),
        lambda scene: SceneArrays(scene).twist("cup", relative_to="table"),
        lambda scene: SceneArrays(scene).twist("cup", relative_to="table", qd=zeros(scene)),
        lambda scene: twist(SceneArrays(scene), "table", relative_to="cup"),
    ],
    "`twist_from_stamps` without stamped poses of the edge": [
        lambda scene: without_stamps(scene).twist_from_stamps(
            "cup", relative_to="table", first=0.0, second=1.0
        ),
        lambda scene: SceneArrays(without_stamps(scene)).twist_from_stamps(
            "cup", relative_to="table", first=0.0, second=1.0
        ),
    ],
    "`at_stamp` with `extrapolate`": [later],
    "`is_rigid`": [lambda scene: is_rigid(scene, "cup", "table")],
    "`rigid_frames`, `rigid_inertia`, `wrench_bias`": [rigid_parts],
    "`pose`, `gaussian_pose`, `payload_wrench`, `jacobian`, collisions": [places],
}
ERRORS: dict[str, type[TmkitError]] = {
    "`SemanticError`": SemanticError,
    "`SceneError`": SceneError,
    "`StampError`": StampError,
}
RESULTS = dict(rows("queries"))


def builders(motion: str) -> list[Any]:
    """Return the builders of the rows of a motion as parameters."""
    return [
        pytest.param(build, id=f"{name}/{number}")
        for name, result in rows("ways")
        for number, build in enumerate(WAYS[name])
        if result == motion
    ]


@pytest.mark.parametrize("build", builders("unknown"))
def test_every_query_rejects_every_unknown_motion(build: Builder, tmp_path: Path) -> None:
    """Each query has the documented result, and poses equal those with a fixed edge."""
    scene = build(tmp_path)
    fixed = scene.set_joint(edge_of(scene), Fixed())
    assert scene.joint(edge_of(scene)) == Unstated()
    assert scene != fixed
    for name, queries in QUERIES.items():
        for query in queries:
            if (error := ERRORS.get(RESULTS[name])) is StampError:
                with pytest.raises(
                    StampError, match=f"no twist edge leads over frame '{edge_of(scene)}'"
                ):
                    query(scene)
            elif error is not None:
                with pytest.raises(error, match=f"(?s){UNKNOWN}.*{WAYS_TO_STATE}"):
                    query(scene)
            elif RESULTS[name] == "`False`":
                assert query(scene) is False
            elif RESULTS[name] == "without the other body":
                assert query(scene) == (False, 1.0, 0.0)
            else:
                assert RESULTS[name] == "as across a fixed edge"
                assert query(scene) == query(fixed)


@pytest.mark.parametrize("build", builders("zero"))
def test_stated_edges_do_not_move(build: Builder, tmp_path: Path) -> None:
    """No query raises, and motions are zero; extrapolation still requires a twist edge."""
    scene = build(tmp_path)
    for name, queries in QUERIES.items():
        for query in queries if ERRORS.get(RESULTS[name]) is not StampError else ():
            query(scene)
    assert np.concatenate(velocity(scene, "twist").numbers).tolist() == [0.0] * 6
    assert is_rigid(scene, "cup", "table")
    assert rigid_parts(scene) == (True, 3.0, 1.0)
    assert integrate(scene, 1.0) == scene
    assert (
        np.asarray(scene.at(zeros(scene), zeros(scene)).twist("cup", relative_to="table")).tolist()
        == [0.0] * 6
    )


@pytest.mark.parametrize("build", builders("twist"))
def test_twists_state_the_motion_of_a_measured_pose(build: Builder, tmp_path: Path) -> None:
    """Every query answers with the twist; the edge still has no joint."""
    scene = build(tmp_path)
    assert scene.joint("cup") == Unstated()
    np.testing.assert_allclose(np.concatenate(velocity(scene, "twist").numbers), SPEED, atol=1e-12)
    np.testing.assert_allclose(gaussian_twist(scene, coord_of(scene)).mean, SPEED, atol=1e-12)
    np.testing.assert_allclose(
        SceneArrays(scene).twist("cup", relative_to="table"), SPEED, atol=1e-12
    )
    np.testing.assert_allclose(
        scene.at([], []).twist("cup", relative_to="table"), SPEED, atol=1e-12
    )
    moved = (
        integrate(scene, 2.0).local_pose("cup").translation - scene.local_pose("cup").translation
    )
    np.testing.assert_allclose(moved, 2.0 * SPEED[:3], atol=1e-12)
    moved = later(scene).local_pose("cup").translation - scene.local_pose("cup").translation
    np.testing.assert_allclose(moved, 0.5 * SPEED[:3], atol=1e-12)
    assert not is_rigid(scene, "cup", "table")


@pytest.mark.parametrize("build", builders("by `qd`"))
def test_joints_move_as_their_velocities_state(build: Builder, tmp_path: Path) -> None:
    """Without ``qd`` the motion is unknown, with it it is that of the joint."""
    scene = build(tmp_path)
    with pytest.raises(SemanticError, match="pass q"):
        twist(scene, "cup", relative_to="table", q=zeros(scene))
    moving = twist(scene, "cup", relative_to="table", q=zeros(scene), qd=zeros(scene) + 1.0)
    expected = [0.0] * 6
    if scene.joint_names:
        expected[2 if scene.joint("cup").type == "prismatic" else 5] = 1.0
    np.testing.assert_allclose(np.concatenate(moving.numbers), expected, atol=1e-12)


def test_a_fact_leaves_the_statement_of_an_edge() -> None:
    """An exact pose replaces an observed edge between the same bodies, with its joint."""
    noisy = {
        "frame": "cup",
        "relative_to": "table",
        "evidence": Evidence(covariance=1e-6 * np.eye(6)),
    }
    observed = add_fact(apart(), Pose([0, 0, 1.0001]), **noisy)
    for scene, joint in ((observed, Unstated()), (observed.set_joint("cup", Fixed()), Fixed())):
        exact = add_fact(scene, UP, frame="cup", relative_to="table")
        assert exact.local_pose("cup") == UP
        assert exact.joint("cup") == joint
    told = SceneGraph("room").add_frame("table", "room").add_frame("shelf", "room").add_root("cup")
    told = add_fact(told.set_joint("table", Fixed()), UP, frame="cup", relative_to="shelf")
    assert (told.joint("cup"), told.joint("table")) == (Unstated(), Fixed())


def test_only_an_edge_between_bodies_can_be_of_unknown_motion() -> None:
    """Frames of one body do not move against each other, whatever is stated; a root has no edge."""
    scene = SceneGraph("table").add_frame("leg", "table", joint=Unstated(), body="table")
    assert scene.joint("leg") == Fixed()
    assert scene.set_joint("leg", Unstated()) is scene
    assert SceneArrays(scene).freeze() == scene
    arrays = SceneArrays(scene)
    arrays.set_joint("leg", Unstated())
    arrays.add_frame("foot", "leg", body="table", joint=Unstated())
    assert arrays.freeze().joint("foot") == arrays.freeze().joint("leg") == Fixed()
    on_body = SceneGraph(root=None).add_body("b").add_root("x", body="b").add_root("y", body="b")
    pose = SemanticPose(PoseCoord("{y}|b", "{x}|b", "[x]"), UP)
    assert add_pose(on_body, pose).joint("y") == Fixed()
    with pytest.raises(SceneError, match="frame 'table' is a root, which has no joint"):
        scene.set_joint("table", Unstated())


def test_edits_that_are_rejected_leave_a_motion_unknown() -> None:
    """A reparenting that fails, in a scene and in its arrays, states nothing."""
    scene = seen().add_frame("handle", "cup")
    with scene.edit() as edit:
        for options in ({}, {"pose": UP}):
            with pytest.raises(SceneError, match="its descendant"):
                edit.reparent("cup", "handle", **options)
    assert edit.finish() == scene
    arrays = SceneArrays(scene)
    with pytest.raises(SceneError, match="its descendant"):
        arrays.reparent("cup", "handle")
    assert arrays.freeze() == scene


def test_files_that_cannot_hold_an_unknown_motion_are_rejected(tmp_path: Path) -> None:
    """URDF, USD and robray have fixed edges only."""
    scene = SceneGraph("world").mount(seen(), "world")
    for suffix in (".urdf", ".usda", ".robray"):
        with pytest.raises(SceneError, match=r"(?i)cannot hold this scene.*joint"):
            convert_scene(scene, tmp_path / f"scene{suffix}")


def test_scenes_without_unknown_motions_have_the_state_of_earlier_versions() -> None:
    """Pickles and JSON of other joints are unchanged by the type for unknown motion."""
    assert Fixed().__getstate__()[0] == 0
    assert Free().__getstate__()[0] == 4
    assert Unstated().__getstate__()[0] == 5
    documents = [scene_to_dict(scene)["frames"][1]["joint"] for scene in (stated(), seen())]
    assert documents == [{"type": "fixed"}, {"type": "unstated"}]
    assert stated().digest() != seen().digest()
    assert stated().digest() == by_frame(pose=UP, joint=Fixed()).digest()


@pytest.mark.parametrize("joint", [Fixed(), Free(), Unstated()], ids=repr)
def test_trees_joined_inside_their_bodies_keep_their_joints(joint: Joint) -> None:
    """A fact joins two trees with two shared bodies by edges with stated motion."""
    scene = SceneGraph(root=None).add_root("a", body=None).add_frame("b", "a", pose=UP, joint=joint)
    scene = (
        scene.add_root("c").add_frame("a2", "c", body="a").add_frame("b2", "c", pose=UP, body="b")
    )
    for frame, other in (("a2", "a"), ("a", "a2")):
        made = add_fact(scene, Pose(), frame=frame, relative_to=other)
        assert made.root("b2") == made.root("a")
        between = [
            f for f in made.frame_names if (p := made.parent(f)) and made.body(p) != made.body(f)
        ]
        assert len(between) == 2
        assert {made.joint(f) for f in between} <= {joint, Fixed()}
