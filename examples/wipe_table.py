"""Wipe a region with a sponge in the hand; the coverage is computed from the motion."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.manipulation import (
    ActionContext,
    ActionMotion,
    ApplyEffects,
    ArmMotionPlanner,
    Candidate,
    MoveStraight,
    MoveTo,
    Pick,
    Sequence,
    Touch,
)
from tmkit.pddl import GroundAction, Not, State, make_action, make_domain, make_predicate
from tmkit.plans import ClassEffect, MotionFailure, Segment
from tmkit.tamp import DomainSemantics, PythonDomain

MIN_COVERAGE = 0.99
"""Smallest fraction of a wiped region that the sponge has covered."""

GRID_SPACING = 0.002
"""Spacing of the points of a region whose coverage is computed [m]."""

CONTACT_DISTANCE = 0.001
"""Largest distance between the sponge and the region in contact [m]."""

OVERLAP = 0.004
"""Overlap of neighbouring lanes, and of the sponge with the border of the region [m]."""

holding = make_predicate("holding", "?s - sponge")
wiped = make_predicate("wiped", "?r - region")
pick = make_action(
    "pick", "?s - sponge", needs=[Not(holding("?s"))], adds=[holding("?s")], deletes=[]
)
wipe = make_action(
    "wipe",
    "?r - region ?s - sponge",
    needs=[holding("?s"), Not(wiped("?r"))],
    adds=[wiped("?r")],
    deletes=[],
)


def size_of(scene: SceneGraph, frame: str) -> NDArray[np.float64]:
    """Return the size (3,) of the box on a frame [m]."""
    (attached,) = scene.shapes(frame)
    return np.array(attached.shape.dimensions)


def coverage(
    scene: SceneGraph,
    q: NDArray[np.float64],
    segments: Iterable[Segment],
    *,
    region: str,
    sponge: str,
) -> float:
    """Return the fraction of a region that the bottom of a held sponge covers in contact.

    Args:
        scene: scene with the sponge in the hand.
        q: (n_joints,) configuration before the segments.
        segments: motion of the wipe.
        region: frame with a box, whose top is wiped.
        sponge: frame with a box.
    """
    (length, width, height), half = size_of(scene, region), size_of(scene, sponge) / 2
    x, y = (np.arange(-side / 2, side / 2 + 1e-9, GRID_SPACING) for side in (length, width))
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    covered = np.zeros(len(points), dtype=bool)
    for segment in segments:
        for row in segment.path:
            q = scene.configuration(dict(zip(segment.joint_names, row, strict=True)), base=q)
            pose = scene.pose(sponge, relative_to=region, q=q)
            if pose.translation[2] - half[2] - height / 2 <= CONTACT_DISTANCE:
                axes = pose.rotation[:2, :2]
                local = (points - pose.translation[:2]) @ axes
                covered |= np.all(np.abs(local) <= half[:2], axis=1)
    return float(np.mean(covered))


@dataclass(frozen=True)
class Wipe:
    """Wipe a region of the table in parallel lanes with a held sponge."""

    region: str
    sponge: str

    def refine(
        self, arm: ArmMotionPlanner, context: ActionContext, *, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions that cover the region, and the failures of other attempts."""
        scene, q = context.scene, context.q
        (length, width, _), (a, b, height) = (
            size_of(scene, frame) for frame in (self.region, self.sponge)
        )
        x = (length - a) / 2 + OVERLAP / 2
        y = (width - b) / 2 + OVERLAP / 2
        lanes = np.linspace(-y, y, 1 + int(np.ceil(2 * y / (b - OVERLAP))))
        corners = [
            [end, lane, 0.0]
            for index, lane in enumerate(lanes)
            for end in ((-x, x) if index % 2 == 0 else (x, -x))
        ]
        pose = scene.pose(self.region, q=q)
        above = pose @ tk.Pose([corners[0][0], corners[0][1], height / 2 + 0.05])
        table = str(scene.parent(self.region))
        strokes = [
            MoveStraight(pose.rotate(np.subtract(end, start)), touching=(table,))
            for start, end in pairwise(corners)
        ]
        motion = Sequence(
            (
                MoveTo(above, f"above {self.region}", frame=self.sponge),
                Touch(table, by=[0.0, 0.0, -0.1]),
                *strokes,
                MoveStraight(by=[0.0, 0.0, 0.1], touching=(table,)),
                ApplyEffects((ClassEffect(self.region, added=("wiped",)),)),
            ),
            object=self.sponge,
        )
        for attempt in motion.refine(arm, context, seed=seed):
            if isinstance(attempt, MotionFailure):
                yield attempt
                continue
            fraction = coverage(scene, q, attempt.segments, region=self.region, sponge=self.sponge)
            if fraction >= MIN_COVERAGE:
                yield attempt
            else:
                yield MotionFailure("wiping", f"the sponge covers {fraction:.0%} of it")


class WipingSemantics(DomainSemantics):
    """A region is wiped if its frame has the class `wiped`."""

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return sponges and regions."""
        sponges = dict.fromkeys(scene.frames_of_class("movable"), "sponge")
        return sponges | dict.fromkeys(scene.frames_of_class("region"), "region")

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return the wiped regions and the sponge in the hand."""
        del objects, q
        sponges = scene.frames_of_class("movable")
        held = [name for name in sponges if scene.parent(name) == self.robot.tip]
        facts = [wiped.fact(region) for region in scene.frames_of_class("wiped")]
        return State([*facts, *(holding.fact(sponge) for sponge in held)])

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps of a sponge, or the wipe of a region."""
        if action.name == pick.name:
            for grasp in context.grasps(action.arguments[0]):
                yield Pick(action.arguments[0], grasp)
        else:
            yield Wipe(*action.arguments)


DOMAIN = PythonDomain(
    make_domain("wiping", types="sponge region", predicates=[holding, wiped], actions=[pick, wipe]),
    WipingSemantics,
)


def wiping_scene() -> SceneGraph:
    """Return a Panda with a sponge and a stained region on the table."""
    scene = tk.load_scene("panda_table")
    stain = tk.AttachedShape(
        tk.Box([0.2, 0.16, 0.001]), color=(0.5, 0.3, 0.1, 1.0), collision=False
    )
    foam = tk.AttachedShape(tk.Box([0.08, 0.05, 0.05]), color=(0.9, 0.8, 0.2, 1.0))
    scene = scene.add_frame(
        "stain", "table", pose=tk.Pose([-0.1, -0.2, 0.025]), shapes=[stain], classes=["region"]
    )
    return scene.add_frame(
        "sponge", "table", pose=tk.Pose([-0.1, 0.2, 0.05]), shapes=[foam], classes=["movable"]
    )


def main() -> None:
    """Plan, validate and simulate the wipe, and print the coverage of the plan."""
    result = tk.plan(wiping_scene(), domain=DOMAIN, goal="(wiped stain)", robot="panda", seed=0)
    assert result.plan is not None, result.explanation
    before, step = result.plan.steps
    print(step.action, [segment.kind.value for segment in step.segments])
    fraction = coverage(before.scene, before.q, step.segments, region="stain", sponge="sponge")
    print(f"{fraction:.1%} of the stain is covered")
    print(tk.validate_plan(result.plan, domain=DOMAIN))
    report = tk.simulate(result.plan)
    print("simulation succeeded:", report.is_successful, *report.notes)


if __name__ == "__main__":
    main()
