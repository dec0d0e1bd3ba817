"""A proof that no hand touches an object: what never moves encloses it, and no gap lets a part of the hand through.

A ball inside a rigid link of the hand moves with it. On the way from the start to a contact its
centre never comes nearer to what stands still than its radius. Space is divided into cells, and a
cell counts as closed only if the ball collides wherever in the cell its centre is. It does if a
ball smaller by half the cell's diagonal does at the middle. If the open cells at which the link may
touch the object are connected neither with the outside nor with the start, through faces of cells,
the object is not touched.

A contact link of one convex solid also contains the hull of its ball and the point of contact. So
near the contact a ball of a share of the radius comes to the same share of the distance. Small
balls prove tight enclosures, large ones those with gaps. Of a mesh the ball is inside the planes of
all faces, where every point of the mesh is seen from; how far vertices are outside of these planes
is taken off the radius.

Only exact shapes count: boxes, balls, cylinders, capsules, and the triangles of meshes, never their
hulls; what is movable, or moved by a joint, is taken away. A failure to prove anything means
nothing.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import norm, norms
from tmkit.graph import AttachedShape, SceneGraph, Sphere
from tmkit.manipulation.grasps.floating import FloatingBody
from tmkit.motion.regions.solids import solid_points
from tmkit.pddl import Fact
from tmkit.robots import Manipulator, movable_frames
from tmkit.spatial import Pose
from tmkit.tamp.domains.infeasibility import Infeasibility, contact_points
from tmkit.tamp.domains.semantics import ObjectToMove

_SHARES = (1.0, 0.5, 0.25)  # of a contact link's ball
_CELL = 0.7  # side of a cell per radius; below 2 / (1 + sqrt(3)) no wall is too thin
_HALF_DIAGONAL = math.sqrt(3.0) / 2.0
_HALF = 64  # cells from the middle of the grid to its edge
_MOST_CELLS = 100_000  # that are checked before a proof is given up
_SLACK = 2e-4  # metres by which balls are smaller, for contacts that count as touching, and errors
_FACES = np.array([(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)])
_EXACT = ("box", "sphere", "cylinder", "capsule", "mesh")
NAMED_BODIES = 4
"""Number of bodies that an explanation names."""
_OFF = 0.03  # metres by which an object may stand beside or above its region, and more

_Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class _Ball:
    """A ball inside a link, its centre in the link's frame, and how far from it at most the hand touches an object."""

    link: str
    centre: NDArray[np.float64]
    radius: float
    reach: float


def separated(
    scene: SceneGraph, handled: ObjectToMove, *, q: ArrayLike, manipulator: Manipulator
) -> Infeasibility | None:
    """Refute that a hand touches an object where it stands, or where it is to be put down.

    Args:
        manipulator: the only arm that could.
    """
    object, movable = handled.object, frozenset(movable_frames(scene))
    bounds = _bounds(scene, object)
    if bounds is None:
        return None
    if _stands_still(scene, object, movable - {object}):
        found = _enclosed(
            scene,
            object,
            bounds,
            what=f"'{object}'",
            q=q,
            fact=handled.fact,
            manipulator=manipulator,
        )
        if found is not None:
            return found
    proofs, wide = [], norm(bounds[1] - bounds[0]) + _OFF
    for region in handled.regions:
        around = _bounds(scene, region, only_solid=False)
        if around is None or not _stands_still(scene, region, movable):
            return None
        sunk = 0.005 if any(attached.collision for attached in scene.shapes(region)) else _OFF
        low, high = around[0] - _OFF, around[1] + [_OFF, _OFF, wide]
        space = np.array([low[0], low[1], around[1][2] - sunk]), high  # what stands there is above
        what = f"'{object}' on '{region}'"
        proofs.append(
            _enclosed(
                scene, region, space, what=what, q=q, fact=handled.fact, manipulator=manipulator
            )
        )
        if proofs[-1] is None:
            return None
    return proofs[0] if proofs else None


def _enclosed(
    scene: SceneGraph,
    frame: str,
    bounds: _Bounds,
    *,
    what: str,
    q: ArrayLike,
    fact: Fact,
    manipulator: Manipulator,
) -> Infeasibility | None:
    """Refute that a hand touches anything inside a box of a frame."""
    place = scene.pose(frame, relative_to=scene.root(frame), q=q)
    for ball in _balls(scene, manipulator):
        start = scene.pose(ball.link, relative_to=scene.root(ball.link), q=q).apply(ball.centre)
        around = _enclosing(scene, q, ball, place=place, bounds=bounds, start=start)
        if around is not None:
            named = ", ".join(f"'{name}'" for name in around[:NAMED_BODIES]) + (
                " and others" if len(around) > NAMED_BODIES else ""
            )
            cause = (
                f"{what} has to be touched, and what never moves encloses it ({named}): no gap lets"
                f" a ball of {2000.0 * ball.radius:.1f} mm through, which is inside '{ball.link}'"
            )
            return Infeasibility(cause, (fact,), (frame, *around))
    return None


