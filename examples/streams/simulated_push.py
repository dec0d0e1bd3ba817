"""Pushes whose outcome is simulated: a stream pushes a box in pybullet and reads its final pose.

Two boxes are to lie in trays. One is of wood, the other is slippery and slides on after the hand
has stopped, which no geometric model of a push predicts. A stream draws pushes, a second one plans
and simulates each, and a test accepts those that leave the whole box in its tray, both in the plan
and in the simulation.

The example ``kitchen`` of PDDLStream has a stream of pushes too. It learns the final pose offline
and uses it as the pose in the plan. Here the plan has the pose of a push without slip, since a plan
in tmkit is validated without physics, and the simulated pose is a condition.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.manipulation import ActionMotion, Candidate, Follow, Push
from tmkit.motion import lies_in_region, time_path
from tmkit.pddl import State, make_domain, make_predicate
from tmkit.plans import SegmentKind
from tmkit.simulation import Simulation
from tmkit.spatial import Pose
from tmkit.tamp import PlanningOptions, PlanResult, PythonDomain
from tmkit.tamp.streams import SceneView, StreamSemantics, stream, stream_action

BOX_SIZE = (0.1, 0.1, 0.08)
"""Size of a box [m]."""

TRAY_SIZE = (0.16, 0.2)
"""Size of a tray along x and y [m]."""

WOOD_FRICTION = 0.6
"""Friction coefficient of the wooden box."""

ICE_FRICTION = 0.03
"""Friction coefficient of the slippery box."""

TRAYS = ("wooden_tray", "slippery_tray")
"""Frames of the trays."""

N_PUSHES = 12
"""Number of pushes that are drawn along each direction."""

SPEED_FRACTION = 0.2
"""Speed of a push as a fraction of the joints' speed limits, as in the execution of plans."""

RATE = 240.0
"""Commands per second of simulated time [Hz]."""

SETTLE_TIME = 0.25
"""Simulated time between two checks whether the box is at rest [s]."""

MAX_SETTLE_CHECKS = 20
"""Largest number of these checks after a push."""

REST_SPEED = 1e-3
"""Speed below which a box is at rest [m/s]."""

on = make_predicate("on", "?b - box ?s - surface")


@dataclass(frozen=True, eq=False)
class Outcome:
    """Planned motion of a push, and its simulated result.

    Attributes:
        box: frame of the box.
        motion: motion of the arm, and the scene with the planned final pose.
        scene: scene with the simulated final pose.
    """

    box: str
    motion: ActionMotion
    scene: tk.SceneGraph

    @property
    def slip(self) -> float:
        """Distance between the planned and the simulated final position [m]."""
        planned = self.motion.scene.local_pose(self.box)
        return planned.distance(self.scene.local_pose(self.box))[0]


@stream("?b - box ?s - surface", gives="?u - push", certifies="(push ?b ?s ?u)")
def pushes(view: SceneView, b: str, s: str) -> Iterator[Push]:
    """Yield pushes of random length along the axes of a box that point to a surface."""
    middle = view.pose(s, relative_to=b).translation
    limits = np.array(TRAY_SIZE) / 2 - BOX_SIZE[0] / 2
    for _ in range(N_PUSHES):
        for axis in (0, 1):
            distance = middle[axis] + view.rng.uniform(-limits[axis], limits[axis])
            if abs(middle[1 - axis]) < limits[1 - axis]:
                direction = np.sign(distance) * np.eye(3)[axis]
                yield Push(b, tuple(direction.tolist()), float(abs(distance)))


@stream("?b - box ?u - push", gives="?e - outcome", certifies="(outcome ?b ?u ?e)")
def outcomes(view: SceneView, b: str, u: Push) -> Iterator[Outcome]:
    """Yield the outcome of a push, or nothing if the arm cannot carry it out."""
    context = view.context
    arm = context.arms[view.robot.name]
    for attempt in u.refine(arm, context, seed=0):
        if isinstance(attempt, ActionMotion):
            yield Outcome(b, attempt, simulate_push(view, b, attempt))
            return


def simulate_push(view: SceneView, box: str, motion: ActionMotion) -> tk.SceneGraph:
    """Return the scene after the physical simulation of a push of a box."""
    scene, robot = view.scene, view.robot
    segment = next(part for part in motion.segments if part.kind is SegmentKind.PUSH)
    entries = [scene.joint_names.index(joint) for joint in segment.joint_names]
    q = np.array(scene.configuration(segment.gripper, base=view.q))
    q[entries] = segment.path[0]
    timed = time_path(
        segment.path,
        SPEED_FRACTION * robot.velocity_limits(scene),
        acceleration_limits=robot.acceleration_limits(scene),
        deviation=1e-3,
        rate=RATE,
    )
    with Simulation.from_scene(scene, q, robot=robot) as simulation:
        n_steps = round(1.0 / RATE / simulation.settings.time_step)
        n_settle = round(SETTLE_TIME / simulation.settings.time_step)
        simulation.step(n_settle)
        velocity = np.zeros_like(q)
        for positions, velocities in zip(timed.positions, timed.velocities, strict=True):
            q[entries], velocity[entries] = positions, velocities
            simulation.command(q, velocity)
            simulation.step(n_steps)
        for _ in range(MAX_SETTLE_CHECKS):
            simulation.step(n_settle)
            if simulation.speed(box) < REST_SPEED:
                break
        return simulation.current_scene()


