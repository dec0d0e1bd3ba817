"""A rover photographs rocks: a stream gives configurations from which a rock is visible.

The camera of the rover sees a rock inside its view cone if no body is on the ray between them. A
stream draws configurations around a rock, a test checks cone and ray, and the built-in stream
``paths`` gives the drive. Screens hide the rocks on some sides, most of all from near. The
explanation of a rock behind screens on all sides names the test and its number of rejections.

The example ``rovers`` of PDDLStream has several rovers, samples of soil, and a lander to which
pictures are sent over a second line of sight. Its stream ``inverse-visibility`` certifies the ray
at once with the configuration. Here the ray is a test, so the rejections are counted.
"""

import argparse
from collections.abc import Iterator, Mapping
from math import atan2, cos, pi, sin
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.manipulation import ActionMotion, ApplyEffects, Candidate, Follow, Sequence
from tmkit.motion import CollisionWorld
from tmkit.pddl import Not, State, make_domain, make_predicate
from tmkit.plans import CameraModel, ClassEffect
from tmkit.spatial import Pose
from tmkit.tamp import PlanningOptions, PlanResult, PythonDomain
from tmkit.tamp.streams import SceneView, StreamSemantics, paths, stream, stream_action

N_VIEWS = 60
"""Number of configurations that are drawn around a rock."""

FIELD_SIZE = 6.0
"""Edge length of the field in which the rover drives [m]."""

CAMERA = {
    "position_deviation": 0.0,
    "turn_deviation": 0.0,
    "field_of_view": 0.9,
    "nearest": 0.4,
    "farthest": 2.0,
}
"""Attributes of the camera's frame: see :class:`tmkit.plans.CameraModel`."""

ROVER = tk.Manipulator(
    "rover",
    base="field",
    tip="rover",
    tool="rover",
    joints=("rover_x", "rover_y", "rover_yaw"),
    ready={"rover_x": 0.0, "rover_y": 0.0, "rover_yaw": 0.0},
    gripper_kind="none",
)

photographed = make_predicate("photographed", "?r - rock")


@stream("?r - rock", gives="?q - configuration", certifies="(view ?r ?q)")
def views(view: SceneView, r: str) -> Iterator[NDArray[np.float64]]:
    """Yield configurations of the rover around a rock, at random, with the camera towards it."""
    x, y, _ = view.pose(r).translation
    for _ in range(N_VIEWS):
        distance = view.rng.uniform(CAMERA["nearest"], CAMERA["farthest"])
        angle = view.rng.uniform(-pi, pi)
        place = np.array([x - distance * cos(angle), y - distance * sin(angle)])
        if np.all(np.abs(place) < FIELD_SIZE / 2 - 0.3):
            yield np.array([*place.tolist(), angle])


@stream("?r - rock ?q - configuration", certifies="(visible ?r ?q)")
def sees(view: SceneView, r: str, q: NDArray[np.float64]) -> bool:
    """Accept configurations with a rock in the view cone and no body on the ray to it."""
    scene = view.scene
    if CameraModel.of(scene, "camera").fault(scene, r, q=q) is not None:
        return False
    return not bodies_on_ray(scene, q, "camera", r)


def bodies_on_ray(scene: tk.SceneGraph, q: NDArray[np.float64], start: str, end: str) -> set[str]:
    """Return the frames, beside the rover and the end, that a ray between two origins meets."""
    first, last = (scene.pose(frame, q=q).translation for frame in (start, end))
    direction, length = last - first, float(np.linalg.norm(last - first))
    pitch = atan2(float(np.hypot(*direction[:2])), float(direction[2]))
    yaw = atan2(float(direction[1]), float(direction[0]))
    pose = Pose.from_rpy(((first + last) / 2).tolist(), [0.0, pitch, yaw])
    ray = tk.AttachedShape(tk.Cylinder(1e-3, length))
    scene = scene.add_frame("ray", scene.root(end), pose=pose, shapes=[ray])
    contacts = CollisionWorld(scene, movable=["ray"]).contacts(q)
    frames = {
        name
        for contact in contacts
        for name in (contact.frame_a, contact.frame_b)
        if "ray" in (contact.frame_a, contact.frame_b)
    }
    return frames - {"ray", end, "rover"}


@stream_action(
    "?r - rock",
    needs=[Not(photographed("?r"))],
    adds=[photographed("?r")],
    given="(view ?r ?q) (visible ?r ?q) (motion ?q ?m)",
)
def photograph(view: SceneView, r: str, m: ActionMotion) -> Candidate:
    """Drive to the view and take a picture."""
    del view
    return Sequence((Follow(m), ApplyEffects((ClassEffect(r, added=("photographed",)),))))


