"""Press buttons with the closed hand: an action of one's own, composed of basic motions."""

from collections.abc import Iterator, Mapping
from math import pi

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.manipulation import (
    ActionContext,
    ApplyEffects,
    Candidate,
    CloseHand,
    MoveStraight,
    MoveTo,
    Sequence,
    Touch,
)
from tmkit.pddl import GroundAction, Not, State, make_action, make_domain, make_predicate
from tmkit.plans import ClassEffect
from tmkit.tamp import DomainSemantics, PythonDomain

pressed = make_predicate("pressed", "?b - button")
press = make_action(
    "press", "?b - button", needs=[Not(pressed("?b"))], adds=[pressed("?b")], deletes=[]
)


class ButtonSemantics(DomainSemantics):
    """A button is a frame of class `button`, pressed if it has the class `pressed`."""

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return the buttons."""
        return dict.fromkeys(scene.frames_of_class("button"), "button")

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return the pressed buttons."""
        del objects, q
        return State(pressed.fact(button) for button in scene.frames_of_class("pressed"))

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield presses along the z axis of the button, with the hand turned about it."""
        (button,) = action.arguments
        pose = context.scene.pose(button, q=context.q)
        for turn in (0.0, pi / 2, pi, -pi / 2):
            above = pose @ tk.Pose.from_rpy([0.0, 0.0, 0.1], [pi, 0.0, turn])
            yield Sequence(
                (
                    CloseHand(),
                    MoveTo(above, f"above {button}"),
                    Touch(button, by=tk.Pose([0.0, 0.0, 0.1]), depth=0.001),
                    MoveStraight(by=tk.Pose([0.0, 0.0, -0.05]), touching=(button,)),
                    ApplyEffects((ClassEffect(button, added=("pressed",)),)),
                ),
                object=button,
            )


DOMAIN = PythonDomain(
    make_domain("buttons", types="button", predicates=[pressed], actions=[press]), ButtonSemantics
)


def button_scene() -> SceneGraph:
    """Return a Panda with a button on the table and one on a wall."""
    scene = tk.load_scene("panda_table")
    knob = [tk.AttachedShape(tk.Cylinder(0.02, 0.02), color=(0.8, 0.1, 0.1, 1.0))]
    wall = [tk.AttachedShape(tk.Box([0.02, 0.3, 0.4]), color=(0.7, 0.7, 0.7, 1.0))]
    top = tk.Pose([-0.1, 0.3, 0.035])
    front = tk.Pose.from_rpy([-0.02, 0.0, 0.1], [0.0, -pi / 2, 0.0])
    scene = scene.add_frame("start", "table", pose=top, shapes=knob, classes=["button"])
    scene = scene.add_frame("wall", "table", pose=tk.Pose([0.15, -0.2, 0.225]), shapes=wall)
    return scene.add_frame("stop", "wall", pose=front, shapes=knob, classes=["button"])


def main() -> None:
    """Plan, validate and simulate presses of both buttons."""
    goal = "(and (pressed start) (pressed stop))"
    result = tk.plan(button_scene(), domain=DOMAIN, goal=goal, robot="panda", seed=0)
    assert result.plan is not None, result.explanation
    for step in result.plan.steps:
        print(step.action, [segment.kind.value for segment in step.segments])
    print(tk.validate_plan(result.plan, domain=DOMAIN))
    report = tk.simulate(result.plan)
    print("simulation succeeded:", report.is_successful, *report.notes)


if __name__ == "__main__":
    main()