@stream("?s - surface ?e - outcome", certifies="(ends-on ?e ?s)")
def ends_on(view: SceneView, s: str, e: Outcome) -> bool:
    """Accept outcomes whose box is on a surface, both as planned and as simulated."""
    del view
    scenes = (e.motion.scene, e.scene)
    return all(lies_in_region(scene, e.box, s, q=e.motion.q) for scene in scenes)


@stream_action(
    "?b - box ?from ?s - surface",
    needs=[on("?b", "?from")],
    adds=[on("?b", "?s")],
    deletes=[on("?b", "?from")],
    given="(push ?b ?s ?u) (outcome ?b ?u ?e) (ends-on ?e ?s)",
)
def push(view: SceneView, e: Outcome) -> Candidate:
    """Carry out the motion that was simulated."""
    del view
    return Follow(e.motion)


class Pushing(StreamSemantics):
    """Boxes on a table and in trays."""

    domain = make_domain("pushing", types="box surface", predicates=[on], actions=[push.action])
    streams = (pushes, outcomes, ends_on)
    stream_actions = (push,)
    value_types: ClassVar[Mapping[str, type]] = {"push": Push, "outcome": Outcome}

    def objects(self, scene: tk.SceneGraph) -> Mapping[str, str]:
        """Return the boxes, the table and the trays."""
        boxes = dict.fromkeys(scene.frames_of_class("movable"), "box")
        return {**boxes, "table": "surface", **dict.fromkeys(TRAYS, "surface")}

    def state(
        self, scene: tk.SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]
    ) -> State:
        """Return where each box is."""
        boxes = [name for name, kind in objects.items() if kind == "box"]
        places = {
            box: next((tray for tray in TRAYS if lies_in_region(scene, box, tray, q=q)), "table")
            for box in boxes
        }
        return State(on.fact(box, place) for box, place in places.items())


DOMAIN = PythonDomain(Pushing.domain, Pushing)


def push_scene(seed: int, *, friction: float = ICE_FRICTION) -> tk.SceneGraph:
    """Return the Panda at its table with two boxes at random, and a tray before each.

    Args:
        seed: seed of the positions.
        friction: friction coefficient of the slippery box.
    """
    rng = np.random.default_rng(seed)
    scene = tk.load_scene("panda_table")
    mark = tk.AttachedShape(tk.Box([*TRAY_SIZE, 0.002]), collision=False)
    brown, blue = (0.7, 0.5, 0.3, 1.0), (0.6, 0.8, 0.9, 1.0)
    rows = (("wooden", WOOD_FRICTION, brown, -1.0), ("slippery", friction, blue, 1.0))
    for name, coefficient, color, side in rows:
        pose = Pose([-0.1, 0.12 * side, 0.026])
        scene = scene.add_frame(
            f"{name}_tray", "table", pose=pose, classes=["region"], shapes=[mark]
        )
        box = tk.AttachedShape(tk.Box(BOX_SIZE), color=color, friction=coefficient)
        x_offset, y_offset = rng.uniform(-0.02, 0.02), rng.uniform(-0.03, 0.03)
        pose = Pose([-0.1 + x_offset, 0.38 * side + y_offset, 0.025 + BOX_SIZE[2] / 2])
        scene = scene.add_frame(
            name, "table", pose=pose, joint=tk.Free(), classes=["movable"], shapes=[box]
        )
    return scene


def solve(scene: tk.SceneGraph, *, seed: int) -> PlanResult:
    """Return the result of planning to push both boxes into their trays."""
    return tk.plan(
        scene,
        domain=DOMAIN,
        goal="(and (on slippery slippery_tray) (on wooden wooden_tray))",
        robot="panda",
        options=PlanningOptions(seed=seed, max_iterations=4, suggest=False),
    )


def used_outcomes(result: PlanResult) -> list[Outcome]:
    """Return the outcomes of the pushes of a plan, in order."""
    assert result.plan is not None, result.explanation
    outcomes = [trial.value for trial in result.trials if trial.stream == "outcomes"]
    ends = [step.scene for step in result.plan.steps]
    return [value for end in ends for value in outcomes if value.motion.scene == end]


def main() -> None:
    """Plan, compare planned and simulated poses, validate, and simulate the plan."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of the scene and of planning")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder of the results"
    )
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    result = solve(push_scene(arguments.seed), seed=arguments.seed)
    assert result.plan is not None, result.explanation
    for step in result.plan.steps:
        print(step.action, step.choice)
    for use in result.diagnosis.streams:
        print(use)
    for outcome in used_outcomes(result):
        print(f"{outcome.box} slips by {1000 * outcome.slip:.1f} mm in the simulation of its push")
    print(tk.validate_plan(result.plan, domain=DOMAIN))
    report = tk.simulate(result.plan)
    print({name: str(error) for name, error in report.errors.items()})
    print("see", tk.save_html(result.plan, arguments.out / "simulated_push.html"))


if __name__ == "__main__":
    main()
