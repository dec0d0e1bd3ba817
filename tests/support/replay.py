"""Replay of the cases of ``tests/data/semantics.json`` through the public interface.

Each function takes one case of the file and returns tmkit's result; tests compare it with the
expected result. Invariants: no case is recognized by its content; only fields of a case are read. A
rejection is one of tmkit's rules: a case that cannot be read (an operation, a relation or a field
that is unknown) is a LookupError with the name, so that it never counts as a rejection.

Cases with numbers are those of :mod:`support.replay_numbers` and
:mod:`support.replay_representations`; the cases of ``uncertainty.json`` have a module of their own.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from support.replay_numbers import replay_numbers
from support.replay_representations import (
    numbers_of,
    orientation_said,
    replay_description,
    replay_moved,
)
from support.replay_uncertainty import replay_uncertainty
from tmkit.errors import TmkitError, UnknownNameError
from tmkit.graph import SceneGraph, add_edge, add_pose, add_twist, relate, update_pose
from tmkit.graph.semantic_edges.edges import Node, update_twist
from tmkit.relations import (
    PoseCoord,
    SemanticError,
    SemanticPose,
    SemanticTwist,
    TwistCoord,
    apply,
    differentiate,
    from_dict,
    to_dict,
)
from tmkit.relations.representations import EulerAngles, HomogeneousMatrix, VectorAndRotationVector
from tmkit.spatial import Pose

__all__ = ["replay_example", "replay_graph_script", "replay_operation", "replay_uncertainty"]

_FIELDS = {"orientation_frame": "ori", "ref_orientation_frame": "ref_ori", "coord_frame": "coord"}


def replay_operation(case: Mapping[str, Any]) -> dict[str, Any]:
    """Execute the operation of a case on relations, with numbers if the case has inputs.

    Returns:
        ``accept``, the ``result`` as plain values or None, and ``violated``: the rules that were
        broken, as texts.

    Raises:
        LookupError: if an operation, a relation or a field is unknown.
    """
    _require_known(
        case,
        {"op", "args", "inputs", "accept", "result", "violated", "expected"},
        "a case of an operation",
    )
    try:
        if "inputs" in case:
            return replay_numbers(case)
        result = apply(case["op"], *map(_argument, case["args"]))
    except UnknownNameError as error:
        raise LookupError(str(error)) from error
    except SemanticError as error:
        return {
            "accept": False,
            "result": None,
            "violated": [str(broken) for broken in error.violations],
        }
    except TmkitError as error:
        return {"accept": False, "result": None, "violated": [str(error)]}
    return {"accept": True, "result": None if result is None else to_dict(result), "violated": None}


def _argument(entry: Any) -> Any:
    """Return an operand: a relation, or the name or number that stands there."""
    if not isinstance(entry, Mapping):
        return entry
    named = {_FIELDS.get(name, name): value for name, value in entry.items()}
    _require_known(named, {"rel", "values", *_FIELDS.values(), *_NAMES}, "a relation", texts=False)
    return from_dict(named)


_NAMES = ("point", "ori", "body", "ref_point", "ref_ori", "ref_body", "coord")


def _require_known(
    fields: Mapping[str, Any], names: Collection[str], what: str, *, texts: bool = True
) -> None:
    """Require known fields; of description texts, only where they may have a meaning.

    Raises:
        LookupError: if fields are unknown.
    """
    descriptions = (str, bool, type(None)) if texts else ()
    unknown = [
        name
        for name, value in fields.items()
        if name not in names and not isinstance(value, descriptions)
    ]
    if unknown:
        raise LookupError(
            f"{what} has no field {', '.join(unknown)}; known are {', '.join(sorted(names))}"
        )


def replay_example(example: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Work through an example with numbers.

    An example is a chain of poses, a scene and its queries, the integration of twists, a wrench and
    a twist that are moved to another frame, or one thing in several representations.

    Returns:
        Results of each step or case of the example: ``semantics`` and ``homogeneous``,
        ``result``, or ``error``.

    Raises:
        LookupError: if the example has another kind.
    """
    if "steps" in example:
        return _chain(example)
    if "poses_added" in example:
        return _scene_example(example)
    if "cases" in example:
        return [_integrate(example, case) for case in example["cases"]]
    if {"T0", "T1", "dt"} <= example.keys():
        return _differentiate(example)
    if {"rpy", "p", "force", "linear"} <= example.keys():
        return [replay_moved(example)]
    return [replay_description(example)]


