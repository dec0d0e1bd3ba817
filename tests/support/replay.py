"""Replays the cases of ``tests/data/semantics.json`` through the public interface, and says what happened.

Each function takes one case as it stands in the file and returns what tmkit did with it; tests compare that with what
the case expects. Invariant: no case is known here by its content; fields of a case are read, nothing else. The cases
of ``uncertainty.json`` have a module of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from support.replay_uncertainty import replay_uncertainty
from tmkit.errors import SceneError, UnknownNameError
from tmkit.graph import Node, SceneGraph, add_edge, add_pose, add_twist, relate, set_pose
from tmkit.relations import (
    HomogeneousMatrix,
    PoseCoord,
    SemanticError,
    SemanticPose,
    SemanticTwist,
    TwistCoord,
    Violation,
    apply,
    from_json,
    to_json,
)
from tmkit.spatial import Pose

__all__ = ["replay_example", "replay_graph_script", "replay_operation", "replay_uncertainty"]

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
    """Work through an example with numbers: a chain of poses, a scene and its queries, or the integration of twists.

    Returns:
        For each step or case of the example what it gave: ``semantics`` and ``homogeneous``, ``result``, or ``error``.
    """
    if "steps" in example:
        return _chain(example)
    if "poses_added" in example:
        return _scene_example(example)
    return [_integrated(example, case) for case in example["cases"]]


def replay_graph_script(script: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Build a scene graph step by step, from nothing.

    Returns:
        For each operation ``accept``, and ``rule``: why it was refused, in words, or None. A query also has ``result``.
    """
    scene, said = SceneGraph(root=None), []
    for op in script["ops"]:
        try:
            scene, result = _graph_step(scene, op)
        except (SceneError, SemanticError, UnknownNameError) as error:
            said.append({"accept": False, "rule": str(error)})
            continue
        said.append({"accept": True, "rule": None, **({} if result is None else {"result": result})})
    return said


def _graph_step(scene: SceneGraph, op: Mapping[str, Any]) -> tuple[SceneGraph, Any]:
    """Carry out one operation of a script; values that it does not give are those of a unit pose and a zero twist."""
    kind = op["op"]
    if kind == "add_body":
        return scene.add_body(op["body"]), None
    if kind == "add_frame":
        if "body" not in op:
            raise SemanticError.of("add_frame", [Violation("a frame sits on a body", f"frame '{op['frame']}'")])
        if op["body"] not in scene.body_names:
            raise UnknownNameError.of("body", op["body"], scene.body_names)
        return scene.add_root(op["frame"], body=op["body"]), None
    if kind in ("add_pose", "set_pose"):
        frame, reference = f"{{{op['child']}}}|{op['child_body']}", f"{{{op['parent']}}}|{op['parent_body']}"
        coord = PoseCoord(frame, reference, f"[{op.get('coord', op['parent'])}]")
        pose = SemanticPose(coord, _matrix(op))
        return (add_pose if kind == "add_pose" else set_pose)(scene, pose), None
    if kind == "add_twist":
        coord = TwistCoord(f"{op.get('point', op['frame'])}|{op['body']}", op["ref_body"], f"[{op['coord']}]")
        six = np.concatenate([op.get("linear", [0.0] * 3), op.get("angular", [0.0] * 3)])
        return add_twist(scene, SemanticTwist(coord, six)), None
    if kind in ("add_pose_edge_raw", "add_twist_edge_raw"):
        tail, head = Node(*op["tail"]), Node(*op["head"])
        value: Any = Pose.from_matrix(_matrix(op)) if kind == "add_pose_edge_raw" else np.zeros(6)
        return add_edge(
            scene, "pose" if kind == "add_pose_edge_raw" else "twist", tail=tail, head=head, value=value
        ), None
    if kind in ("get_pose", "get_twist"):
        return scene, replay_query(scene, {"kind": kind.removeprefix("get_"), **op})
    raise LookupError(f"the script has an operation that is not known: {kind}")


def _matrix(op: Mapping[str, Any]) -> Any:
    return op.get("homogeneous", np.eye(4))


def replay_query(scene: SceneGraph, query: Mapping[str, Any]) -> Any:
    """Return the answer to a query: the matrix of a pose, or linear and angular part of a twist."""
    rel = {"pose": "Pose", "twist": "Twist"}[query["kind"]]
    coord = _coord(query["semantics"], rel)
    if rel == "Pose":
        wants = HomogeneousMatrix if "homogeneous" in str(query.get("representation", "homogeneous")) else None
        return relate(scene, coord, representation=wants).representation.matrix
    linear, angular = relate(scene, coord).numbers
    return {"linear": linear, "angular": angular}


def _scene_example(example: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Build the scene of an example with numbers and ask its queries."""
    scene = SceneGraph(root=None)
    coords = [_coord(given["semantics"], "Pose") for given in example["poses_added"]]
    for c in coords:
        for frame, body in ((c.ori, c.body), (c.ref_ori, c.ref_body)):
            if frame not in scene:
                scene = scene.add_root(frame, body=body)
    for coord, given in zip(coords, example["poses_added"], strict=True):
        scene = add_pose(scene, SemanticPose(coord, given["homogeneous"]))
    for given in example["twists_added"]:
        six = np.concatenate([np.array(given["linear"], dtype=float), np.array(given["angular"], dtype=float)])
        scene = add_twist(scene, SemanticTwist(_coord(given["semantics"], "Twist"), six))
    said: list[dict[str, Any]] = []
    for query in example["queries"]:
        try:
            said.append({"result": replay_query(scene, query)})
        except SemanticError as error:
            said.append({"error": str(error)})
    return said


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
