"""Domain semantics: what the words of a PDDL domain mean in a scene.

A domain is a folder with ``domain.pddl`` and ``semantics.py``. The latter defines a class ``Semantics`` with the four
members of :class:`DomainSemantics`: which objects a scene has, which facts hold in it, which objects a task plan should
speak of, and how an action may be carried out. The last is a lazy sequence of *candidates*: :class:`Pick` with a grasp,
:class:`Place` with a resting place, or anything else that can :meth:`Candidate.refine` itself.

The PDDL state is always derived from the scene, never kept beside it. After each action the planner derives the state
of the new version and compares it with what PDDL predicts; a difference is an error in the domain, and it is named.

Invariants: a semantics has no state of its own but its arm; equal scenes give equal objects, states and candidates.
"""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Protocol, runtime_checkable

import numpy as np

from tmkit.data import resolve_name
from tmkit.errors import FileFormatError, MissingFileError
from tmkit.graph import SceneGraph
from tmkit.motion import Manipulator
from tmkit.planner.arm_motion import ArmMotion, Refinement
from tmkit.planner.grasps import Grasp
from tmkit.planner.motion_pieces import MotionFailure
from tmkit.planner.values import Configuration
from tmkit.spatial import Pose
from tmkit.tasks import Domain, GroundAction, State, load_domain

__all__ = [
    "ActionContext",
    "Candidate",
    "DomainSemantics",
    "Impossible",
    "Pick",
    "Place",
    "PlanningDomain",
    "load_planning_domain",
]


@dataclass(frozen=True, eq=False)
class ActionContext:
    """Where an action is to be carried out.

    Attributes:
        scene: the version before the action.
        q: (n_joints,) configuration before the action.
        rng: random generator for sampled choices, seeded for this visit.
    """

    scene: SceneGraph
    q: Configuration
    rng: np.random.Generator


class Candidate(Protocol):
    """One way of carrying out an action."""

    def refine(self, arm: ArmMotion, context: ActionContext, *, seed: int) -> Iterator[Refinement | MotionFailure]:
        """Yield motions for it, and failures in between."""
        ...


@dataclass(frozen=True)
class Pick:
    """Pick an object with one grasp.

    Attributes:
        item: frame of the object.
        grasp: how to hold it.
    """

    item: str
    grasp: Grasp

    def refine(self, arm: ArmMotion, context: ActionContext, *, seed: int) -> Iterator[Refinement | MotionFailure]:
        """Yield motions for it, and failures in between."""
        return arm.pick(context.scene, context.q, item=self.item, grasp=self.grasp, seed=seed)


@dataclass(frozen=True)
class Place:
    """Place the held object at rest on a support.

    Attributes:
        item: frame of the object.
        support: frame that it comes to rest on.
        pose: support_from_item.
    """

    item: str
    support: str
    pose: Pose

    def refine(self, arm: ArmMotion, context: ActionContext, *, seed: int) -> Iterator[Refinement | MotionFailure]:
        """Yield motions for it, and failures in between."""
        return arm.place(context.scene, context.q, item=self.item, support=self.support, pose=self.pose, seed=seed)


@dataclass(frozen=True)
class Impossible:
    """No way to carry out an action, in any state: yield it as the only candidate, and no plan uses the action again.

    Attributes:
        cause: why, in words, for the explanation; the same cause has the same words.
    """

    cause: str

    def refine(self, arm: ArmMotion, context: ActionContext, *, seed: int) -> Iterator[Refinement | MotionFailure]:
        """Yield the failure."""
        del arm, context, seed
        yield MotionFailure("choosing", self.cause, is_final=True)


@runtime_checkable
class DomainSemantics(Protocol):
    """What the words of a domain mean; constructed with the arm: ``Semantics(manipulator)``."""

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


@dataclass(frozen=True, eq=False)
class PlanningDomain:
    """A domain ready for planning: its words and their meaning.

    Attributes:
        name: the folder's name.
        domain: the PDDL domain.
        pddl: its text.
        digest: 64 hexadecimal digits over the text and the semantics' source.
        semantics: the meaning, for one arm.
    """

    name: str
    domain: Domain
    pddl: str
    digest: str
    semantics: DomainSemantics


def load_planning_domain(domain: str | Path, *, manipulator: Manipulator) -> PlanningDomain:
    """Load a domain folder.

    Args:
        domain: a bare name means ours, in ``domains/``; anything with a separator is a folder.
        manipulator: the arm that carries out the actions.

    Raises:
        MissingFileError: no such folder, or one of its two files is missing.
        TaskError: the PDDL is wrong.
        FileFormatError: ``semantics.py`` has no class ``Semantics`` that fits, or cannot be run.
    """
    folder = resolve_name(domain, "domains")
    pddl_path, semantics_path = folder / "domain.pddl", folder / "semantics.py"
    for path in (pddl_path, semantics_path):
        if not path.is_file():
            raise MissingFileError(
                f"domain '{domain}' needs the file {path.name}, which is not in {folder}", path=str(path), nearest=None
            )
    parsed = load_domain(pddl_path)
    source = semantics_path.read_bytes()
    semantics_class = getattr(_import_file(semantics_path, source), "Semantics", None)
    if not isinstance(semantics_class, type):
        raise FileFormatError.at(semantics_path, "defines no class 'Semantics'")
    try:
        semantics = semantics_class(manipulator)
    except Exception as error:
        what = f"'Semantics(manipulator)' fails: {type(error).__name__}: {error}"
        raise FileFormatError.at(semantics_path, what) from error
    if not isinstance(semantics, DomainSemantics):
        members = "objects, state, useful_objects and candidates"
        raise FileFormatError.at(semantics_path, f"class 'Semantics' must have the methods {members}")
    text = pddl_path.read_text(encoding="utf-8")
    digest = hashlib.sha256(text.encode() + b"\0" + source).hexdigest()
    return PlanningDomain(folder.name, parsed, text, digest, semantics)


def _import_file(path: Path, source: bytes) -> ModuleType:
    """Run a semantics file as a module of a name that depends on its content, so that two of one name do not meet.

    The very bytes that the digest speaks of are run, and nothing is written beside them.
    """
    module = ModuleType(f"tmkit_semantics_{hashlib.sha256(source).hexdigest()[:16]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up there
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except Exception as error:
        del sys.modules[module.__name__]
        line = error.lineno if isinstance(error, SyntaxError) else _line_in(path, error)
        raise FileFormatError.at(path, f"{type(error).__name__}: {error}", line=line) from error
    return module


def _line_in(path: Path, error: Exception) -> int | None:
    """Return the line of a file in which an error arose, the innermost."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None