class Rovers(StreamSemantics):
    """Rocks in a field, of which the rover takes pictures."""

    domain = make_domain(
        "rovers", types="rock", predicates=[photographed], actions=[photograph.action]
    )
    streams = (views, sees, paths)
    stream_actions = (photograph,)

    def objects(self, scene: tk.SceneGraph) -> Mapping[str, str]:
        """Return the rocks."""
        return dict.fromkeys(scene.frames_of_class("rock"), "rock")

    def state(
        self, scene: tk.SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]
    ) -> State:
        """Return the rocks with a picture."""
        del objects, q
        return State(photographed.fact(rock) for rock in scene.frames_of_class("photographed"))


DOMAIN = PythonDomain(Rovers.domain, Rovers)


def rover_scene(seed: int, *, n_rocks: int = 3, n_screens: int = 2) -> tk.SceneGraph:
    """Return a rover in a field with rocks at random, and screens around each.

    Args:
        seed: seed of the poses.
        n_rocks: number of rocks, at most 6.
        n_screens: number of screens around each rock; with 4 of them it is hidden on all sides.
    """
    rng = np.random.default_rng(seed)
    limit = FIELD_SIZE / 2
    x, y = (
        tk.Prismatic(axis, lower=-limit, upper=limit, velocity=0.5)
        for axis in ([1, 0, 0], [0, 1, 0])
    )
    scene = tk.SceneGraph().add_frame("field", "world")
    scene = scene.add_frame("rover_x", "field", joint=x)
    scene = scene.add_frame("rover_y", "rover_x", joint=y)
    yaw = tk.Revolute([0, 0, 1], lower=-2 * pi, upper=2 * pi, velocity=1.0)
    body = tk.AttachedShape(tk.Cylinder(0.18, 0.3), Pose([0.0, 0.0, 0.2]))
    scene = scene.add_frame("rover_yaw", "rover_y", joint=yaw)
    scene = scene.add_frame("rover", "rover_yaw", shapes=[body])
    forwards = Pose.from_rpy([0.1, 0.0, 0.5], [0.0, pi / 2 + 0.2, 0.0])
    scene = scene.add_frame("camera", "rover", pose=forwards, classes=["camera"])
    scene = scene.set_attributes("camera", CAMERA)
    stone = tk.AttachedShape(tk.Sphere(0.08), color=(0.6, 0.4, 0.3, 1.0))
    screen = tk.AttachedShape(tk.Box([0.05, 0.65, 0.8]), color=(0.5, 0.6, 0.7, 0.7))
    for number in range(n_rocks):
        angle = 2 * pi * (number + rng.uniform(-0.2, 0.2)) / n_rocks
        distance = rng.uniform(1.6, 2.0)
        rock = f"rock{number}"
        pose = Pose([distance * cos(angle), distance * sin(angle), 0.08])
        scene = scene.add_frame(rock, "field", pose=pose, classes=["rock"], shapes=[stone])
        turn = rng.uniform(-pi, pi)
        for side in range(n_screens):
            offset = Pose.from_rpy([0.0, 0.0, 0.33], [0.0, 0.0, turn + side * pi / 2])
            pose = offset @ Pose([0.35, 0.0, 0.0])
            scene = scene.add_frame(f"screen{number}{side}", rock, pose=pose, shapes=[screen])
    return scene


def solve(scene: tk.SceneGraph, *, seed: int) -> PlanResult:
    """Return the result of planning to photograph all rocks."""
    goals = " ".join(f"(photographed {rock})" for rock in scene.frames_of_class("rock"))
    options = PlanningOptions(seed=seed, max_iterations=2, suggest=False)
    return tk.plan(scene, domain=DOMAIN, goal=f"(and {goals})", robot=ROVER, options=options)


def main() -> None:
    """Plan and validate, and explain why a rock behind four screens has no picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of the scene and of planning")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder of the results"
    )
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    result = solve(rover_scene(arguments.seed), seed=arguments.seed)
    assert result.plan is not None, result.explanation
    for step in result.plan.steps:
        print(step.action, step.choice)
    for use in result.diagnosis.streams:
        print(use)
    print(tk.validate_plan(result.plan, domain=DOMAIN))
    hidden = solve(rover_scene(arguments.seed, n_rocks=1, n_screens=4), seed=arguments.seed)
    print(hidden.explanation)
    print("see", tk.save_html(result.plan, arguments.out / "visibility.html"))


if __name__ == "__main__":
    main()
