"""Texts and streams of PDDLStream for a problem of tmkit, in the manner of PDDLStream's examples.

An object gets places on every surface on which it can stand, beside those that meet its goal. Three
tests, negated in the domain, are split from coarse to fine: the object at its place, the hand at
the contact, and the motion, each against one other object at its place. Poses of a mobile base are
sampled with the motions that they are for. The cells of a surface are one place with a stream of
poses. Estimates of the streams and settings of the search are those of PDDLStream's example
``pybullet/tamp``.

Invariants: a test against another object fails only if the plan would fail with this object alone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from benchmarks.comparison.pddlstream_sampling import (
    Choice,
    Configuration,
    Motion,
    Rest,
    handled_variable,
    motion_parts,
    variable_positions,
)
from benchmarks.comparison.pddlstream_stock import StockDeclaration, write_action, write_types

from tmkit.errors import SceneError
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.manipulation import ActionMotion, Candidate, Grasp, MoveTo, Place, Sequence as InTurn
from tmkit.motion import CollisionWorld
from tmkit.pddl import Action, GroundAction
from tmkit.robots.mechanisms import moved_frames
from tmkit.spatial import Pose

_STAND_FAILURES = 25
"""Consecutive poses of the base without a motion after which no more are sampled."""

_MOTION_SAMPLES = 8
"""Attempts at the motion of one place, grasp and pose of the base."""

_MOTION_ROUNDS = 4
"""Rounds of attempts at the motions of an arm without a base, with other configurations each."""

_SWEEP_POSES = 3
"""Poses of the hand along the straight lines at a contact at which it is checked."""

_LINE_SHARE = 0.1
"""Fraction of a straight line that suffices for tmkit's planner."""

_SEARCH = {
    "planner": "ff-wastar3",
    "max_planner_time": 10,
    "unit_efforts": True,
    "effort_weight": 1,
    "search_sample_ratio": 2,
}
"""Settings of the search in PDDLStream's example ``pybullet/tamp``."""

_P_SUCCESS = {"free-rest": 1e-3, "free-hand": 1e-2, "free-motion": 1e-1}
"""Estimated probability that a test holds, in PDDLStream's example ``pybullet/tamp``."""

_PREDICATES = """(rest ?x ?r0) (at-rest ?x ?r0) (rest-at ?x ?l0 ?r0) (grasp ?x ?g0) (in-hand ?x ?g0)
    (motion ?m0) (free-rest ?x ?r0 ?o0 ?s0) (free-hand ?x ?r0 ?g0 ?o0 ?s0) (free-motion ?m0 ?o0 ?s0)
    (unsafe-rest ?x ?r0) (unsafe-hand ?x ?r0 ?g0) (unsafe-motion ?m0) (wants ?k0 ?x ?l0)
    (meets ?k0 ?x ?r0) (met ?k0) (stand ?l0 ?b0) (at-stand ?b0)"""


@dataclass(frozen=True, eq=False)
class Reach(Motion):
    """Motion of one sample, with what it was sampled for.

    Attributes:
        action: the action.
        rest: place of the object, before a pick or after a place.
        grasp: grasp of the object.
        stand: pose of the base, if there is one.
        is_placing: whether the action places the object.
    """

    action: GroundAction = field(kw_only=True)
    rest: Rest = field(kw_only=True)
    grasp: Grasp = field(kw_only=True)
    stand: Choice | None = field(kw_only=True)
    is_placing: bool = field(kw_only=True)