def _bounds(scene: SceneGraph, frame: str, *, only_solid: bool = True) -> _Bounds | None:
    """Return the corners of the box around a frame's shapes, in its axes; None without any, or with one without end."""
    shapes = [attached for attached in scene.shapes(frame) if attached.collision or not only_solid]
    if not shapes or not all(np.all(np.isfinite(attached.shape.bounds)) for attached in shapes):
        return None
    points = np.concatenate([solid_points(attached) for attached in shapes])
    return points.min(axis=0), points.max(axis=0)


def _balls(scene: SceneGraph, manipulator: Manipulator) -> Iterator[_Ball]:
    """Yield balls inside the hand: ever smaller ones of a contact link, and one of each link rigid with the tip."""
    touching = contact_points(scene, manipulator)
    if not touching or manipulator.tip not in scene:
        return
    tip = manipulator.tip
    rigid = [
        tip,
        *(f for f in scene.subtree(tip) if f not in touching and _is_rigid(scene, f, tip)),
    ]
    movable = frozenset(movable_frames(scene))
    for link in dict.fromkeys(
        [next(iter(touching)), *(frame for frame in rigid if not _is_in(scene, frame, movable))]
    ):
        solids = [attached for attached in scene.shapes(link) if attached.collision]
        inside = [found for attached in solids if (found := _inscribed(attached)) is not None]
        if not inside:
            continue
        centre, radius, beyond = max(inside, key=lambda found: found[1])
        if link in touching:
            own = np.concatenate([solid_points(attached) for attached in solids])
            far = float(np.max(norms(own - centre)))
        else:
            at = scene.pose(link, relative_to=manipulator.tool, q=scene.zero_configuration()).apply(
                centre
            )
            far = min(float(np.max(norms(found - at))) for found in touching.values()) + _SLACK
        for share in _SHARES if link in touching and len(solids) == 1 else (1.0,):
            reach = share * far + manipulator.contact_tolerance
            yield _Ball(
                link, centre, share * radius - (1.0 - share) * beyond - _SLACK, reach + _SLACK
            )


