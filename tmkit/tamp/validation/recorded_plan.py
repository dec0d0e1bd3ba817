"""Plans in ``.tmp`` files without their domain and robot, to be shown.

The actions of such a plan have no preconditions, and its hands are the new parents of its objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from numpy.typing import ArrayLike

from tmkit.errors import FileFormatError, RobotError
from tmkit.formats.tmp_file import TmpAction, TmpMotion, TmpReparent, read_tmp
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate
from tmkit.pddl import GroundAction, State, parse_domain
from tmkit.plans.values import Configuration, Plan
from tmkit.robots import Manipulator
from tmkit.robots.chain_arms import chain_arms
from tmkit.robots.robot_files import find_manipulators
from tmkit.tamp.domains.loading import PythonDomain
from tmkit.tamp.domains.semantics import DomainSemantics
from tmkit.tamp.validation.tmp_plan import load_tmp_plan, read_tmp_header

_ACTION_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
"""Names of actions in PDDL."""


def load_recorded_plan(path: str | Path, scene: SceneGraph, *, q: ArrayLike | None = None) -> Plan:
    """Return the plan of a ``.tmp`` file, whose actions and arms follow from its lines.

    Args:
        path: plan file.
        scene: scene at the start.
        q: (n_joints,) configuration at the start, for joints without a value in the file [rad or
            m].

    Raises:
        MissingFileError: if there is no such file.
        PlanFileError: if the file is invalid, or does not fit the scene.
        RobotError: if its motions move no joint of the scene.
    """
    names = read_tmp_header(path).robots
    entries = read_tmp(path).entries
    lines = [entry for entry in entries if isinstance(entry, TmpAction)]
    for line in lines:
        if _ACTION_NAME.fullmatch(line.words[0]) is None and line.place is not None:
            raise line.place.error(f"'{line.words[0]}' is not the name of an action")
    actions = {line.words[0].lower(): line.words[1:] for line in lines}
    schemas = [
        f"(:action {name} :parameters ({' '.join(f'?x{i}' for i in range(len(words)))})"
        " :effect (done))"
        for name, words in actions.items()
    ]
    text = f"(define (domain recorded) (:predicates (done)) {' '.join(schemas)})"
    objects = {word: "object" for line in lines for word in line.words[1:]}

    class RecordedSemantics(DomainSemantics):
        """Objects of the file, without a state."""

        def objects(self, scene: SceneGraph) -> Mapping[str, str]:
            del scene
            return objects

        def state(self, scene: SceneGraph, objects: Mapping[str, str], q: Configuration) -> State:
            del scene, objects, q
            return State([])

        def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
            del action, context
            return iter(())

    arms: tuple[Manipulator, ...]
    try:
        arms = find_manipulators(names, scene)
    except (FileFormatError, RobotError):
        hands = [entry.parent for entry in entries if isinstance(entry, TmpReparent)]
        motions = [entry for entry in entries if isinstance(entry, TmpMotion)]
        links = [
            scene.joint_frame(j) for m in motions[1:] for j in m.joints if j in scene.joint_names
        ]
        frames = [frame for frame in hands if frame in scene]
        arms = chain_arms(scene, frames, q=q) or chain_arms(scene, links, q=q)
        if not arms:
            raise
    domain = PythonDomain(parse_domain(text), RecordedSemantics)
    return load_tmp_plan(path, scene, q=q, domain=domain, robot=arms, goal="(and)")