class FairDeclaration(StockDeclaration):
    """Problem of PDDLStream as its author would declare it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        goal = str(self.facts.problem.goal)
        self.cells: dict[str, list[str]] = {}
        self._surface_of: dict[str, str] = {}
        self._is_grid = False
        for name, frame in self.frames.items():
            if frame in self.scene:
                continue
            self._is_grid = True
            if not re.search(rf"\s{re.escape(name)}\)", goal):
                surface = name.rsplit("__", 2)[0]
                self._surface_of[name] = surface
                self.cells.setdefault(surface, []).append(name)
        self._cell_at_start = {
            self.rests[self.frames[fact.arguments[0]]]: fact.arguments[-1]
            for fact in self._place_facts()
        }
        self._results: dict[tuple[Any, ...], bool] = {}
        self._grasps: dict[str, list[Choice]] = {}

    def _place_facts(self) -> list[Any]:
        """Return the facts at the start about the places of movable objects."""
        return [
            fact
            for fact in self.facts.problem.init
            if len(fact.arguments) > 1 and self.frames.get(fact.arguments[0]) in self.rests
        ]

    def _place(self, name: str) -> str:
        """Return the name of a place in PDDLStream, the surface for a cell."""
        return self._surface_of.get(name, name)

    # --- samplers ---------------------------------------------------------------------------------

    def places(
        self, action: Action, item: str, place: str, *, is_goal: bool
    ) -> Callable[..., Iterator[tuple[Rest]]]:
        """Return the stream of places of an action, without end where they are continuous."""
        item_at, place_at = variable_positions(action, item, place)
        count = len(action.parameters)

        def places(*values: Any) -> Iterator[tuple[Rest]]:
            goal, values = (values[0], values[1:]) if is_goal else (None, values)
            arguments, below = [*values[:count]], (*values[count:], None)[0]
            frame, surface = self.frames[arguments[item_at]], arguments[place_at]
            grasps = self._context(self.scene, self.q).grasps(frame)
            chain = () if below is None else below.chain
            if not grasps or any(member.item == frame for member in chain):
                return
            if below is None and self.frames.get(surface) in self.movable:
                return
            scene, q = self._held(frame, grasps[0], chain, None)
            cells = [surface]
            if surface in self.cells:
                cells = self._goal_cells(goal, surface) if is_goal else self.cells[surface]
            known: set[bytes] = set()
            while True:
                count_before = len(known)
                rng = np.random.default_rng((self.options.seed, self.attempt, next(self.calls)))
                for cell in rng.permutation(cells).tolist():
                    arguments[place_at] = cell
                    ground = GroundAction(action.name, tuple(arguments))
                    for candidate in self._placements(ground, scene, q, is_goal=is_goal):
                        rest = Rest(
                            frame, candidate.support, candidate.pose, below, cell, candidate
                        )
                        key = candidate.pose.translation.round(4).tobytes()
                        key += candidate.pose.quat_xyzw.round(3).tobytes()
                        if key in known or (goal and not self.meets(goal, "", "", rest)):
                            continue
                        known.add(key)
                        yield (rest,)
                        if len(cells) > 1:
                            break
                if len(known) == count_before:
                    return

        return places

    def _goal_cells(self, goal: str, surface: str) -> list[str]:
        cells = {fact.arguments[-1] for fact in self.goals[goal].facts}
        return sorted(cells & {*self.cells[surface]})

    def _placements(
        self, action: GroundAction, scene: SceneGraph, q: Configuration, *, is_goal: bool
    ) -> Iterator[Place]:
        """Yield placements of an action that meet the goals of its object, or that need not."""
        if is_goal:
            candidates = self._candidates(action, scene, q, is_random=True)
        else:
            candidates = self._candidates_elsewhere(action, scene, q)
        yield from (each for each in candidates if isinstance(each, Place))

    def _candidates_elsewhere(
        self, action: GroundAction, scene: SceneGraph, q: Configuration
    ) -> Iterator[Candidate]:
        domain = self.facts.domain
        try:
            yield from domain.candidates(action, self._context(scene, q, is_random=True))
        except SceneError:  # the domain rejects an object at a forbidden place
            return

    def picks(self, action: Action, place: str) -> Callable[..., Iterator[tuple[Any, ...]]]:
        """Return the stream of grasps that pick an object among the fixed objects.

        It yields a grasp, the pose of the base if there is one, and the motion.
        """
        count, (place_at,) = len(action.parameters), variable_positions(action, place)

        def picks(*values: Any) -> Iterator[tuple[Any, ...]]:
            rest = values[count]
            ground, location = self.ground(action.name, values), values[place_at]
            failures = 0
            for stand in self._stands_for(rest, location):
                is_reached = False
                for hold in self._grasps_of(rest.item):
                    reach = next(self._refine(ground, rest, hold.value, stand, False, ()), None)
                    if reach is not None:
                        is_reached = True
                        yield (hold, *_known(stand), reach)
                failures = 0 if is_reached else failures + 1
                if failures == _STAND_FAILURES:
                    return

        return picks

    def drops(self, action: Action, place: str) -> Callable[..., Iterator[tuple[Any, ...]]]:
        """Return the stream of motions that place an object with a grasp among the fixed objects.

        It yields the pose of the base if there is one, and the motion.
        """
        count, (place_at,) = len(action.parameters), variable_positions(action, place)

        def drops(*values: Any) -> Iterator[tuple[Any, ...]]:
            rest, hold = values[count : count + 2]
            ground, location = self.ground(action.name, values), values[place_at]
            failures = 0
            for stand in self._stands_for(rest, location):
                reach = next(self._refine(ground, rest, hold.value, stand, True, ()), None)
                if reach is not None:
                    yield (*_known(stand), reach)
                failures = 0 if reach is not None else failures + 1
                if failures == _STAND_FAILURES:
                    return

        return drops

    def _grasps_of(self, frame: str) -> list[Choice]:
        """Return the grasps of an object, each always as the same value."""
        if frame not in self._grasps:
            self._grasps[frame] = [hold for (hold,) in self.grasps(self._name(frame))]
        return self._grasps[frame]

    def _argument(self, rest: Rest, place: str) -> str:
        """Return the argument of an action for the place of an object."""
        if place not in self.cells:
            return place
        return str(rest.argument if rest.argument else self._cell_at_start[rest])

    def _stands_for(self, rest: Rest, location: str) -> Iterator[Choice | None]:
        """Yield poses of the base near an object at a place, without end; None without a base."""
        if self.base is None:
            yield from [None] * _MOTION_ROUNDS
            return
        here = next(fact.arguments[0] for fact in self.facts.problem.init if fact.predicate == "at")
        world = self._world(rest.chain)
        while True:
            drives = self._candidates(GroundAction("drive", (here, location)), world, self.q)
            count = 0
            for candidate in drives:
                last = candidate.candidates[-1] if isinstance(candidate, InTurn) else candidate
                if isinstance(last, MoveTo) and isinstance(last.to, dict):
                    count += 1
                    yield Choice(tuple(last.to.values()))
            if not count:
                return

    def _refine(
        self,
        action: GroundAction,
        rest: Rest,
        grasp: Grasp,
        stand: Choice | None,
        is_placing: bool,
        others: Sequence[Rest],
    ) -> Iterator[Reach]:
        """Yield motions of an action among the fixed objects and others at their places."""
        candidate: Candidate | None
        if is_placing:
            below = () if rest.below is None else rest.below.chain
            scene, q = self._held(rest.item, grasp, (*below, *others), stand)
            candidate = rest.candidate
        else:
            scene, q = self._world((*rest.chain, *others)), self._at(self.q, stand)
            candidate = self._picked(action, scene, q, grasp)
        if candidate is None:
            return
        tried = candidate.refine(self._arm, self._context(scene, q), seed=next(self.calls))
        for motion in itertools.islice(tried, _MOTION_SAMPLES):
            if isinstance(motion, ActionMotion):
                yield Reach(
                    frozenset(member.item for member in rest.chain),
                    tuple(motion_parts(scene, q, motion)),
                    motion.choice,
                    action=action,
                    rest=rest,
                    grasp=grasp,
                    stand=stand,
                    is_placing=is_placing,
                )

    # --- tests ------------------------------------------------------------------------------------

    def is_rest_free(self, _item: str, rest: Rest, _other: str, other: Rest) -> bool:
        """Return whether an object at a place does not collide with another at its place."""
        if rest.item == other.item or rest in other.chain or other in rest.chain:
            return True
        if rest.below is None and other.below is None and rest.support == other.support:
            cells = [each.argument or self._cell_at_start.get(each) for each in (rest, other)]
            if self._is_grid and cells[0] == cells[1]:
                return False  # a cell has room for one object
        return self._is_apart(("rest", rest, other), lambda: self._object_scene(rest), other)

    def is_hand_free(self, _item: str, rest: Rest, hold: Choice, _other: str, other: Rest) -> bool:
        """Return whether the hand and its object clear another one on the lines at a contact."""
        if rest.item == other.item or other in rest.chain or rest in other.chain:
            return True
        key = ("hand", rest, hold, other)
        return self._is_apart(key, lambda: self._swept_scene(rest, hold.value), other)

    def is_motion_free(self, motion: Reach, _other: str, other: Rest) -> bool:
        """Return whether the action has a motion from the start with another object at its place.

        The sampled motion is checked first, then another one is searched with the other object.
        """
        if motion.items & {member.item for member in other.chain}:
            return True
        key = (motion, other)
        if key not in self._results:
            others = [member for member in other.chain if member.item not in motion.items]
            self._results[key] = self._is_clear(motion, other) or any(
                self._refine(
                    motion.action,
                    motion.rest,
                    motion.grasp,
                    motion.stand,
                    motion.is_placing,
                    others,
                )
            )
        return self._results[key]

    def _is_apart(
        self, key: tuple[Any, ...], make_scene: Callable[[], SceneGraph], other: Rest
    ) -> bool:
        """Return whether the object of a scene does not collide with another at its place."""
        if key not in self._results:
            scene = make_scene().add_frame(
                "other",
                "world",
                pose=self._root_from_item(other),
                shapes=self._solid_shapes(other.item),
                classes=["movable"],
            )
            world = CollisionWorld(scene, movable=["subject", "other"])
            self._results[key] = not world.is_in_collision(scene.zero_configuration())
        return self._results[key]

    def _object_scene(self, rest: Rest) -> SceneGraph:
        return _scene_of(self._root_from_item(rest), self._solid_shapes(rest.item))

    def _swept_scene(self, rest: Rest, grasp: Grasp) -> SceneGraph:
        """Return a scene with the hand along its line at a contact, and the lifted object.

        The hand is open before a pick at the start. At a place it may open as little as it has to.
        """
        scene, hand = self.scene, self.arm.tip
        fingers = (
            self.arm.open_finger_values(grasp.opening)
            if rest.candidate is None
            else self.arm.finger_values(grasp.width)
        )
        q = np.array(scene.configuration(fingers, base=self.q))
        budget = self._arm.primitives.budget
        shapes: list[AttachedShape] = []
        for link in sorted(moved_frames(scene, self.arm) - self.movable):
            if link != hand and hand not in scene.ancestors(link):
                continue
            item_from_link = grasp.object_from_tool @ scene.pose(
                link, relative_to=self.arm.tool, q=q
            )
            for distance in np.linspace(0.0, _LINE_SHARE * budget.approach_distance, _SWEEP_POSES):
                retreat = (
                    grasp.object_from_tool
                    @ Pose([0.0, 0.0, -distance])
                    @ grasp.object_from_tool.inverse()
                )
                shapes += [
                    AttachedShape(each.shape, pose=retreat @ item_from_link @ each.pose)
                    for each in scene.shapes(link)
                    if each.collision
                ]
        root_from_item = self._root_from_item(rest)
        for height in np.linspace(0.0, _LINE_SHARE * budget.lift_distance, _SWEEP_POSES)[1:]:
            lifted = root_from_item.inverse() @ Pose([0.0, 0.0, height]) @ root_from_item
            shapes += [
                AttachedShape(each.shape, pose=lifted @ each.pose)
                for each in self._solid_shapes(rest.item)
            ]
        return _scene_of(root_from_item, shapes)

    def _solid_shapes(self, frame: str) -> list[AttachedShape]:
        return [each for each in self.scene.shapes(frame) if each.collision]

    def _root_from_item(self, rest: Rest) -> Pose:
        """Return the pose of an object at its place in the root frame."""
        if rest.below is None:
            root = self.scene.root(rest.support)
            return self.scene.pose(rest.support, relative_to=root, q=self.q) @ rest.pose
        return self._root_from_item(rest.below) @ rest.pose

    # --- texts ------------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        info = self.library["stream_info"]
        return {
            **_SEARCH,
            "stream_info": {
                name: info(p_success=share, verbose=False) for name, share in _P_SUCCESS.items()
            },
        }

    def _init(self) -> list[tuple[Any, ...]]:
        """Return the facts at the start, with surfaces in place of their cells."""
        facts = [
            tuple(self._place(value) if isinstance(value, str) else value for value in fact)
            for fact in super()._init()
        ]
        facts += [
            ("rest-at", item, self._place(place), self.rests[self.frames[item]])
            for item, *_, place in (fact.arguments for fact in self._place_facts())
        ]
        for wanted in self.goals.values():
            facts += [
                ("meets", wanted.name, self._name(frame), rest)
                for frame, rest in self.rests.items()
                if frame == wanted.goal.frame and self.meets(wanted.name, "", "", rest)
            ]
        return [*dict.fromkeys(facts)]

    def _domain(self) -> str:
        """Return the domain in PDDL, and fill in the streams."""
        tests = (
            ("free-rest", self.is_rest_free, "?x ?r0 ?o0 ?s0", "(rest ?x ?r0)"),
            ("free-hand", self.is_hand_free, "?x ?r0 ?g0 ?o0 ?s0", "(rest ?x ?r0) (grasp ?x ?g0)"),
            ("free-motion", self.is_motion_free, "?m0 ?o0 ?s0", "(motion ?m0)"),
        )
        derived: list[str] = []
        for name, function, inputs, subject in tests:
            both = f"{subject} (rest ?o0 ?s0)"
            self._stream(name, function, inputs, both, "", f"({name} {inputs})")
            unsafe = f"(unsafe-{name.removeprefix('free-')} {inputs.removesuffix(' ?o0 ?s0')})"
            differ = "(not (= ?x ?o0)) " if "?x" in inputs else ""
            derived.append(
                f"(:derived {unsafe} (exists (?o0 ?s0) (and {both} {differ}"
                f"(not ({name} {inputs})) (at-rest ?o0 ?s0))))"
            )
        derived.append(
            "(:derived (met ?k0) (exists (?x ?r0) (and (meets ?k0 ?x ?r0) (at-rest ?x ?r0))))"
        )
        if self.base is not None and re.search(r"\(at ", str(self.facts.problem.goal)):
            self._stream("stand", self.stands, "?l0", "(is-location ?l0)", "?b0", "(stand ?l0 ?b0)")
        texts = [text for action in self.actions.values() for text in self._action(action)]
        return self._domain_text(_PREDICATES, texts, derived)

    def _action(self, action: Action) -> Iterator[str]:
        """Yield an action with its choices; a place once on fixed supports and once on objects."""
        names = [parameter.name for parameter in action.parameters]
        if (role := handled_variable(action)) is None:
            yield from super()._action(action)
            return
        item, is_placing = role
        place = names[names.index(item) + 1]
        kinds = " ".join(write_types(each.name, each.types) for each in action.parameters)
        effect = re.sub(r"\(increase \(total-cost\) [^()]*\)", "", str(action.effect))
        places = self.facts.problem.objects_of(self._types(action, place))
        if not any(self.frames[name] in self.scene for name in places):
            # the tests keep objects apart, so that cells need not be free
            effect = re.sub(rf"\(not \(\S+ {re.escape(place)}\)\)", "", effect)
        shared, stand = f"{' '.join(names)} ?r0 ?g0", " ?b0" if self.base is not None else ""
        reach, put = (
            f"(reach-{action.name} {shared}{stand} ?m0)",
            f"(put-{action.name} {shared[:-4]})",
        )
        self.declared += [reach, put]
        outputs = f"{stand} ?m0"
        facts = f"{reach} (motion ?m0)" + (f" (stand {place} ?b0)" if stand else "")
        if is_placing:
            self._stream(
                f"reach-{action.name}",
                self.drops(action, place),
                shared,
                f"{put} (grasp {item} ?g0)",
                outputs,
                facts,
            )
        else:
            self._stream(
                f"reach-{action.name}",
                self.picks(action, place),
                shared.removesuffix(" ?g0"),
                f"{kinds} (rest-at {item} {place} ?r0)",
                f"?g0 {outputs}",
                f"{facts} (grasp {item} ?g0)",
            )
        chosen = f"{reach} (not (unsafe-hand {item} ?r0 ?g0)) (not (unsafe-motion ?m0))"
        chosen += " (at-stand ?b0)" if stand else ""
        parameters = [*names, "?r0", "?g0", *stand.split(), "?m0"]
        before = f"{kinds} {action.precondition} {chosen}"
        if not is_placing:
            after = f"{effect} (in-hand {item} ?g0) (not (at-rest {item} ?r0))"
            yield write_action(action.name, parameters, f"{before} (at-rest {item} ?r0)", after)
            return
        before += f" {put} (in-hand {item} ?g0) (not (unsafe-rest {item} ?r0))"
        after = f"{effect} (at-rest {item} ?r0) (not (in-hand {item} ?g0))"
        kinds_of_place = {self.frames[name] in self.movable for name in places}
        if False in kinds_of_place:
            self._place_streams(action, item, place, kinds, put, "")
            yield write_action(action.name, parameters, f"{before} (is-fixed {place})", after)
        if True in kinds_of_place:
            self.declared.append(f"(on-{action.name} ?r0 ?s0)")
            self._place_streams(action, item, place, kinds, put, "?s0")
            before += f" (on-{action.name} ?r0 ?s0) (at-rest {place} ?s0)"
            yield write_action(f"{action.name}--on", [*parameters, "?s0"], before, after)

    def _place_streams(
        self, action: Action, item: str, place: str, kinds: str, put: str, below: str
    ) -> None:
        """Declare the streams of places on fixed supports, or on an object at a place."""
        names = " ".join(parameter.name for parameter in action.parameters)
        suffix, support = (
            ("-on", f"(rest {place} {below})") if below else ("", f"(is-fixed {place})")
        )
        facts = f"{put} (rest {item} ?r0) (rest-at {item} {place} ?r0)"
        if below:
            facts += f" (on-{action.name} ?r0 {below})"
        self._stream(
            f"place{suffix}-{action.name}",
            self.places(action, item, place, is_goal=False),
            f"{names} {below}",
            f"{kinds} (is-movable {item}) {support}",
            "?r0",
            facts,
        )
        if self.goals:
            self._stream(
                f"goal{suffix}-{action.name}",
                self.places(action, item, place, is_goal=True),
                f"?k0 {names} {below}",
                f"{kinds} (wants ?k0 {item} {place}) {support}",
                "?r0",
                f"{facts} (meets ?k0 {item} ?r0)",
            )

    def ground(self, name: str, values: Sequence[Any]) -> GroundAction:
        """Return an action with the cells of its places as arguments."""
        action = self.actions[name]
        arguments = [*values[: len(action.parameters)]]
        if (role := handled_variable(action)) is not None:
            place_at = [each.name for each in action.parameters].index(role[0]) + 1
            arguments[place_at] = self._argument(values[len(arguments)], arguments[place_at])
        return GroundAction(name, tuple(arguments))


def _known(stand: Choice | None) -> tuple[Choice, ...]:
    return () if stand is None else (stand,)


def _scene_of(root_from_item: Pose, shapes: Sequence[AttachedShape]) -> SceneGraph:
    return SceneGraph().add_frame(
        "subject", "world", pose=root_from_item, shapes=shapes, classes=["movable"]
    )
