"""Domain semantics: base class of the class ``Semantics`` in every ``semantics.py``.

The PDDL state is always derived from the scene, never stored beside it. After each action the
planner derives the state of the new version and compares it with the state that PDDL predicts. A
difference is an error in the domain.

Invariants: a semantics stores only its arms; equal scenes yield equal objects, states and
    candidates.
"""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate
from tmkit.pddl import Fact, GroundAction, State
from tmkit.plans.continuous_goals import ObjectAt, ObjectIn
from tmkit.plans.values import Configuration
from tmkit.robots.robot_files import Robot, resolve_robot
from tmkit.tamp.domains.infeasibility import Infeasibility


@dataclass(frozen=True)
class ObjectToMove:
    """An object that must be picked where it stands and placed elsewhere.

    Attributes:
        object: frame of the object.
        fact: fact that requires the move.
        regions: frames on one of which the whole footprint must be placed; empty if unknown.
    """

    object: str
    fact: Fact
    regions: tuple[str, ...] = ()


@dataclass(frozen=True)
class RestFault:
    """Reason why an object does not rest on its support.

    Attributes:
        text: sentence with the object and the difference.
        gap: height of the object above its support, negative below its top [m].
    """

    text: str
    gap: float = 0.0


class DomainSemantics(ABC):
    """Meaning of the predicates and actions of a domain in a scene.

    A subclass must define :meth:`objects`, :meth:`state` and :meth:`candidates`. It is constructed
    once for a planning run, as ``Semantics(robot)``; a domain for several arms overrides the
    constructor: ``def __init__(self, *robots)``.

    All lengths are in [m], all angles in [rad]. A configuration ``q`` is an array (n_joints,) with
    the joint values of the scene [rad or m]. Every method may raise
    :class:`~tmkit.errors.SceneError` for a scene that the domain's predicates cannot describe; the
    message should name the frame.

    Args:
        robot: name or description of the arm that carries out the actions. ``self.robot`` is the
            description.
    """

    is_incremental: ClassVar[bool] = False
    """Whether the state of a scene version may be derived from that of another version.

    See :func:`tmkit.tamp.incremental`. By default each state is derived in full.
    """

    probabilistic_predicates: ClassVar[frozenset[str]] = frozenset()
    """Predicates whose facts hold when something is probable enough.

    For example, a block is close enough to its estimated pose that the hand can grasp it. PDDL
    declares the facts that an action must achieve; the scene alone determines their probability.
    After an action

    * a fact of such a predicate that PDDL predicts and the scene lacks makes this attempt at the
      action a failure, with the reason of :meth:`explain_false_fact`; other attempts follow;
    * a fact of such a predicate that the scene has and PDDL does not predict holds: an observation
      of one block may determine another. Unnecessary steps without motion are removed from the
      plan.

    So an action in PDDL should add the facts that it must achieve and delete those that it may
    undo. No condition should require that such a fact does not hold. By default there are none:
    every fact must be as PDDL predicts.
    """

    stored_predicates: ClassVar[frozenset[str]] = frozenset()
    """Predicates whose facts are stored in the scene, and never derived by :meth:`state`.

    See :func:`tmkit.graph.task_facts`. A domain with semantics of another domain also stores the
    predicates that the other domain lacks. Effects of actions on stored facts follow from PDDL; an
    action with no other effects has no motion.
    """

    moving_actions: ClassVar[frozenset[str]] = frozenset()
    """Actions that affect only stored facts and still have motions, from :meth:`candidates`."""

    def __init__(self, robot: Robot) -> None:
        self.robot = resolve_robot(robot, function=type(self).__name__)

    @abstractmethod
    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return the PDDL objects of a scene with their types, as ``{name: type}``; required.

        Called at the start of a planning run and for goal scenes. :func:`pddl_name` converts the
        name of a frame to a PDDL name.

        Raises:
            SceneError: if two objects have the same name.
        """

    @abstractmethod
    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: Configuration) -> State:
        """Return the basic facts that hold in a scene at a configuration; required.

        Called for every scene version that the planner examines, so its cost matters. Derived
        predicates of the PDDL are not included.

        Args:
            scene: the scene; for an incremental semantics possibly a stand-in with the same
                queries.
            objects: PDDL objects of the planning run, as returned by :meth:`objects`.
            q: (n_joints,) configuration. Zero for goal scenes, which have no configuration.

        Raises:
            SceneError: if the domain's predicates cannot describe the scene.
        """

    @abstractmethod
    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield candidates that carry out an action, best first; required.

        Called when a task plan contains the action in the state of ``context``. The iterator
        advances only when all earlier candidates have failed, so it should compute lazily. It may
        be infinite.

        Args:
            action: action with its PDDL objects.
            context: scene and configuration before the action, its samplers of grasps and
                placements, and the random generator, which is the only source of randomness.
        """

    def relevant_objects(self, scene: SceneGraph, q: Configuration) -> frozenset[str]:
        """Return the PDDL objects that a task plan should use at first.

        Called once for a planning run. Other objects are used only when there is no plan without
        them. An object in the goal is always used. By default all objects are relevant.

        Args:
            scene: scene at the start.
            q: (n_joints,) configuration at the start.
        """
        del q
        return frozenset(self.objects(scene))

    def rest_fault(self, scene: SceneGraph, object: str) -> RestFault | None:
        """Return the reason why an object does not rest as a placed object must, or None.

        Called for each movable object at the start, whose fault is accepted within the tolerances
        of the options. Objects that an action places or a goal scene states must rest. The facts of
        :meth:`state` should not depend on it: an object that leans or floats at the start is still
        on its support, from which it may be taken. By default every object rests.

        Args:
            scene: scene version.
            object: frame of the object.

        Raises:
            SceneError: if the domain's predicates cannot describe the place of the object.
        """
        del scene, object
        return None

    def goal_facts(
        self, scene: SceneGraph, objects: Mapping[str, str], goal_frames: Sequence[str]
    ) -> Iterable[Fact]:
        """Return the facts by which a goal scene defines a goal.

        Called for a goal scene, and for a goal with a pose or a region, to select the facts that
        describe the place of an object. By default all facts of the scene's state that have an
        argument which exists only because of a stated frame.

        Args:
            scene: goal scene. A frame that it does not state may have the root as its parent, at
                any pose.
            objects: PDDL objects of the start scene with their types.
            goal_frames: movable frames whose places the goal states, in the order of the goal.

        Raises:
            SceneError: if the domain's predicates cannot describe the goal scene.
        """
        del objects
        remaining = scene
        for frame in goal_frames:
            remaining = remaining.set_classes(frame, ())
        goal_objects = self.objects(scene)
        names = set(goal_objects).difference(self.objects(remaining))
        state = self.state(scene, goal_objects, scene.zero_configuration())
        return [fact for fact in sorted(state, key=str) if not names.isdisjoint(fact.arguments)]

    def continuous_goal_facts(
        self, goal: ObjectAt | ObjectIn, scene: SceneGraph, q: Configuration
    ) -> Iterable[Fact] | None:
        """Return facts of which one becomes true when an object is placed where a goal requires it.

        Called for each goal with a pose or a region, before the search. By default None: the
        planner then tries placements of the object in a copy of the scene, and takes the facts that
        :meth:`state` derives there.

        Args:
            goal: object with its goal pose or goal region.
            scene: scene at the start.
            q: (n_joints,) configuration at the start.

        Raises:
            SceneError: if no predicate of the domain describes such a place; the message has the
                reason.
        """
        del goal, scene, q
        return None

    def conflict_facts(
        self, frames: frozenset[str], state: State, scene: SceneGraph
    ) -> Iterable[Fact]:
        """Return the facts of a state that describe the places of frames.

        Called when a motion failed because of bodies on these frames. The planner then excludes the
        action as long as these facts hold. With too many facts the constraint is weak, with too few
        it is wrong. By default :func:`facts_about`: the facts whose first argument is one of the
        frames.

        Args:
            frames: the frames, including those of the robot and of fixed bodies.
            state: facts that hold.
            scene: scene version.
        """
        del scene
        return facts_about((pddl_name(frame) for frame in frames), state)

    def explain_false_fact(self, fact: Fact, scene: SceneGraph, q: Configuration) -> str:
        """Return a clause with the reason why a probabilistic fact does not hold.

        Called for the explanation of a failure, for facts of :attr:`probabilistic_predicates`. It
        should state the probability that is reached and the one that is required. By default it
        repeats the fact.

        Args:
            fact: the fact.
            scene: scene version.
            q: (n_joints,) configuration.
        """
        del scene, q
        return f"{fact} is not probable enough"

    def infeasibilities(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterable[Infeasibility]:
        """Return proofs that no motions reach a goal from a scene.

        Called once for a planning run, before the search, which does not start if there is a proof.
        Each proof is sufficient alone; the most informative comes first. By default there are none.
        :mod:`tmkit.tamp.domains` has arguments that are valid in any domain.

        Args:
            goal_facts: facts that hold in every state that satisfies the goal.
            scene: scene at the start.
        """
        del goal_facts, scene
        return ()

    @property
    def is_moved_by_picks(self) -> bool:
        """True if objects move only by picks with grasps of the planning run's samplers.

        A pick also moves everything that stands on the picked object. If true, the planner may
        prove that no object of a clutter can be picked first. False by default.
        """
        return False

    def objects_to_move(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterable[ObjectToMove]:
        """Return objects that the hand must pick and place to reach a goal; by default none.

        After an iteration without a plan, the planner tries to prove that the hand cannot touch
        them (:mod:`tmkit.tamp.domains.separation`).

        Args:
            goal_facts: facts that hold in every state that satisfies the goal.
            scene: scene at the start.
        """
        del goal_facts, scene
        return ()


def facts_about(names: Iterable[str], state: State) -> tuple[Fact, ...]:
    """Return the facts that describe the places of objects, given by PDDL names, sorted.

    They are the facts whose first argument is the object: those with two or more arguments or, if
    there are none, those with one. The facts of every other object in such a fact are included,
    because an object on a moved block has also moved.
    """
    by_object: dict[str, list[Fact]] = {}
    for fact in state:
        if fact.arguments:
            by_object.setdefault(fact.arguments[0], []).append(fact)
    visited = set(names)
    queue = sorted(visited)
    result: set[Fact] = set()
    while queue:
        facts = by_object.get(queue.pop(), [])
        relations = [fact for fact in facts if len(fact.arguments) > 1]
        for fact in relations or facts:
            result.add(fact)
            for name in fact.arguments[1:]:
                if name not in visited:
                    visited.add(name)
                    queue.append(name)
    return tuple(sorted(result))


def pddl_name(frame: str) -> str:
    """Return the PDDL name of a frame.

    The name is in lower case and without accents. Blanks and other signs are replaced by _, other
    letters by their number in Unicode: ``Tasse é`` is ``tasse_e``, and ``杯`` is ``u676f``.
    """
    text = frame.lower()
    if not text.isascii():
        letters = unicodedata.normalize("NFKD", frame.casefold())
        text = "".join(
            letter if letter.isascii() else f"u{ord(letter):x}"
            for letter in letters
            if not unicodedata.combining(letter)
        )
    name = re.sub(r"[^a-z0-9_-]", "_", text)
    return name if name[:1].isalpha() else f"o{name}"


def find_renamed_frames(frames: Iterable[str], names: Collection[str]) -> dict[str, str]:
    """Return the PDDL names of frames whose own names are not valid in PDDL, by frame.

    Args:
        frames: the frames.
        names: PDDL names of objects; other frames are omitted.
    """
    by_frame = {frame: pddl_name(frame) for frame in frames}
    return {frame: name for frame, name in by_frame.items() if name != frame and name in names}
