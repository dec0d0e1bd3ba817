"""A domain built in Python, without a file: two cartons go from one tray to another.

The words are values, the meaning is a class, and the goal is put together from the words.
"""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate, Pick, Place
from tmkit.pddl import And, GroundAction, State, make_action, make_domain, make_predicate
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.tamp import DomainSemantics, PythonDomain

inside = make_predicate("in", "?i - item ?t - tray")
holding = make_predicate("holding", "?i - item")
hand_empty = make_predicate("handempty")

take = make_action(
    "take",
    "?i - item ?t - tray",
    needs=[inside("?i", "?t"), hand_empty()],
    adds=[holding("?i")],
    deletes=[inside("?i", "?t"), hand_empty()],
)
put = make_action(
    "put",
    "?i - item ?t - tray",
    needs=[holding("?i")],
    adds=[inside("?i", "?t"), hand_empty()],
    deletes=[holding("?i")],
)


class TrayMeaning(DomainSemantics):
    """Domain semantics: an object is a movable frame, in the tray that is its parent."""

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return objects and trays by name."""
        return dict.fromkeys(movable_frames(scene), "item") | dict.fromkeys(
            scene.frames_of_class("tray"), "tray"
        )

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return where each object is."""
        del q
        facts = []
        for object in movable_frames(scene):
            parent = scene.parent(object)
            if parent is not None and objects.get(parent) == "tray":
                facts.append(inside.fact(object, parent))
            elif parent == self.robot.tip:
                facts.append(holding.fact(object))
            else:
                raise SceneError(
                    f"object '{object}' is in no tray and not in the hand", frame=object
                )
        if not any(fact.predicate == holding.name for fact in facts):
            facts.append(hand_empty.fact())
        return State(facts)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps of the object, or places for it along the tray, from the middle outwards."""
        object, tray = action.arguments
        if action.name == take.name:
            for grasp in context.grasps(object):
                yield Pick(object, grasp)
            return
        (floor,), (carton,) = context.scene.shapes(tray), context.scene.shapes(object)
        height = (floor.shape.dimensions[2] + carton.shape.dimensions[2]) / 2
        for x in (0.0, 0.07, -0.07):
            yield Place(object, tray, Pose([x, 0.0, height]))


def main() -> None:
    """Plan in the domain, and check the plan by it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    words = make_domain(
        "trays", types="item tray", predicates=[inside, holding, hand_empty], actions=[take, put]
    )
    domain = PythonDomain(words, TrayMeaning)
    scene = tk.load_scene("panda_table", Path(__file__).parent / "trays" / "trays.robray")
    goal = And(tuple(inside(object, "right") for object in movable_frames(scene)))
    result = tk.plan(scene, domain=domain, goal=str(goal), robot="panda", seed=0)
    print(result.explanation)
    assert result.plan is not None
    for step in result.plan.steps:
        print(f"{step.action}: {step.choice}")
    print(tk.validate_plan(result.plan, domain=domain))
    print("see", tk.save_html(result.plan, folder / "python_domain.html"))


if __name__ == "__main__":
    main()
