"""A robot without a gripper: a point moves among obstacles to a region (PDDLStream's ``motion``).

The robot is two slides with a ball, and its gripper kind is ``none``. A region is a rectangle of
configurations, and each candidate of the action ``go`` is a motion to one that is drawn from it.
"""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate, MoveTo
from tmkit.pddl import GroundAction, State, make_action, make_domain, make_predicate
from tmkit.tamp import DomainSemantics, PythonDomain

REGIONS = {"green": ((0.8, 0.95), (0.8, 0.95)), "red": ((0.05, 0.15), (0.8, 0.95))}
"""Lower and upper x, and lower and upper y of each region [m]."""

N_SAMPLES = 20
"""Number of goal configurations that are drawn from a region."""

within = make_predicate("in", "?r - region")
go = make_action("go", "?r - region", needs=[], adds=[within("?r")], deletes=[])

POINT = tk.Manipulator(
    "point",
    base="world",
    tip="ball",
    tool="ball",
    joints=("slide_x", "slide_y"),
    ready={"slide_x": 0.05, "slide_y": 0.05},
    gripper_kind="none",
)


def make_scene() -> SceneGraph:
    """Return a ball on two slides among three boxes."""
    x = tk.Prismatic([1, 0, 0], lower=0.0, upper=1.0, velocity=0.5)
    y = tk.Prismatic([0, 1, 0], lower=0.0, upper=1.0, velocity=0.5)
    scene = tk.SceneGraph().add_frame("slide_x", "world", joint=x)
    scene = scene.add_frame("slide_y", "slide_x", joint=y)
    scene = scene.add_frame("ball", "slide_y", shapes=[tk.Sphere(0.02)])
    for number, (x_centre, y_centre) in enumerate([(0.3, 0.3), (0.6, 0.6), (0.6, 0.2)]):
        pose, box = tk.Pose([x_centre, y_centre, 0.0]), tk.Box([0.15, 0.15, 0.1])
        scene = scene.add_frame(f"box{number}", "world", pose=pose, shapes=[box])
    return scene


class MotionSemantics(DomainSemantics):
    """The ball is in a region if its centre is."""

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return the regions."""
        del scene
        return dict.fromkeys(REGIONS, "region")

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return the regions that contain the ball."""
        del objects
        x, y, _ = scene.pose("ball", relative_to="world", q=q).translation
        facts = []
        for name, ((left, right), (near, far)) in REGIONS.items():
            if left <= x <= right and near <= y <= far:
                facts.append(within.fact(name))
        return State(facts)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield motions to configurations in the region."""
        (region,) = action.arguments
        (left, right), (near, far) = REGIONS[region]
        for _ in range(N_SAMPLES):
            goal = {
                "slide_x": context.rng.uniform(left, right),
                "slide_y": context.rng.uniform(near, far),
            }
            yield MoveTo(goal, f"in {region}")


def main() -> None:
    """Plan, validate, store and simulate."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    pddl = make_domain("motion", types="region", predicates=[within], actions=[go])
    domain = PythonDomain(pddl, MotionSemantics)
    result = tk.plan(make_scene(), domain=domain, goal="(in green)", robot=POINT, seed=0)
    print(result.explanation)
    assert result.plan is not None
    print(f"path of {result.plan.path_length:.2f} m")
    tk.save_plan(result.plan, out / "point_robot.json")
    plan = tk.load_plan(out / "point_robot.json")
    print(tk.validate_plan(plan, domain=domain))
    print(tk.simulate(plan))
    print("see", tk.save_html(plan, out / "point_robot.html"))


if __name__ == "__main__":
    main()
