"""What becomes of objects on regions, and of arms that go home."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate, Change, MoveTo
from tmkit.pddl import Fact
from tmkit.plans.class_changes import ClassChange
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator
from tmkit.tamp.parts.regions import Arguments, Regions, class_facts

_HOME_TOLERANCE = 1e-6  # radians or metres by which a joint may miss its value at home


class Home(Regions):
    """Arms at their ready configurations: (athome), (move-home)."""

    pddl: ClassVar[str] = """
    (:predicates (athome ?arm - arm))        ; the arm is at its ready configuration
    (:action move-home :parameters (?arm - arm) :precondition (and) :effect (athome ?arm))
    (:extend
      (pick place place-upside-down stack unstack cover uncover open-drawer close-drawer open-door close-door pour push)
      :effect (not (athome ?arm)))
    (:extend-any (hand-over) :effect (and (not (athome ?giver)) (not (athome ?taker))))
    """

    def facts_athome(self, scene: SceneGraph, q: Configuration) -> Arguments:
        """Yield the arms at home."""
        for name, arm in self.arms.items():
            home = np.array([arm.ready[joint] for joint in arm.joints])
            if np.max(np.abs(np.asarray(q)[arm.joint_indices(scene)] - home)) <= _HOME_TOLERANCE:
                yield (name,)

    def do_move_home(self, context: ActionContext, arm: Manipulator) -> Iterator[Candidate]:
        """Yield the motion to the ready configuration."""
        del context
        yield MoveTo(arm.ready, "home", arm=None if len(self.arms) == 1 else arm.name)


class Treatment(Regions):
    """A base class of parts that give objects on some regions a class.

    Attributes:
        made_by: the classes of regions by the classes, and predicates, that objects gain there.
    """

    made_by: ClassVar[Mapping[str, str]] = {}

    def places_for(self, fact: Fact, scene: SceneGraph) -> tuple[str, ...]:
        """Return the regions on one of which an object must be for a fact about it to become true."""
        made_by = {word: kind for part in reversed(type(self).__mro__) for word, kind in _made_by(part).items()}
        kind = made_by.get(self.word(fact))
        if kind is None:
            return super().places_for(fact, scene)
        return tuple(region for region in self.region_frames(scene) if kind in scene.classes(region))

    def goal_facts(self, scene: SceneGraph, objects: Mapping[str, str], stated: Sequence[str]) -> Iterator[Fact]:
        """Yield also what each stated object is to be."""
        yield from super().goal_facts(scene, objects, stated)
        words = dict.fromkeys(word for part in type(self).__mro__ for word in _made_by(part))
        yield from (self.fact(word, frame) for frame in stated for word in words if word in scene.classes(frame))


class Washing(Treatment):
    """Objects on regions of class ``sink`` can be cleaned: they get the class ``clean``."""

    made_by: ClassVar[Mapping[str, str]] = {"clean": "sink"}
    pddl: ClassVar[str] = """
    (:predicates
      (washes ?r - region)                   ; what stands on ?r can be cleaned
      (clean ?x - item))
    (:action clean
      :parameters (?x - item ?r - region)
      :precondition (and (on ?x ?r) (washes ?r))
      :effect (clean ?x))
    """

    facts_washes = class_facts("sink", of_regions=True)
    facts_clean = class_facts("clean")

    def do_clean(self, context: ActionContext, object: str, region: str) -> Iterator[Candidate]:
        """Yield the change of classes."""
        yield Change(_gain(context.scene, object, "clean"), f"washed on {region}")


class Cooking(Treatment):
    """Clean objects on regions of class ``stove`` can be cooked: class ``cooked`` takes the place of ``clean``."""

    needs = (Washing,)
    made_by: ClassVar[Mapping[str, str]] = {"cooked": "stove"}
    pddl: ClassVar[str] = """
    (:predicates
      (heats ?r - region)                    ; what stands on ?r can be cooked
      (cooked ?x - item))
    (:action cook
      :parameters (?x - item ?r - region)
      :precondition (and (on ?x ?r) (heats ?r) (clean ?x))
      :effect (and (cooked ?x) (not (clean ?x))))
    """

    facts_heats = class_facts("stove", of_regions=True)
    facts_cooked = class_facts("cooked")

    def do_cook(self, context: ActionContext, object: str, region: str) -> Iterator[Candidate]:
        """Yield the change of classes."""
        gained = _gain(context.scene, object, "cooked")
        yield Change((*gained, ClassChange(object, removed=("clean",))), f"cooked on {region}")


def _made_by(part: type) -> Mapping[str, str]:
    found: Mapping[str, str] = vars(part).get("made_by", {})
    return found


def _gain(scene: SceneGraph, object: str, word: str) -> tuple[ClassChange, ...]:
    return () if word in scene.classes(object) else (ClassChange(object, added=(word,)),)