def replay_graph_script(script: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Build a scene graph step by step, from nothing.

    Returns:
        For each operation ``accept``, and ``rule``: the reason of a rejection, or None. A query
        also has ``result``.
    """
    scene, results = SceneGraph(root=None), []
    for op in script["ops"]:
        try:
            scene, result = _graph_step(scene, op)
        except TmkitError as error:
            name = f"{error.data['rule']}: " if "rule" in error.data else ""
            results.append({"accept": False, "rule": f"{name}{error}"})
            continue
        results.append(
            {"accept": True, "rule": None, **({} if result is None else {"result": result})}
        )
    return results


_OF_STEPS = {  # fields of a script's operations; descriptions are texts and have any name
    *(
        "op",
        "body",
        "frame",
        "child",
        "child_body",
        "parent",
        "parent_body",
        "ref_frame",
        "ref_body",
        "coord",
        "point",
    ),
    *(
        "ori",
        "ref_point",
        "ref_ori",
        "semantics",
        "homogeneous",
        "rotation",
        "translation",
        "euler_zyx",
        "value",
    ),
    *(
        "linear",
        "angular",
        "tail",
        "head",
        "accept",
        "rule",
        "result",
        "expected",
        "representation",
    ),
}


def _graph_step(scene: SceneGraph, op: Mapping[str, Any]) -> tuple[SceneGraph, Any]:
    """Carry out one operation of a script."""
    kind = op["op"]
    _require_known(op, _OF_STEPS, f"the operation {kind}")
    if kind == "add_body":
        return scene.add_body(op["body"]), None
    if kind == "add_frame":
        return scene.add_frame(op["frame"], body=op.get("body")), None
    if kind in ("add_pose", "set_pose"):
        coord = _pose_coord(scene, op)
        pose = SemanticPose(coord, _pose_value(scene, coord, op))
        return (add_pose if kind == "add_pose" else update_pose)(scene, pose), None
    if kind in ("add_twist", "set_twist"):
        coord = _twist_coord(scene, op)
        six = np.concatenate([op.get("linear", [0.0] * 3), op.get("angular", [0.0] * 3)])
        put = add_twist if kind == "add_twist" else update_twist
        return put(scene, SemanticTwist(coord, six), frame=op.get("frame", coord.point)), None
    if kind in ("add_pose_edge_raw", "add_twist_edge_raw"):
        tail, head = Node(*op["tail"]), Node(*op["head"])
        if kind == "add_pose_edge_raw":
            value = Pose.from_matrix(_matrix(op)) if _matrix(op) is not None else Pose()
            return add_edge(scene, "pose", tail=tail, head=head, value=value), None
        return add_edge(scene, "twist", tail=tail, head=head, value=np.zeros(6)), None
    if kind == "remove_frame":
        return scene.remove_frame(op["frame"]), None
    if kind == "remove_body":
        return scene.remove_body(op["body"]), None
    if kind == "remove_twist":
        return scene.remove_twist(op["frame"]), None
    if kind == "get_pose":
        return scene, _query(scene, _pose_coord(scene, op), op)
    if kind == "get_twist":
        return scene, _query(scene, _twist_coord(scene, op), op)
    if kind.startswith("get_") and "semantics" in op:
        return scene, replay_query(scene, {"kind": kind.removeprefix("get_"), **op})
    raise LookupError(f"the script has an operation that is not known: {kind}")


# ------------------------------------------------------------------------------ poses of a script


def _pose_coord(scene: SceneGraph, op: Mapping[str, Any]) -> PoseCoord:
    """Return the pose of an operation, by its semantics, or by frames with the scene's bodies."""
    if "semantics" in op:
        return _coord(op["semantics"], "Pose")
    child, parent = op.get("child", op.get("frame")), op.get("parent", op.get("ref_frame"))
    body = op.get("child_body", op.get("body")) or scene.body(str(child))
    ref_body = op.get("parent_body", op.get("ref_body")) or scene.body(str(parent))
    ori, ref_ori = op.get("ori", child), op.get("ref_ori", parent)
    names = {"point": op.get("point", ori), "ori": ori, "body": body}
    names |= {"ref_point": op.get("ref_point", ref_ori), "ref_ori": ref_ori, "ref_body": ref_body}
    return PoseCoord.from_names(**names, coord=op.get("coord", ref_ori))


def _twist_coord(scene: SceneGraph, op: Mapping[str, Any]) -> TwistCoord:
    if "semantics" in op:
        return _coord(op["semantics"], "Twist")
    point = op.get("point", op.get("frame"))
    body = op.get("body") or scene.body(str(op.get("frame", point)))
    return TwistCoord.from_names(
        point=point, body=body, ref_body=op["ref_body"], coord=op.get("coord", point)
    )


def _matrix(op: Mapping[str, Any]) -> Any:
    """Return the homogeneous matrix that an operation gives, or None."""
    value = op.get("value")
    if isinstance(value, Mapping):
        return _matrix(value)
    for name in ("homogeneous", "T", "pose", "value"):
        if np.shape(op.get(name)) == (4, 4):
            return op[name]
    if not {"rotation", "translation", "euler_zyx"} & op.keys():
        return None
    turned = (
        EulerAngles(op["euler_zyx"]).numbers[0]
        if "euler_zyx" in op
        else op.get("rotation", np.eye(3))
    )
    return HomogeneousMatrix.of(
        (np.array(op.get("translation", [0.0] * 3)), np.array(turned))
    ).matrix


def _pose_value(scene: SceneGraph, coord: PoseCoord, op: Mapping[str, Any]) -> Any:
    """Return the numbers of a pose.

    Where an operation gives none, ``add_pose`` adds a unit pose and ``set_pose`` sets one that
    differs from the present one; a label instead of a number stands for any pose, always the same.
    """
    number_matrix = _matrix(op)
    if number_matrix is not None:
        return HomogeneousMatrix(number_matrix)
    label = op.get("value")
    shift = (
        0.1 + 100.0 * zlib.crc32(json.dumps(label).encode()) / 2**32 if label is not None else 0.0
    )
    if op["op"] == "set_pose" and label is None:
        is_known = {coord.ori, coord.ref_ori} <= set(scene.frame_names) and scene.root(
            coord.ori
        ) == scene.root(coord.ref_ori)
        shift = 0.1 + (
            scene.pose(coord.ori, relative_to=coord.ref_ori).translation[0] if is_known else 0.0
        )
    return VectorAndRotationVector([shift, 0.0, 0.0], [0.0, 0.0, 0.0])


def _query(scene: SceneGraph, coord: Any, op: Mapping[str, Any]) -> Any:
    """Return the result of a query: the matrix of a pose, two parts of a twist, or an array.

    A pose in another representation, or with other names, has its numbers by all
    their names.
    """
    if isinstance(coord, PoseCoord):
        expected = op.get("expected")
        is_matrix = not isinstance(expected, Mapping) or "homogeneous" in expected
        if is_matrix and "homogeneous" in str(op.get("representation", "homogeneous")):
            return relate(scene, coord, representation=HomogeneousMatrix).representation.matrix
        pose = relate(scene, coord)
        return numbers_of(pose) | orientation_said(pose.orientation, {})
    numbers = relate(scene, coord).numbers
    return (
        {"linear": numbers[0], "angular": numbers[1]}
        if isinstance(coord, TwistCoord)
        else numbers[0]
    )


def replay_query(scene: SceneGraph, query: Mapping[str, Any]) -> Any:
    """Return the result of a query of an example, which has its kind of relation."""
    kind = "".join(word[0].upper() + word[1:] for word in query["kind"].split("_"))
    return _query(scene, _coord(query["semantics"], kind), query)


def _scene_example(example: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Build the scene of an example with numbers and run its queries."""
    scene = SceneGraph(root=None)
    coords = [_coord(entry["semantics"], "Pose") for entry in example["poses_added"]]
    for c in coords:
        for frame, body in (
            (c.ref_ori, c.ref_body),
            (c.ref_point, c.ref_body),
            (c.ori, c.body),
            (c.point, c.body),
        ):
            if body not in scene.body_names:
                scene = scene.add_body(body)
            if frame not in scene:
                scene = scene.add_frame(frame, body=body)
    for coord, entry in zip(coords, example["poses_added"], strict=True):
        matrix = _matrix(entry)
        if matrix is None:
            raise LookupError(
                f"a pose that is added has no numbers that are known: {', '.join(entry)}"
            )
        scene = add_pose(scene, SemanticPose(coord, HomogeneousMatrix(matrix)))
    for entry in example.get("twists_added", []):
        six = np.concatenate(
            [np.array(entry["linear"], dtype=float), np.array(entry["angular"], dtype=float)]
        )
        scene = add_twist(scene, SemanticTwist(_coord(entry["semantics"], "Twist"), six))
    answers: list[dict[str, Any]] = []
    for query in example["queries"]:
        try:
            answers.append({"result": replay_query(scene, query)})
        except TmkitError as error:
            answers.append({"error": str(error)})
    return answers


def _coord(fields: Mapping[str, str], rel: str) -> Any:
    return _argument({"rel": rel, **fields})


def _describe(pose: SemanticPose) -> dict[str, Any]:
    back = {ours: theirs for theirs, ours in _FIELDS.items()}
    fields = {
        back.get(name, name): value for name, value in to_dict(pose.coord).items() if name != "rel"
    }
    return {"semantics": fields, "homogeneous": pose.in_representation(HomogeneousMatrix).matrix}


def _chain(example: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Execute ``inverse2`` and ``compose`` on the poses that lead to the pose of each step."""
    inputs = [
        SemanticPose(_coord(entry["semantics"], "Pose"), entry["homogeneous"])
        for entry in example["inputs"]
    ]
    results = []
    for step in example["steps"]:
        wanted: PoseCoord = _coord(step["semantics"], "Pose")
        words = str(step.get("step", step.get("op", ""))).split()
        operations = [name for name in ("inverse2", "compose") if name in words] or [
            "inverse2",
            "compose",
        ]
        matches = (
            pose
            for operation in operations
            if (pose := _find(operation, wanted, inputs)) is not None
        )
        match = next(matches, None)
        if match is None:
            raise LookupError(f"no {' and no '.join(operations)} of known poses gives {wanted!r}")
        inputs.append(match)
        results.append(_describe(match))
    return results


def _find(operation: str, wanted: PoseCoord, poses: list[SemanticPose]) -> SemanticPose | None:
    """Return the first result of an operation on known poses with the wanted relation, or None."""
    operands = (
        [(x,) for x in poses]
        if operation == "inverse2"
        else [(x, y) for x in poses for y in poses if x is not y]
    )
    for chosen in operands:
        try:
            pose: SemanticPose = apply(operation, *chosen)
        except SemanticError:
            continue
        if pose.coord == wanted:
            return pose
    return None


def _integrate(example: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, Any]:
    start = SemanticPose(_coord(example["initial_semantics"], "Pose"), example["T0"])
    coord: TwistCoord = _coord(case["twist"], "Twist")
    twist = SemanticTwist(coord, np.concatenate([example["linear"], example["angular"]]))
    try:
        moved = twist.integrate(example["t"])
    except SemanticError as error:
        return {"error": str(error)}
    # the motion is that of the reference frame, so it comes before
    is_screw = coord.coord == start.coord.ref_ori
    first, second = (moved, start) if is_screw else (start, moved)
    matrices = [pose.in_representation(HomogeneousMatrix).matrix for pose in (first, second)]
    return {**_describe(moved), "composed": matrices[0] @ matrices[1]}


def _differentiate(example: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the body-fixed and the screw twist that lead from one pose to another in a time."""
    fields = example.get("initial_semantics")
    coord = _coord(fields, "Pose") if fields else PoseCoord("{g}|C", "{h}|D", "[h]")
    before, later = (SemanticPose(coord, example[name]) for name in ("T0", "T1"))
    twists = [differentiate(before, later, example["dt"], screw=screw) for screw in (False, True)]
    return [{"semantics": to_dict(twist.coord), **numbers_of(twist)} for twist in twists]
