"""Domain semantics: what the words of a PDDL domain mean in a scene.

A domain is a PDDL file and a file ``semantics.py`` (:mod:`tmkit.tamp.domains.loading` loads them). The latter
defines a class ``Semantics`` with the four members of :class:`DomainSemantics`: which objects a scene has, which facts
hold in it, which objects a task plan should speak of, and how an action may be carried out. The last is a lazy sequence
of *candidates* (:mod:`tmkit.manipulation.actions.candidates`). It may have the member of :class:`GoalSemantics` too,
which says what a scene means that is a goal, that of :class:`ConfiguredSemantics`, when facts depend on where the arm
is, and that of :class:`ProvingSemantics`, when it can prove that a goal is impossible.

The PDDL state is always derived from the scene, never kept beside it. After each action the planner derives the state
of the new version and compares it with what PDDL predicts; a difference is an error in the domain, and it is named.

Invariants: a semantics has no state of its own but its arms; equal scenes give equal objects, states and candidates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate
from tmkit.pddl import Fact, GroundAction, State
from tmkit.plans.values import Configuration
from tmkit.tamp.domains.infeasibility import Infeasibility

__all__ = [
    "ConfiguredSemantics",
    "DomainSemantics",
    "GoalSemantics",
    "PlacementSemantics",
    "ProbabilisticSemantics",
    "ProvingSemantics",
    "SymmetricSemantics",
    "pddl_name",
]


@runtime_checkable
class DomainSemantics(Protocol):
    """What the words of a domain mean; constructed with the arms: ``Semantics(manipulator, *others)``."""

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return the PDDL objects of a scene with their types."""
        ...

    def state(self, scene: SceneGraph, objects: Mapping[str, str]) -> State:
        """Return the basic facts that hold in a scene.

        Raises:
            SceneError: the scene cannot be told in the words of the domain; the message names the frame.
        """
        ...

    def useful_objects(self, scene: SceneGraph, q: Configuration) -> frozenset[str]:
        """Return the objects that a task plan should speak of; the others are tried only when these do not do."""
        ...

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield ways to carry out an action, best first."""
        ...


@runtime_checkable
class GoalSemantics(Protocol):
    """What a goal scene means: a member that a semantics may have besides those of :class:`DomainSemantics`.

    Without it a goal is all facts of the goal scene's state that speak of a frame which the goal states.
    """

    def goal_facts(self, scene: SceneGraph, objects: Mapping[str, str], stated: Sequence[str]) -> Iterable[Fact]:
        """Return what is wanted.

        Args:
            scene: the goal scene. A frame that it does not state may hang off the root, wherever that is.
            objects: the PDDL objects of the start scene with their types.
            stated: the movable frames whose place the goal states, in its order.

        Raises:
            SceneError: the goal scene cannot be told in the words of the domain; the message names the frame.
        """
        ...


@runtime_checkable
class ConfiguredSemantics(Protocol):
    """Facts that depend on where the arm is: a member that a semantics may have besides those above.

    Where it is there, it is asked in the place of :meth:`DomainSemantics.state` whenever a configuration is known.
    """

    def state_at(self, scene: SceneGraph, objects: Mapping[str, str], q: Configuration) -> State:
        """Return the basic facts that hold in a scene at a configuration (n_joints,).

        Raises:
            SceneError: the scene cannot be told in the words of the domain; the message names the frame.
        """
        ...


@runtime_checkable
class PlacementSemantics(Protocol):
    """Which facts tell where things are: a member that a semantics may have besides those of :class:`DomainSemantics`.

    Without it they are found by the rule of :mod:`tmkit.tamp.diagnosis.constraints`.
    """

    def placement_facts(self, frames: frozenset[str], state: State, scene: SceneGraph) -> Iterable[Fact]:
        """Return the facts of a state that tell where frames are.

        Args:
            frames: frames that a motion failure speaks of, those of the robot and of the still world included.
            state: the facts that hold.
            scene: the version.
        """
        ...


@runtime_checkable
class SymmetricSemantics(Protocol):
    """Which things are alike: a member that a semantics may have besides those of :class:`DomainSemantics`.

    What is learned of one thing is then learned of all that are alike: when one cannot be reached behind another, none
    can behind any. Only for domains whose facts tell exactly where a thing stands.
    """

    def alike(self, scene: SceneGraph) -> Iterable[Iterable[str]]:
        """Return groups of PDDL objects such that any may stand where another does, and no motion would differ."""
        ...


@runtime_checkable
class ProbabilisticSemantics(Protocol):
    """Facts that are a matter of probability: members that a semantics may have besides those above.

    A fact of such a predicate holds when something is probable enough. Its PDDL says what an action must bring about;
    how probable things become, only the scene knows. So after an action

    * a believed fact that PDDL promises and the scene lacks makes this attempt at the action a failure, for the reason
      that :meth:`explain_unmet` gives; others are tried;
    * a believed fact that the scene has and PDDL does not promise simply holds: a look at one block may tell of
      another. Steps without motion that turn out not to be needed are left out of the plan.

    So PDDL should promise what an action must achieve, delete what it may undo, and ask nowhere that a believed fact
    does not hold.
    """

    @property
    def believed(self) -> frozenset[str]:
        """The predicates whose facts are a matter of probability."""
        ...

    def explain_unmet(self, fact: Fact, scene: SceneGraph, q: Configuration) -> str:
        """Return in words why a believed fact does not hold: the probability that is reached, and the one asked."""
        ...


@runtime_checkable
class ProvingSemantics(Protocol):
    """Goals that are impossible whatever the motions: a member that a semantics may have besides those above."""

    def refutations(self, goal_facts: Iterable[Fact], scene: SceneGraph) -> Iterable[Infeasibility]:
        """Return proofs that no state with certain facts can be reached from a scene.

        Args:
            goal_facts: facts that hold in every state that satisfies the goal.
            scene: the scene at the start.

        Returns:
            Refutations, each sufficient alone, the one that tells most first; none when the domain knows no reason.
            :mod:`tmkit.tamp.domains.infeasibility` has arguments that hold in any domain.
        """
        ...


def pddl_name(frame: str) -> str:
    """Return a frame's name as PDDL can say it: lower case, other characters than letters, digits, - and _ replaced."""
    name = re.sub(r"[^a-z0-9_-]", "_", frame.lower())
    return name if name[0].isalpha() else f"o{name}"
