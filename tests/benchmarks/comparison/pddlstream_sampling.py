"""Streams of PDDLStream for a domain of tmkit, and execution of its plans in the whole scene.

Invariants: samples for an action use the fixed scene and the objects of the action alone;
a motion begins at the start configuration of the arm, wherever the base is.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import ConfigurationError, SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation import (
    ActionContext,
    ActionMotion,
    ArmMotionPlanner,
    Candidate,
    Grasp,
    MoveTo,
    Pick,
    Place,
    Sequence as InTurn,
)
from tmkit.motion.path_constraints import interpolate_path
from tmkit.pddl import Action, GroundAction
from tmkit.plans import Plan, Segment
from tmkit.plans.continuous_goals import ContinuousGoal
from tmkit.plans.failures import MotionFailure
from tmkit.plans.values import PlanStep
from tmkit.robots import movable_frames
from tmkit.spatial import Pose
from tmkit.tamp.domains.action_costs import with_costs
from tmkit.tamp.goals.compilation import GoalDomain
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import PlanningProblem
from tmkit.tamp.seed_run import planning_context
from tmkit.tamp.version_tree import SceneVersion

_log = logging.getLogger(__name__)
# attempts at the motion of one sample; of one action when the plan is carried out
_MOTIONS, _TRIES = 8, 24
_STANDS = 8  # visits of the domain for places of the base
# distance [rad] or [m] between configurations at which a motion is checked against an object
_STEP = 0.05

Configuration = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rest:
    """Place of an object: on a frame, which may be another object with a place."""

    item: str
    support: str
    pose: Pose
    below: Rest | None = None
    argument: str | None = None
    candidate: Place | None = None

    @property
    def chain(self) -> tuple[Rest, ...]:
        """The rests of the objects below, the lowest first, and this one."""
        return (*(self.below.chain if self.below is not None else ()), self)


@dataclass(frozen=True, eq=False)
class Choice:
    """Output of a stream, a grasp or base pose; to PDDLStream, equal values are one object."""

    value: Any


@dataclass(frozen=True, eq=False)
class Motion:
    """Motion of one sample from the start, a candidate in every scene where it is free.

    Attributes:
        items: the objects that it has seen.
        parts: the segments with scenes and configurations (k, n_joints).
        cleared: the rests at which another object is not, or is, in its way.
    """

    items: frozenset[str]
    parts: tuple[tuple[Segment, SceneGraph, Configuration], ...]
    choice: str
    cleared: dict[Rest, bool] = field(default_factory=dict)

    def refine(
        self, arm: ArmMotionPlanner, context: ActionContext, *, seed: int
    ) -> Iterator[ActionMotion]:
        """Yield the stored motion with the other objects of the scene on their supports."""
        del seed
        scene, q = context.scene, context.q
        segments: list[Segment] = []
        for segment, *_ in self.parts:
            touching = {*segment.allowed_contacts, *arm.primitives.rules.allowed_contacts(scene)}
            segments.append(replace(segment, allowed_contacts=tuple(sorted(touching))))
            scene, q = segment.end(scene, q)
        yield ActionMotion(tuple(segments), scene, q, self.choice)


class PddlStreamSampling:
    """Samplers of one problem, and the way back from a plan of PDDLStream."""

    def __init__(self, problem: PlanningProblem, options: PlanningOptions, attempt: int) -> None:
        self.attempt = attempt
        goals = [goal for goal in problem.goals if not isinstance(goal, get_args(ContinuousGoal))]
        self.context = planning_context(problem, options)
        self.facts = planning_context(replace(problem, goal=goals or "(and)"), options)
        self.scene, self.q, self.options = self.context.scene, self.context.q, options
        self.arm, *bases = self.context.robots
        self.base = bases[0] if bases else None
        self.start = dict(
            zip(self.arm.joints, self.q[self.arm.joint_indices(self.scene)].tolist(), strict=True)
        )
        self.movable = {*movable_frames(self.scene)}
        self.tree = self.context.tree(
            self.context.new_log(), self.context.problem, self.context.domain, seed=options.seed
        )
        self.frames = {name: name for name in self.facts.problem.objects}
        for frame in self.scene.frame_names:
            if frame.lower() in self.frames:
                self.frames[frame.lower()] = frame
        self.rests: dict[str, Rest] = {}
        # an object held at the start has no place
        for frame in movable_frames(self.scene):
            self._rest_at_start(frame)
        domain = self.context.domain
        self.goals = (
            {goal.name: goal for goal in domain.goals} if isinstance(domain, GoalDomain) else {}
        )
        self.calls = itertools.count(1)
        self.actions = {action.name: action for action in self.facts.problem.domain.actions}

    def _rest_at_start(self, frame: str) -> Rest:
        if frame not in self.rests:
            support = str(self.scene.parent(frame))
            if support == self.arm.tip:
                raise ConfigurationError(
                    f"'{frame}' is held at the start, which is not read for PDDLStream"
                )
            below = self._rest_at_start(support) if support in self.movable else None
            self.rests[frame] = Rest(frame, support, self.scene.local_pose(frame), below)
        return self.rests[frame]

    def grasps(self, item: str) -> Iterator[tuple[Choice]]:
        """Yield the grasps of an object."""
        yield from (
            (Choice(grasp),)
            for grasp in self._context(self.scene, self.q).grasps(self.frames[item])
        )

    def puts(self, action: Action, item: str, place: str) -> Callable[..., Iterator[tuple[Rest]]]:
        """Return the stream of places at which an action puts an object down."""
        positions = variable_positions(action, item, place)

        def puts(*values: Any) -> Iterator[tuple[Rest]]:
            arguments, below = (
                values[: len(action.parameters)],
                (*values[len(action.parameters) :], None)[0],
            )
            x, s = (arguments[i] for i in positions)
            grasps = self._context(self.scene, self.q).grasps(self.frames[x])
            if (
                x == s
                or not grasps
                or (
                    below is not None
                    and any(member.item == self.frames[x] for member in below.chain)
                )
            ):
                return
            scene, q = self._held(
                self.frames[x], grasps[0], () if below is None else below.chain, None
            )
            for candidate in self._candidates(
                GroundAction(action.name, arguments), scene, q, is_random=True
            ):
                if isinstance(candidate, Place):
                    yield (
                        Rest(
                            candidate.object, candidate.support, candidate.pose, below, s, candidate
                        ),
                    )

        return puts

    def ways(
        self, action: Action, place: str, is_placing: bool
    ) -> Callable[..., Iterator[tuple[Motion]]]:
        """Return the stream of motions of an action among the fixed objects."""
        (s_at,) = variable_positions(action, place)
        count = len(action.parameters)

        def ways(*values: Any) -> Iterator[tuple[Motion]]:
            arguments, rest, hold, stand = values[:count], *(*values[count:], None)[:3]
            below = () if rest.below is None else rest.below.chain
            if rest.argument not in (None, arguments[s_at]):
                return
            if is_placing:
                scene, q = self._held(rest.item, hold.value, below, stand)
                candidate: Candidate | None = rest.candidate
            else:
                scene, q = self._world(rest.chain), self._at(self.q, stand)
                candidate = self._picked(GroundAction(action.name, arguments), scene, q, hold.value)
            if candidate is None:
                return
            context = self._context(scene, q)
            tried = candidate.refine(self._arm, context, seed=next(self.calls))
            for motion in itertools.islice(tried, _MOTIONS):
                if isinstance(motion, ActionMotion):
                    seen = frozenset(member.item for member in rest.chain)
                    yield (Motion(seen, tuple(motion_parts(scene, q, motion)), motion.choice),)

        return ways

    def clears(self, motion: Motion, _item: str, rest: Rest) -> bool:
        """Return whether a motion meets no object at a rest."""
        if rest.item in motion.items:
            return True
        if rest not in motion.cleared:
            motion.cleared[rest] = self._is_clear(motion, rest)
        return motion.cleared[rest]

    def _is_clear(self, motion: Motion, rest: Rest) -> bool:
        world = self._world(rest.chain)
        root = world.root(rest.item)
        pose, shapes = world.pose(rest.item, relative_to=root), self.scene.shapes(rest.item)
        source = None
        for segment, scene, rows in motion.parts:
            added = scene.add_frame(rest.item, root, pose=pose, shapes=shapes, classes=["movable"])
            source = self.context.rules.check_world(added, segment.allowed_contacts, source=source)
            for q in interpolate_path(rows, _STEP):
                for contact in source.contacts(q):
                    other = {contact.frame_a, contact.frame_b} - {rest.item}
                    if len(other) == 1 and self._moves(added, *other):
                        return False
        return True

    def _moves(self, scene: SceneGraph, frame: str) -> bool:
        """Return whether a frame is of the robot, or in its hand."""
        bases = {arm.base for arm in self.context.robots}
        return frame in bases or not bases.isdisjoint(scene.ancestors(frame))

    def meets(self, name: str, _item: str, _place: str, rest: Rest) -> bool:
        """Return whether a goal holds with its object at a rest."""
        return self.goals[name].goal.fault(self._world(rest.chain), self.q) is None

    def stands(self, location: str) -> Iterator[tuple[Choice]]:
        """Yield places of the base, as the domain drives to a location."""
        here = next(fact.arguments[0] for fact in self.facts.problem.init if fact.predicate == "at")
        for _ in range(_STANDS):
            for candidate in self._candidates(
                GroundAction("drive", (here, location)), self.scene, self.q
            ):
                last = candidate.candidates[-1] if isinstance(candidate, InTurn) else candidate
                if isinstance(last, MoveTo) and isinstance(last.to, Mapping):
                    yield (Choice(tuple(last.to.values())),)

    def _name(self, frame: str) -> str:
        return next(name for name, value in self.frames.items() if value == frame)

    def _stand(self, q: Configuration) -> tuple[float, ...]:
        assert self.base is not None, "there is a base"
        return tuple(float(q[i]) for i in self.base.joint_indices(self.scene))

    def _at(self, q: Configuration, stand: Choice | None) -> Configuration:
        if stand is None or self.base is None:
            return q
        return np.array(
            self.scene.configuration(dict(zip(self.base.joints, stand.value, strict=True)), base=q)
        )

    @property
    def _arm(self) -> Any:
        return next(iter(self.tree.arms.values()))

    def _context(
        self, scene: SceneGraph, q: Configuration, *, is_random: bool = False
    ) -> ActionContext:
        rng = np.random.default_rng((self.options.seed, self.attempt, next(self.calls)))
        context = self.tree.context(self.tree.root, scene=scene, seed=0, is_random=is_random)
        return replace(context, q=q, rng=rng)

    def _candidates(
        self, action: GroundAction, scene: SceneGraph, q: Configuration, *, is_random: bool = False
    ) -> Iterator[Candidate]:
        with contextlib.suppress(SceneError):  # the domain rejects an object at a forbidden place
            yield from self.context.domain.candidates(
                action, self._context(scene, q, is_random=is_random)
            )

    def _picked(
        self, action: GroundAction, scene: SceneGraph, q: Configuration, grasp: Grasp
    ) -> Pick | None:
        picks = (
            candidate
            for candidate in self._candidates(action, scene, q)
            if isinstance(candidate, Pick)
        )
        return next((pick for pick in picks if pick.grasp == grasp), None)

    def _world(self, rests: Sequence[Rest]) -> SceneGraph:
        """Return the scene with these objects alone."""
        items = {rest.item for rest in rests}
        scene = self.scene
        for item in sorted(items):
            scene = scene.reparent(item, scene.root(item), pose=Pose())
        for item in sorted(self.movable - items):
            if item in scene:
                scene = scene.remove_frame(item, subtree=True)
        for rest in rests:
            scene = scene.reparent(rest.item, rest.support, pose=rest.pose)
        return scene

    def _held(
        self, item: str, grasp: Grasp, rests: Sequence[Rest], stand: Choice | None
    ) -> tuple[SceneGraph, Configuration]:
        """Return the scene in which the hand holds an object, and the configuration."""
        scene = self._world([*rests, Rest(item, self.scene.root(item), Pose())])
        q = scene.configuration(self.arm.finger_values(grasp.width), base=self._at(self.q, stand))
        tip_from_item = (
            scene.pose(self.arm.tool, relative_to=self.arm.tip, q=q)
            @ grasp.object_from_tool.inverse()
        )
        return scene.reparent(item, self.arm.tip, pose=tip_from_item), np.array(q)

    def carried_out(self, actions: Sequence[tuple[str, tuple[Any, ...]]]) -> Plan | None:
        """Return the plan of actions with their choices in the whole scene, or None."""
        node = self.tree.root
        steps: list[PlanStep] = []
        for number, (name, values) in enumerate(actions):
            plain_name = name.removesuffix("--on")
            count = len(self.actions[plain_name].parameters)
            action, chosen = self.ground(plain_name, values), values[count:]
            reached: Any = None
            for candidate in self._chosen(action, chosen, node):
                reached = self.tree.follow(
                    node, action, candidate, seed=self.options.seed + number, attempts=_TRIES
                )
                if reached is not None and not isinstance(reached, MotionFailure):
                    break
            if reached is None or isinstance(reached, MotionFailure):
                _log.info("%s of PDDLStream's plan cannot be carried out: %s", action, reached)
                return None
            node = reached
            assert node.step is not None, "it is not the root"
            steps.append(node.step)
        return self.context.plan_of(
            with_costs(self.context.problem, tuple(steps)), self.context.domain
        )

    def ground(self, name: str, values: Sequence[Any]) -> GroundAction:
        """Return the action of an action of PDDLStream, which has further arguments."""
        return GroundAction(name, tuple(values[: len(self.actions[name].parameters)]))

    def _chosen(
        self, action: GroundAction, chosen: Sequence[Any], node: SceneVersion
    ) -> Iterator[Candidate]:
        """Yield motions of an action with its choices, or else the candidates of the domain."""
        if action.name == "drive" and self.base is not None:
            joints = dict(zip(self.base.joints, chosen[1].value, strict=True))
            yield InTurn(
                (MoveTo(self.arm.ready, "ready"), MoveTo(joints, "there", arm=self.base.name))
            )
        elif (role := handled_variable(self.actions[action.name])) is not None and not role[1]:
            pick = self._picked(action, node.scene, node.q, chosen[1].value)
            yield from () if pick is None else (pick,)
        elif chosen:
            yield chosen[0].candidate
        else:
            yield from self._candidates(action, node.scene, node.q)
        for motion in (value for value in chosen if isinstance(value, Motion)):
            yield InTurn((MoveTo(self.start, "the start"), motion))


def motion_parts(
    scene: SceneGraph, q: Configuration, motion: ActionMotion
) -> Iterator[tuple[Segment, SceneGraph, Configuration]]:
    """Yield the segments of a motion with their scenes and configurations (k, n_joints)."""
    for segment in motion.segments:
        columns = [scene.joint_names.index(joint) for joint in segment.joint_names]
        rows = np.repeat(np.array(q)[None], len(segment.path), axis=0)
        rows[:, columns] = segment.path
        yield segment, scene, rows
        scene, q = segment.end(scene, q)


def handled_variable(action: Action) -> tuple[str, bool] | None:
    """Return the variable of the object that an action moves, and whether it places it."""
    effect = str(action.effect)
    put = re.search(r"\(not \(holding (?:\?\S+ )?(\?[^ )]+)\)\)", effect)
    taken = re.search(r"(?<!\(not )\(holding (?:\?\S+ )?(\?[^ )]+)\)", effect)
    return (put[1], True) if put else (taken[1], False) if taken else None


def variable_positions(action: Action, *variables: str) -> tuple[int, ...]:
    """Return the indices of variables among the parameters of an action."""
    names = [parameter.name for parameter in action.parameters]
    return tuple(names.index(variable) for variable in variables)
