"""Objects of MoveIt's planning scene."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose as PoseMessage, TransformStamped
from moveit_msgs.msg import AttachedCollisionObject, CollisionObject, ObjectColor, PlanningScene
from publishers import await_true
from shape_msgs.msg import Mesh, MeshTriangle, Plane, SolidPrimitive

import tmkit as tk
from tmkit.spatial import Pose
from tmkit.world import Buffer, PlanningSceneSource
from tmkit.world.ros2.planning_scene import apply_planning_scene

POSE = Pose.from_rpy([0.4, 0.1, 0.6], [0.1, 0.2, 0.3])


@pytest.fixture
def scene() -> Any:
    """Scene with a Panda at a table, and two blocks."""
    return tk.load_scene("panda_table", "blocks2")


def pose_message(pose: Pose) -> PoseMessage:
    """Return a pose as a message."""
    x, y, z, *rotation = pose.as_array().tolist()
    message = PoseMessage()
    message.position.x, message.position.y, message.position.z = x, y, z
    message.orientation.x, message.orientation.y = rotation[:2]
    message.orientation.z, message.orientation.w = rotation[2:]
    return message


def box(name: str, pose: Pose = POSE, *, frame: str = "world", **fields: Any) -> CollisionObject:
    """Return a collision object that is a box, with its pose."""
    message = CollisionObject(id=name, pose=pose_message(pose), **fields)
    message.header.frame_id = frame
    shape = SolidPrimitive(type=SolidPrimitive.BOX, dimensions=[0.05, 0.06, 0.07])
    message.primitives, message.primitive_poses = [shape], [PoseMessage()]
    return message


def scene_message(*objects: Any, is_diff: bool = True) -> PlanningScene:
    """Return a planning scene of objects in the world and attached objects."""
    message = PlanningScene(is_diff=is_diff)
    message.robot_state.is_diff = is_diff
    for entry in objects:
        is_attached = isinstance(entry, AttachedCollisionObject)
        state, world = message.robot_state, message.world
        (state.attached_collision_objects if is_attached else world.collision_objects).append(entry)
    return message


def test_shapes_are_those_of_the_message(scene: Any) -> None:
    """Dimensions, axes and poses of all kinds, with subframes and a colour."""
    entry = box("thing")
    local = Pose([0.1, 0, 0])
    for kind, dimensions in ((2, [0.1]), (3, [0.4, 0.1]), (4, [0.5, 0.2])):
        entry.primitives.append(SolidPrimitive(type=kind, dimensions=dimensions))
        entry.primitive_poses.append(pose_message(local))
    corners = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    faces = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
    triangles = [MeshTriangle(vertex_indices=np.array(face, dtype=np.uint32)) for face in faces]
    points = [Point(x=x, y=y, z=z) for x, y, z in corners]
    entry.meshes = [Mesh(triangles=triangles, vertices=points)]
    entry.planes = [Plane(coef=[0.0, 3.0, 4.0, -10.0])]
    entry.subframe_names, entry.subframe_poses = ["handle"], [pose_message(local)]
    message = scene_message(entry)
    message.object_colors = [ObjectColor(id="thing")]
    message.object_colors[0].color.r = message.object_colors[0].color.a = 1.0
    result, faults = apply_planning_scene(scene, message)
    assert faults == ()
    shapes = result.shapes("thing")
    expected = [tk.Box([0.05, 0.06, 0.07]), tk.Sphere(0.1), tk.Cylinder(0.1, 0.4)]
    expected += [tk.Cone(0.2, 0.5), tk.Mesh(corners, faces)]
    assert [part.shape for part in shapes[:5]] == expected
    assert [part.pose for part in shapes[:5]] == [Pose(), local, local, local, Pose()]
    assert all(part.color == (1.0, 0.0, 0.0, 1.0) for part in shapes)
    plane = shapes[5].pose
    assert plane.rotation[:, 2] == pytest.approx([0.0, 0.6, 0.8])
    assert np.dot([0.0, 3.0, 4.0], plane.translation) == pytest.approx(10.0)
    assert result.pose("thing").is_close(POSE)
    assert result.pose("thing/handle").is_close(POSE @ local)
    assert result.body("thing/handle") == result.body("thing")


def test_the_pose_of_a_single_shape_is_that_of_the_object(scene: Any) -> None:
    """Most programs set only the pose of the shape."""
    entry = box("thing", Pose())
    entry.primitive_poses = [pose_message(POSE)]
    result, _ = apply_planning_scene(scene, scene_message(entry))
    assert result.pose("thing").is_close(POSE)
    assert result.shapes("thing")[0].pose == Pose()


def test_objects_are_moved_extended_and_removed(scene: Any) -> None:
    """Differences name what changes, and complete scenes all that there is."""
    scene, _ = apply_planning_scene(scene, scene_message(box("x"), box("y")))
    move = CollisionObject(id="x", operation=CollisionObject.MOVE)
    move.header.frame_id, move.pose = "world", pose_message(Pose([0, 0, 2.0]))
    extend = box("y", operation=CollisionObject.APPEND)
    moved, faults = apply_planning_scene(scene, scene_message(move, extend))
    assert faults == ()
    assert moved.pose("x") == Pose([0, 0, 2.0])
    assert moved.shapes("x") == scene.shapes("x")
    assert len(moved.shapes("y")) == 2
    gone = CollisionObject(id="x", operation=CollisionObject.REMOVE)
    removed, _ = apply_planning_scene(moved, scene_message(gone))
    assert "x" not in removed
    assert "y" in removed
    complete, _ = apply_planning_scene(removed, scene_message(box("z"), is_diff=False))
    assert "y" not in complete
    assert {"z", "a", "table"} <= {*complete.frame_names}
    everything = CollisionObject(operation=CollisionObject.REMOVE)
    empty, _ = apply_planning_scene(complete, scene_message(everything))
    assert empty == scene.remove_frame("x").remove_frame("y")


def test_an_object_is_attached_and_detached(scene: Any) -> None:
    """It moves with its link, and may touch some links."""
    arm = tk.load_manipulator("panda")
    q = arm.ready_configuration(scene)
    elsewhere = scene.configuration({"panda_joint1": 1.0}, base=q)
    scene, _ = apply_planning_scene(scene, scene_message(box("x")), q=q)
    attach = AttachedCollisionObject(link_name="panda_hand", touch_links=["panda_leftfinger"])
    attach.object.id = "x"
    new = AttachedCollisionObject(link_name="panda_hand", object=box("y", frame="panda_hand"))
    held, faults = apply_planning_scene(scene, scene_message(attach, new), q=q)
    assert faults == ()
    assert held.parent("x") == held.parent("y") == "panda_hand"
    assert held.pose("x", q=q).is_close(POSE)
    assert held.local_pose("y").is_close(POSE)
    assert held.is_allowed("x", "panda_leftfinger")
    detach = AttachedCollisionObject(link_name="panda_hand")
    detach.object.id, detach.object.operation = "x", CollisionObject.REMOVE
    free, faults = apply_planning_scene(held, scene_message(detach), q=elsewhere)
    assert faults == ()
    assert free.parent("x") == "world"
    assert free.pose("x").is_close(held.pose("x", q=elsewhere))
    complete, _ = apply_planning_scene(held, scene_message(box("x"), is_diff=False), q=q)
    assert complete.parent("x") == "world"
    assert "y" not in complete


def test_frames_are_those_of_the_scene_or_of_the_message(scene: Any) -> None:
    """Links, objects, subframes and fixed transforms are frames."""
    fixed = TransformStamped(child_frame_id="map")
    fixed.header.frame_id, fixed.transform.translation.z = "panda_link0", 0.5
    first = box("x", frame="map")
    first.subframe_names, first.subframe_poses = ["tip"], [pose_message(Pose([0, 0, 0.1]))]
    message = scene_message(first, box("y", Pose([0.1, 0, 0]), frame="x/tip"))
    message.fixed_frame_transforms = [fixed]
    result, faults = apply_planning_scene(scene, message)
    assert faults == ()
    root_from_map = scene.pose("panda_link0") @ Pose([0, 0, 0.5])
    assert result.pose("x").is_close(root_from_map @ POSE)
    assert result.pose("y").is_close(result.pose("x/tip") @ Pose([0.1, 0, 0]))


def test_movable_objects_stand_on_their_support(scene: Any) -> None:
    """A plan takes them from there, whether they are new or known."""
    top = scene.pose("a") @ Pose([0, 0, 0.002])
    other = scene.pose("b") @ Pose([0.0, 0.13, 0.012])
    message = scene_message(box("a", top), box("cup", other))
    result, faults = apply_planning_scene(scene, message, classes={"cup": ["movable"]})
    assert faults == ()
    assert (result.parent("a"), result.parent("cup")) == ("table", "table")
    assert result.classes("a") == scene.classes("a")
    assert result.classes("cup") == ("movable",)
    low = result.pose("cup").translation[2] - 0.035
    assert low == pytest.approx(scene.pose("a").translation[2] - 0.025, abs=1e-9)


def faulty(name: str) -> CollisionObject:
    """Return an object with a fault."""
    entry = box("x")
    if name == "norm":
        entry.pose.orientation.x = entry.pose.orientation.y = 0.0
        entry.pose.orientation.z = entry.pose.orientation.w = 0.0
    elif name == "nan":
        entry.primitive_poses[0].position.x = math.nan
    elif name == "frame":
        entry.header.frame_id = "panda_link_0"
    elif name == "loop":
        entry.header.frame_id = "ring"
    elif name == "size":
        entry.primitives[0].dimensions = [0.1, 0.1, -0.1]
    elif name == "dimensions":
        entry.primitives[0].dimensions = [0.1]
    elif name == "prism":
        entry.primitives[0].type = SolidPrimitive.PRISM
    elif name == "poses":
        entry.primitive_poses.append(PoseMessage())
    elif name == "index":
        corner = np.array([0, 1, 7], dtype=np.uint32)
        entry.meshes = [Mesh(triangles=[MeshTriangle(vertex_indices=corner)], vertices=[Point()])]
    elif name == "huge":
        entry.meshes = [Mesh(triangles=[MeshTriangle()] * 2_000_001, vertices=[Point()])]
    elif name == "plane":
        entry.planes = [Plane()]
    elif name == "empty":
        entry.primitives, entry.primitive_poses = [], []
    elif name == "operation":
        entry.operation = b"\x09"
    elif name == "link":
        entry.id = "panda_link3"
    elif name == "subframes":
        entry.subframe_names = ["tip"]
    return entry


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("norm", "quaternion of norm 1"),
        ("nan", "finite numbers"),
        ("frame", "unknown frame 'panda_link_0'; did you mean 'panda_link0'"),
        ("loop", "unknown frame 'ring'"),
        ("size", "positive"),
        ("dimensions", "a box has 3 dimensions"),
        ("prism", "primitives of type 5 are not supported"),
        ("poses", "1 primitive shapes have 2 poses"),
        ("index", "a face that names vertex 1"),
        ("huge", "a mesh has 2000001 triangles, more than 2000000"),
        ("plane", "a plane needs a finite normal"),
        ("empty", "it has no shapes"),
        ("operation", "unknown operation 9"),
        ("link", "a frame of the robot has this name"),
        ("subframes", "1 subframes have 0 poses"),
    ],
)
def test_a_faulty_object_is_as_before(name: str, message: str, scene: Any) -> None:
    """The others are applied, and nothing is lost."""
    scene, _ = apply_planning_scene(scene, scene_message(box("x")))
    before = {frame: scene.shapes(frame) for frame in ("x", "panda_link3")}
    update = scene_message(faulty(name), box("y"), is_diff=False)
    for child, parent in (("ring", "rong"), ("rong", "ring")):
        fixed = TransformStamped(child_frame_id=child)
        fixed.header.frame_id = parent
        update.fixed_frame_transforms.append(fixed)
    result, faults = apply_planning_scene(scene, update)
    (fault,) = faults
    assert fault.startswith(f"object '{'panda_link3' if name == 'link' else 'x'}': ")
    assert message in fault
    assert "y" in result
    if name != "link":
        assert {frame: result.shapes(frame) for frame in before} == before


def test_messages_arrive_in_a_live_world(scene: Any, robot: Any, repeat: Any) -> None:
    """Objects are placed at the measured joints, and faults are listed."""
    world = Buffer(scene=scene)
    attach = AttachedCollisionObject(link_name="panda_hand", object=box("held"))
    message = scene_message(box("x"), faulty("norm"), attach)
    with PlanningSceneSource(world) as source:
        repeat(lambda _: robot.publish(message, "/monitored_planning_scene"))
        await_true(lambda: "held" in world.scene)
        await_true(lambda: source.rejections)
    assert world.scene.parent("held") == "panda_hand"
    assert world.scene.pose("x").is_close(POSE)
    assert "/monitored_planning_scene: object 'x': " in source.rejections[0]
