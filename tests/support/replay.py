"""Replays the cases of ``tests/data/semantics.json`` through the public interface, and says what happened.

Each function takes one case as it stands in the file and returns what tmkit did with it; tests compare that with what
the case expects. Invariant: no case is known here by its content; fields of a case are read, nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmkit.relations import (
    HomogeneousMatrix,
    PoseCoord,
    SemanticError,
    SemanticPose,
    SemanticTwist,
    TwistCoord,
    apply,
    from_json,
    to_json,
)

__all__ = ["replay_example", "replay_operation"]

_FIELDS = {"orientation_frame": "ori", "ref_orientation_frame": "ref_ori", "coord_frame": "coord"}


def replay_operation(case: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out an operation on relations without numbers.

    Returns:
        ``accept``, the ``result`` as plain values or None, and ``violated``: the rules that were broken, in words.
    """
    try:
        result = apply(case["op"], *map(from_json, case["args"]))
    except SemanticError as error:
        return {"accept": False, "result": None, "violated": [str(broken) for broken in error.violations]}
    return {"accept": True, "result": None if result is None else to_json(result), "violated": None}


def replay_example(example: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Work through an example with numbers: a chain of poses, or the integration of twists.

    Returns:
        For each step or case of the example what it gave: ``semantics`` and ``homogeneous``, or ``error``.
    """
    if "steps" in example:
        return _chain(example)
    return [_integrated(example, case) for case in example["cases"]]


def _coord(fields: Mapping[str, str], rel: str) -> Any:
    return from_json({"rel": rel, **{_FIELDS.get(name, name): value for name, value in fields.items()}})


def _said(pose: SemanticPose) -> dict[str, Any]:
    back = {ours: theirs for theirs, ours in _FIELDS.items()}
    fields = {back.get(name, name): value for name, value in to_json(pose.coord).items() if name != "rel"}
    return {"semantics": fields, "homogeneous": pose.in_representation(HomogeneousMatrix).matrix}


def _chain(example: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Carry out ``inverse2`` and ``compose`` on the poses that lead to what each step speaks of."""
    known = [SemanticPose(_coord(given["semantics"], "Pose"), given["homogeneous"]) for given in example["inputs"]]
    said = []
    for step in example["steps"]:
        operation = step["step"].split()[1]
        wanted: PoseCoord = _coord(step["semantics"], "Pose")
        made = _found(operation, wanted, known)
        known.append(made)
        said.append(_said(made))
    return said


def _found(operation: str, wanted: PoseCoord, known: list[SemanticPose]) -> SemanticPose:
    """Return the first result of an operation on known poses that speaks of what is wanted."""
    operands = (
        [(x,) for x in known] if operation == "inverse2" else [(x, y) for x in known for y in known if x is not y]
    )
    for chosen in operands:
        try:
            made: SemanticPose = apply(operation, *chosen)
        except SemanticError:
            continue
        if made.coord == wanted:
            return made
    raise LookupError(f"no {operation} of the known poses gives {wanted!r}")


def _integrated(example: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, Any]:
    start = SemanticPose(_coord(example["initial_semantics"], "Pose"), example["T0"])
    coord: TwistCoord = _coord(case["twist"], "Twist")
    twist = SemanticTwist(coord, np.concatenate([example["linear"], example["angular"]]))
    try:
        moved = twist.integrate(example["t"])
    except SemanticError as error:
        return {"error": str(error)}
    is_screw = coord.coord == start.coord.ref_ori  # the motion is that of the reference frame, so it comes before
    first, second = (moved, start) if is_screw else (start, moved)
    matrices = [pose.in_representation(HomogeneousMatrix).matrix for pose in (first, second)]
    return {**_said(moved), "composed": matrices[0] @ matrices[1]}
