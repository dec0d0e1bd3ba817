"""Domain semantics: the base class of every domain's ``Semantics``, which ``semantics.py`` defines.

The PDDL state is always derived from the scene, never stored beside it. After each action the
planner derives the state of the new version and compares it with the state that PDDL predicts; a
difference is an error in the domain.

Invariants: a semantics has no state of its own but its arms; equal scenes give equal objects,
    states and candidates.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate
from tmkit.pddl import Fact, GroundAction, State
from tmkit.plans.continuous_goals import ObjectAt, ObjectIn
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator
from tmkit.tamp.domains.infeasibility import Infeasibility


@dataclass(frozen=True)
class ObjectToMove:
    """An object that has to be picked where it stands and put down elsewhere.

    Attributes:
        object: its frame.
        fact: the fact that demands it.
        regions: frames on one of which it has to be put down, with all of its footprint; none where
            that is not known.
    """

    object: str
    fact: Fact
    regions: tuple[str, ...] = ()


class DomainSemantics(ABC):
    """What the predicates and actions of a domain mean in a scene.

    A subclass must define :meth:`objects`, :meth:`state` and :meth:`candidates`. It is constructed
    once for a planning run, as ``Semantics(manipulator)``; a domain for several arms overrides the
    constructor: ``def __init__(self, *manipulators)``.

    All lengths are in metres, angles in radians. A configuration ``q`` is an array (n_joints,) with
    the joint values of the scene, in metres or radians. Every method may raise
    :class:`~tmkit.errors.SceneError` for a scene that cannot be described in the domain's
    predicates; the message should name the frame.

    Args:
        manipulator: the arm that carries out the actions; kept as ``self.manipulator``.
    """

    is_incremental: ClassVar[bool] = False
    """Whether the state of one scene version may be derived from that of another; see :func:`tmkit.tamp.incremental`.

    By default each state is derived in full.
    """

    probabilistic_predicates: ClassVar[frozenset[str]] = frozenset()
    """Predicates whose facts hold when something is probable enough, as "the hand finds the block where it reaches".

    PDDL declares what an action must achieve; how probable it becomes, only the scene determines.
    After an action

    * a fact of such a predicate that PDDL predicts and the scene lacks makes this attempt at the
      action a failure, for the reason that :meth:`explain_false_fact` gives; other attempts follow;
    * a fact of such a predicate that the scene has and PDDL does not predict holds: an observation
      of one block may determine another. Steps without motion that turn out to be unnecessary are
      removed from the plan.

    So the PDDL should add what an action must achieve, delete what it may undo, and have no
    condition that such a fact does not hold. By default there are none: every fact must be as PDDL
    predicts.
    """

    stored_predicates: ClassVar[frozenset[str]] = frozenset()
    """Predicates whose facts are kept in the scene (:func:`tmkit.graph.task_facts`), and never in :meth:`state`.

    Predicates of a domain that names its semantics apart are stored too, if the semantics' own
    domain lacks them. What an action does to stored facts follows from its effects in PDDL; an
    action with no other effects has no motion.
    """

    moving_actions: ClassVar[frozenset[str]] = frozenset()
    """Actions with effects on stored facts alone that have motions nevertheless; :meth:`candidates` yields them."""

    def __init__(self, manipulator: Manipulator) -> None:
        self.manipulator = manipulator

    @abstractmethod
    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return the PDDL objects of a scene with their types, as ``{name: type}``; required.

        Called at the start of a planning run and for goal scenes. :func:`tmkit.tamp.pddl_name`
        makes a PDDL name of a frame's name.

        Raises:
            SceneError: two objects would have one name.
        """

    @abstractmethod
    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: Configuration) -> State:
        """Return the basic facts that hold in a scene at a configuration; required.

        Called for every scene version that the planner examines, so its cost matters. Derived
        predicates of the PDDL are not included.

        Args:
            scene: the scene; in an incremental semantics possibly a stand-in with the same queries.
            objects: the PDDL objects of the planning run, as :meth:`objects` returns them.
            q: (n_joints,) the configuration. For goal scenes, which have none, it is zero.

        Raises:
            SceneError: the scene cannot be described in the domain's predicates.
        """

    @abstractmethod
    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield ways to carry out an action, best first; required.

        Called when a task plan has the action in the state of ``context``. The iterator is kept,
        and advanced only when the candidates before have failed, so it should compute lazily; it
        may be infinite.

        Args:
            action: the action with its PDDL objects.
            context: the scene and configuration before the action, its samplers of grasps and
                placements, and the random generator, the only source of randomness.
        """

    def relevant_objects(self, scene: SceneGraph, q: Configuration) -> frozenset[str]:
        """Return the PDDL objects that a task plan should use at first.

        Called once for a planning run. Objects beyond these are used only when there is no plan
        without them; an object that the goal names is always used. By default all objects.

        Args:
            scene: the scene at the start.
            q: (n_joints,) the configuration at the start.
        """
        del q
        return frozenset(self.objects(scene))

    def goal_facts(
        self, scene: SceneGraph, objects: Mapping[str, str], stated: Sequence[str]
    ) -> Iterable[Fact]:
        """Return the facts of a goal that a scene shows.

        Called for a goal scene, and for a goal with a pose or a region, to select the facts that
        describe where an object is. By default all facts of the scene's state that have an argument
        which exists only because of a stated frame.

        Args:
            scene: the goal scene. A frame that it does not state may have the root as its parent,
                at any pose.
            objects: the PDDL objects of the start scene with their types.
            stated: the movable frames whose places the goal states, in its order.

        Raises:
            SceneError: the goal scene cannot be described in the domain's predicates.
        """
        del objects
        others = scene
        for frame in stated:
            others = others.set_classes(frame, ())
        own = self.objects(scene)
        names = set(own).difference(self.objects(others))
        state = self.state(scene, own, scene.zero_configuration())
        return [fact for fact in sorted(state, key=str) if not names.isdisjoint(fact.arguments)]

    def continuous_goal_facts(
        self, goal: ObjectAt | ObjectIn, scene: SceneGraph, q: Configuration
    ) -> Iterable[Fact] | None:
        """Return facts of which one becomes true whenever an object is put where a goal requires it.

        Called for each goal with a pose or a region, before the search. By default None: the
        planner then tries placements of the object in a copy of the scene, and takes the facts that
        :meth:`state` derives there.

        Args:
            goal: the object with its pose or region.
            scene: the scene at the start.
            q: (n_joints,) the configuration at the start.

        Raises:
            SceneError: no predicate of the domain describes such a place; the message gives the
                reason.
        """
        del goal, scene, q
        return None

    def conflict_facts(
        self, frames: frozenset[str], state: State, scene: SceneGraph
    ) -> Iterable[Fact]:
        """Return the facts of a state that describe where frames are.

        Called when a motion failed because of bodies on these frames: the planner then excludes the
        action as long as these facts hold. Too many facts make the constraint weak, too few make it
        wrong. By default :func:`facts_about`: the facts whose first argument is one of the frames.

        Args:
            frames: the frames; those of the robot and of fixed bodies are among them.
            state: the facts that hold.
            scene: the version.
        """
        del scene
        return facts_about((pddl_name(frame) for frame in frames), state)

    def explain_false_fact(self, fact: Fact, scene: SceneGraph, q: Configuration) -> str:
        """Return a clause that explains why a fact of :attr:`probabilistic_predicates` does not hold.

        Called for the explanation of a failure. It should name the probability that is reached, and
        the one required. By default it repeats the fact.

        Args:
            fact: the fact.
            scene: the version.
            q: (n_joints,) the configuration.
        """
        del scene, q
        return f"{fact} is not probable enough"

    def infeasibilities(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterable[Infeasibility]:
        """Return proofs that a goal cannot be reached from a scene by any motions.

        Called once for a planning run, before the search, which does not start when there is a
        proof. Each is sufficient alone; the most informative comes first. By default there are
        none. :mod:`tmkit.tamp.domains` has arguments that are valid in any domain.

        Args:
            goal_facts: facts that hold in every state that satisfies the goal.
            scene: the scene at the start.
        """
        del goal_facts, scene
        return ()

    @property
    def is_moved_by_picks(self) -> bool:
        """Whether an object moves only when it, or its support, is picked with a grasp of the planning run's samplers.

        Then it may be proved that no object of a clutter can be picked first. By default nothing is
        assumed.
        """
        return False

    def handled(self, goal_facts: Iterable[Fact], scene: SceneGraph) -> Iterable[ObjectToMove]:
        """Return objects that the hand has to pick and to put down to reach a goal; by default none.

        After an iteration without a plan it is tried to prove that the hand touches them nowhere
        (:mod:`tmkit.tamp.domains.separation`).

        Args:
            goal_facts: facts that hold in every state that satisfies the goal.
            scene: the scene at the start.
        """
        del goal_facts, scene
        return ()


def facts_about(names: Iterable[str], state: State) -> tuple[Fact, ...]:
    """Return the facts that describe where objects, given by PDDL names, are, sorted.

    They are the facts whose first argument is the object: those of two or more arguments, or, where
    there are none, those of one. Those of every other object that such a fact names belong to them,
    since what stands on a moved block has moved.
    """
    by_object: dict[str, list[Fact]] = {}
    for fact in state:
        if fact.arguments:
            by_object.setdefault(fact.arguments[0], []).append(fact)
    seen, found = set(names), set[Fact]()
    wanted = sorted(seen)
    while wanted:
        facts = by_object.get(wanted.pop(), [])
        relations = [fact for fact in facts if len(fact.arguments) > 1]
        for fact in relations or facts:
            found.add(fact)
            for name in fact.arguments[1:]:
                if name not in seen:
                    seen.add(name)
                    wanted.append(name)
    return tuple(sorted(found))


def pddl_name(frame: str) -> str:
    """Return the PDDL name of a frame: lower case, other characters than letters, digits, - and _ replaced by _."""
    name = re.sub(r"[^a-z0-9_-]", "_", frame.lower())
    return name if name[0].isalpha() else f"o{name}"