def _enclosing(
    scene: SceneGraph,
    q: ArrayLike,
    ball: _Ball,
    *,
    place: Pose,
    bounds: _Bounds,
    start: NDArray[np.float64],
) -> list[str] | None:
    """Return what encloses a box at a place against a ball, most often met first; None where nothing is proved."""
    side = _CELL * ball.radius
    small = ball.radius - _HALF_DIAGONAL * side
    bodies, names = _still(scene, q, ball.link)
    if small <= 0.0 or not names:
        return None
    alone = SceneGraph("ball/root").add_frame(
        "ball/solid", "ball/root", shapes=[AttachedShape(Sphere(small))]
    )
    world = FloatingBody(bodies, alone, root="still", margin=0.0)
    fingers = world.fingers({})[None]
    middle = place.apply((bounds[0] + bounds[1]) / 2)

    def rows(cells: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.hstack([middle + side * cells, np.zeros((len(cells), 3))])

    def is_open(cells: NDArray[np.intp]) -> NDArray[np.bool_]:
        return ~world.collides(rows(cells), np.repeat(fingers, len(cells), axis=0))

    near = ball.reach + _HALF_DIAGONAL * side
    count = math.ceil((norm(bounds[1] - bounds[0]) / 2 + near) / side)
    if count >= _HALF:
        return None
    # up comes first
    directions = [
        np.array(ahead) for ahead in itertools.product((0, 1, -1), repeat=3) if any(ahead)
    ]
    outwards = np.arange(_HALF)[:, None]
    if any(np.all(is_open(outwards * ahead)) for ahead in directions):
        return None  # straight out from the middle
    steps = np.arange(-count, count + 1)
    cells = np.array(np.meshgrid(steps, steps, steps)).reshape(3, -1).T
    local = place.inverse().apply(middle + side * cells)
    cells = cells[norms(local - np.clip(local, *bounds)) <= near]
    if any(
        np.all(is_open(cells[int(np.argmax(cells @ ahead))] + outwards * ahead))
        for ahead in directions
    ):
        return None  # straight out
    known = np.zeros((2 * _HALF + 1,) * 3, dtype=bool)
    opened, closed, checked = known.copy(), [], 0
    while len(cells):
        known[tuple((cells + _HALF).T)] = True
        free = is_open(cells)
        checked += len(cells)
        closed.append(cells[~free])
        cells = cells[free]
        opened[tuple((cells + _HALF).T)] = True
        if checked > _MOST_CELLS or (len(cells) and np.max(np.abs(cells)) >= _HALF - 1):
            return None
        cells = np.unique((cells[:, None] + _FACES).reshape(-1, 3), axis=0)
        cells = cells[~known[tuple((cells + _HALF).T)]]
    begin = np.rint((start - middle) / side).astype(int)
    if np.max(np.abs(begin)) < _HALF and np.any(
        opened[tuple(slice(i + _HALF - 1, i + _HALF + 2) for i in begin)]
    ):
        return None
    boundary = np.concatenate(closed)
    sample = boundary[:: max(1, len(boundary) // 500)]
    met = Counter(
        names[contact.frame_a if contact.frame_a in names else contact.frame_b]
        for contacts in world.contacts(rows(sample), np.repeat(fingers, len(sample), axis=0))
        for contact in contacts
    )
    return sorted(met, key=lambda name: (-met[name], name))


def _still(scene: SceneGraph, q: ArrayLike, link: str) -> tuple[SceneGraph, dict[str, str]]:
    """Return exact solids that never move, below one root, with the names of their frames."""
    bodies, names, movable = SceneGraph("still"), {}, frozenset(movable_frames(scene))
    with bodies.edit() as edit:
        for number, frame in enumerate(scene.frame_names):
            kept = tuple(
                (
                    AttachedShape(attached.shape, pose=attached.pose, level="exact")
                    if attached.shape.kind == "mesh"
                    else AttachedShape(attached.shape, pose=attached.pose)
                )
                for attached in scene.shapes(frame)
                if attached.collision and attached.shape.kind in _EXACT
            )
            if kept and not scene.is_allowed(link, frame) and _stands_still(scene, frame, movable):
                names[f"still/{number}"] = frame
                pose = scene.pose(frame, relative_to=scene.root(frame), q=q)
                edit.add_frame(f"still/{number}", "still", pose=pose, shapes=kept)
    return edit.finish(), names


def _stands_still(scene: SceneGraph, frame: str, movable: frozenset[str]) -> bool:
    """Return whether nothing moves a frame: no joint, and no hand."""
    return not _is_in(scene, frame, movable) and _is_rigid(scene, frame, None)


def _is_in(scene: SceneGraph, frame: str, others: frozenset[str]) -> bool:
    return not others.isdisjoint((frame, *scene.ancestors(frame)))


def _is_rigid(scene: SceneGraph, frame: str, top: str | None) -> bool:
    """Return whether no joint moves a frame relative to a frame above it, or to its root."""
    chain = itertools.takewhile(lambda above: above != top, (frame, *scene.ancestors(frame)))
    return all(scene.joint(above).type in ("fixed", "free") for above in chain)


def _inscribed(attached: AttachedShape) -> tuple[NDArray[np.float64], float, float] | None:
    """Return the centre (3,), in the frame that it is attached to, and the radius of a ball inside a convex solid.

    The third number is by how many metres the solid may reach beyond the planes that the ball is
    inside of.
    """
    shape = attached.shape
    if shape.kind in ("box", "sphere", "cylinder", "capsule"):
        lower, upper = (np.asarray(bound) for bound in shape.bounds)
        return attached.pose.apply((lower + upper) / 2), float(np.min(upper - lower)) / 2, 0.0
    import trimesh  # both are slow to import
    from scipy.optimize import linprog

    if (
        shape.kind != "mesh"
        or not (mesh := trimesh.Trimesh(shape.vertices, shape.outward_faces)).is_volume
    ):
        return None
    normals, offsets = (
        mesh.face_normals,
        np.einsum("ij,ij->i", mesh.face_normals, mesh.triangles[:, 0]),
    )
    planes = np.column_stack([normals, np.ones(len(normals))])
    found = linprog([0.0, 0.0, 0.0, -1.0], planes, offsets, bounds=[(None, None)] * 4)
    if found.x is None or found.x[3] <= 0.0:
        return None
    beyond = float(np.max(mesh.vertices @ normals.T - offsets))
    return attached.pose.apply(found.x[:3]), float(found.x[3]), beyond
