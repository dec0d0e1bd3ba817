"""The names of a relation in a scene: its frames exist, and lie on the named bodies.

The point of a velocity is fixed to the body that moves, and may be named by a frame of the reference body as well: then
it is the point of the body that is, for the instant, where that frame's origin is. So the inverse of a twist, which
keeps its point, can be asked for, and the screw twist ``(h|C, D, [h])`` of De Laet et al., part 1.
"""

from __future__ import annotations

from typing import Any, Literal, NoReturn

from tmkit._core import SceneGraph
from tmkit.errors import DisconnectedError, UnknownNameError
from tmkit.graph.rigid import edges_of_twists
from tmkit.graph.traversal import joints_between, twist_path
from tmkit.relations import LinearVelocityCoord, SemanticError, SemanticRelation, TwistCoord, Violation
from tmkit.relations.semantic import require_one

OnConflict = Literal["refuse", "invert"]


def frame_on(scene: SceneGraph, body: str, beside: str) -> str | None:
    """Return the first frame of a body in the tree of another frame; None if it has none there."""
    tree = scene.root(beside)
    return next((frame for frame in scene.frames_of_body(body) if scene.root(frame) == tree), None)


def coord_of(relation: object, kind: type[SemanticRelation], operation: str) -> Any:
    """Return the coordinates of a relation of a class; SemanticError where it is none of it, or a batch."""
    if isinstance(relation, kind):
        require_one(relation, operation)
        return relation.coord
    what = " ".join(repr(relation).split())[:80]
    repair = f"say what the numbers mean: {kind.__name__}({kind.coord_class.__name__}(...), numbers)"
    raise SemanticError.of(operation, [Violation(f"it takes a {kind.__name__}", what, repair=repair)])


def require_conflict_option(on_conflict: str) -> None:
    """Check the option for conflicts."""
    if on_conflict not in ("refuse", "invert"):
        raise UnknownNameError.of("on_conflict", on_conflict, ("refuse", "invert"))


def is_on_reference(scene: SceneGraph, coord: Any) -> bool:
    """Return whether the point of a velocity is a frame of the reference body."""
    is_velocity = isinstance(coord, (TwistCoord, LinearVelocityCoord))
    return is_velocity and coord.body != coord.ref_body and scene.body(coord.point) == coord.ref_body


def check_names(scene: SceneGraph, coord: Any) -> None:
    """Check that frames and bodies of coordinates are there, and that the frames are on these bodies."""
    broken = []
    for names, on in ((("point", "ori"), coord.body), (("ref_point", "ref_ori"), coord.ref_body)):
        seen = None
        for name in names:
            frame = getattr(coord, name, None)
            if frame is None or frame == seen or (name == "point" and is_on_reference(scene, coord)):
                continue
            seen, actual = frame, scene.body(frame)
            if actual != on:
                rule = f"the {name} is a frame on the body that is named"
                violation = Violation(rule, f"frame '{frame}' is on body '{actual}'", f"body '{on}' is named")
                broken.append(violation)
        if seen is None or broken:
            scene.frames_of_body(on)  # it is there
    if coord.coord not in scene:
        raise UnknownNameError.of("frame", coord.coord, scene.frame_names)
    if broken:
        raise SemanticError.of(repr(coord), broken)


def unjoined(scene: SceneGraph, coord: Any, error: DisconnectedError) -> SemanticError:
    """Return the error of coordinates whose frames no poses join, or raise that of a wrong name."""
    check_names(scene, coord)
    violation = Violation("a path of poses leads there", str(error), repair="join the trees with add_pose")
    return SemanticError.of(f"relate({coord!r})", [violation])


def explain(scene: SceneGraph, coord: Any, qd: object = None) -> NoReturn:
    """Say why the core has no numbers: a name is wrong, or nothing says how one body moves relative to the other."""
    check_names(scene, coord)
    rule = f"a path of twists leads from body '{coord.ref_body}' to body '{coord.body}'"
    why, repair = "there is none", "add what is missing with add_twist, also where nothing moves; or pass qd"
    there, back = (coord.body, coord.ref_body), (coord.ref_body, coord.body)
    beside = getattr(coord, "point", coord.coord)
    a, b = (frame_on(scene, body, beside) for body in there)
    if a is None or b is None:
        why, repair = "nor do poses", "join the trees with add_pose, or add a twist with add_twist"
        if any(twist_path(scene, body, relative_to_body=other) for body, other in (there, back)):
            why, repair = f"there is one, but poses do not join its frames to '{beside}'", "add them with add_pose"
    elif not edges_of_twists(scene, a).isdisjoint(scene.path(a, b)) and (body := _way_out(scene, beside)):
        why = f"twist edges lead there by way of body '{body}', which no poses join"
        repair = f"join '{body}' with add_pose, or add a twist with add_twist"
    elif (joints := joints_between(scene, a, b)) and qd is None:
        why, repair = f"joint '{joints[0]}' is between them", "pass q and qd, or add a twist with add_twist"
    raise SemanticError.of(f"relate({coord!r})", [Violation(rule, why, repair=repair)])


def _way_out(scene: SceneGraph, frame: str) -> str | None:
    """Return a body by way of which twist edges lead out of the tree of a frame: one that has frames elsewhere."""
    for head in scene.twist_frames:
        edge = scene.twist_edge(head)
        assert edge is not None, "it is among the frames with twists"
        ends = scene.body(head), edge[0]
        missing = [body for body in ends if frame_on(scene, body, frame) is None]
        if len(missing) == 1:
            return missing[0]
    roots = {body: {scene.root(on) for on in scene.frames_of_body(body)} for body in scene.body_names}
    return next((body for body, trees in roots.items() if len(trees) > 1 and scene.root(frame) in trees), None)
