"""Plan files: a plan as JSON that stands alone.

A file holds the scene (meshes by their portable name and content digest, or embedded), the arm's description, the
domain's text and digest, the goal, the seed and every step with its segments. Later scene versions are not stored: they
follow from the first one by the reparentings of the segments, and loading applies them again.

Invariants: the same plan has the same bytes, since keys are sorted, numbers are written so that they read back to the
same bits, and there are no times and no absolute paths. A file is written whole or not at all.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tmkit.errors import MissingFileError, OutputError, PlanFileError, TmkitError
from tmkit.formats import scene_from_json, scene_to_json
from tmkit.motion import Exemption, Manipulator
from tmkit.planner.values import Plan, PlanStep, Reparenting, Segment, SegmentKind
from tmkit.spatial import Pose
from tmkit.tasks import GroundAction

__all__ = ["load_plan", "plan_from_dict", "plan_to_dict", "save_plan", "write_atomically"]

_FORMAT = "tmkit-plan"
_VERSION = 1


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        OutputError: the file cannot be written.
    """
    target = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"{target}: cannot be written: {reason}", path=str(target), reason=reason) from None


def save_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan to a file; see :meth:`Plan.save`."""
    text = json.dumps(plan_to_dict(plan), sort_keys=True, indent=1, allow_nan=False, ensure_ascii=False)
    write_atomically(path, (text + "\n").encode())


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain values."""
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "scene": scene_to_json(plan.scene),
        "q": [float(value) for value in plan.q],
        "robot": plan.robot.to_dict(),
        "domain": {"name": plan.domain, "pddl": plan.domain_pddl, "digest": plan.domain_digest},
        "goal": plan.goal,
        "seed": plan.seed,
        "steps": [
            {
                "action": [step.action.name, *step.action.arguments],
                "choice": step.choice,
                "segments": [_segment_to_dict(segment) for segment in step.segments],
            }
            for step in plan.steps
        ],
    }


def _segment_to_dict(segment: Segment) -> dict[str, Any]:
    change = segment.reparenting
    return {
        "kind": segment.kind.value,
        "joints": list(segment.joint_names),
        "path": [[float(value) for value in row] for row in segment.path],
        "gripper": dict(segment.gripper),
        "held": segment.held,
        "exemptions": [
            [e.frame_a, e.frame_b, None if math.isinf(e.penetration) else e.penetration, e.reason]
            for e in segment.exemptions
        ],
        "reparent": None
        if change is None
        else {"frame": change.frame, "parent": change.parent, "pose": [float(v) for v in change.pose.as_array()]},
    }


def load_plan(path: str | Path) -> Plan:
    """Read a plan from a file; see :meth:`Plan.load`."""
    source = Path(path)
    try:
        document = json.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MissingFileError(f"there is no plan file '{source}'", path=str(source), nearest=None) from None
    except OSError as error:
        raise PlanFileError.at(source, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise PlanFileError.at(source, f"is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise PlanFileError.at(source, f"is not JSON: {error.msg}", line=error.lineno, column=error.colno) from None
    except RecursionError:
        raise PlanFileError.at(source, "is nested too deeply to be a plan") from None
    return plan_from_dict(document, source=str(source))


def plan_from_dict(document: Any, *, source: str = "plan") -> Plan:
    """Make a plan of plain values.

    Raises:
        PlanFileError: a value that is missing or does not fit; the message says which.
    """
    if not isinstance(document, Mapping) or document.get("format") != _FORMAT:
        raise PlanFileError.at(source, f"is not a plan: its 'format' is not '{_FORMAT}'")
    if document.get("version") != _VERSION:
        raise PlanFileError.at(source, f"has plan version {document.get('version')!r}, this tmkit reads {_VERSION}")
    try:
        return _read_plan(document, source)
    except PlanFileError:
        raise
    except TmkitError as error:
        raise PlanFileError.at(source, str(error)) from error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        what = f"key {error} is missing" if isinstance(error, KeyError) else f"a value does not fit: {error}"
        raise PlanFileError.at(source, what) from error


def _read_plan(document: Mapping[str, Any], source: str) -> Plan:
    scene = scene_from_json(document["scene"], source=source)
    q = _array(document["q"])
    robot = Manipulator.from_dict(document["robot"], source=source)
    robot.check(scene, source=source)
    steps: list[PlanStep] = []
    at_scene, at_q = scene, q
    for entry in document["steps"]:
        segments = tuple(_read_segment(item) for item in entry["segments"])
        for segment in segments:
            at_scene, at_q = segment.end(at_scene, at_q)
        name, *arguments = entry["action"]
        steps.append(PlanStep(GroundAction(name, tuple(arguments)), segments, at_scene, at_q, entry["choice"]))
    domain = document["domain"]
    return Plan(
        scene, q, robot, domain["name"], domain["pddl"], domain["digest"], document["goal"], document["seed"],
        tuple(steps),
    )  # fmt: skip


def _read_segment(entry: Mapping[str, Any]) -> Segment:
    change = entry["reparent"]
    exemptions = tuple(
        Exemption(a, b, math.inf if penetration is None else float(penetration), reason)
        for a, b, penetration, reason in entry["exemptions"]
    )
    return Segment(
        SegmentKind(entry["kind"]),
        tuple(entry["joints"]),
        _array(entry["path"]),
        {joint: float(value) for joint, value in entry["gripper"].items()},
        entry["held"],
        exemptions,
        None if change is None else Reparenting(change["frame"], change["parent"], Pose.from_array(change["pose"])),
    )


def _array(values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    array = np.array(values, dtype=float)
    array.flags.writeable = False
    return array
