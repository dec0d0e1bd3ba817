"""Proof that a hand cannot touch an object, because static bodies enclose it without a large gap.

A ball inside a rigid link of the hand moves with the link. On the way from the start to a contact,
the distance of its centre from static bodies is never below its radius. Space is divided into
cells. A cell is closed if the ball collides wherever in the cell its centre is. That is the case if
a ball smaller by half the diagonal of a cell collides at the centre of the cell. Starting at the
open cells at which the link may touch the object, open cells are followed through their faces. The
object is not touched if they lead neither to the outside nor to the start.

A contact link that is one convex solid also contains the hull of its ball and the point of contact.
So near the contact, a ball of a fraction of the radius has a centre at the same fraction of the
distance. Small balls prove tight enclosures, large ones those with gaps. The ball of a mesh lies
inside the planes of all faces, from where every point of the mesh is visible. The largest distance
of a vertex outside these planes is subtracted from the radius.

Only exact shapes count: boxes, balls, cylinders, capsules, and the triangles of meshes, never their
hulls. Movable bodies and bodies moved by a joint are ignored. A missing proof has no meaning.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import Contact
from tmkit._support.elementary import norm, norms
from tmkit.graph import AttachedShape, SceneGraph, Sphere
from tmkit.manipulation.grasps.floating import FloatingBody
from tmkit.motion.regions.solids import solid_points
from tmkit.pddl import Fact
from tmkit.robots import Manipulator, movable_frames
from tmkit.spatial import Pose
from tmkit.tamp.domains.infeasibility import Infeasibility, contact_points
from tmkit.tamp.domains.semantics import ObjectToMove

_BALL_FRACTIONS = (1.0, 0.5, 0.25)
"""Radii of the balls of a contact link, as fractions of the largest."""

_CELL_SIDE = 0.7
"""Side of a cell per radius of the ball. Below 2 / (1 + sqrt(3)), thin walls separate, too."""

_HALF_DIAGONAL = math.sqrt(3.0) / 2.0
"""Half the diagonal of a cell per side."""

_GRID_RADIUS = 64
"""Number of cells from the centre of the grid to its edge."""

_MAX_CELLS = 100_000
"""Number of checked cells after which a proof is abandoned."""

_BALL_MARGIN = 2e-4
"""Reduction of the radius of balls, for allowed contact and for errors [m]."""

_NEIGHBOURS = np.array([(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)])
"""(6, 3) steps to the cells that share a face."""

_EXACT_KINDS = ("box", "sphere", "cylinder", "capsule", "mesh")
"""Kinds of shapes that enclose an object."""

NAMED_BODIES = 4
"""Number of bodies that an explanation names."""

_REGION_MARGIN = 0.03
"""Upper bound of the distance of an object beside or above its region [m]."""

_MAX_SINK = 0.005
"""Largest depth of the bottom of an object below the top of a solid region [m]."""

_MAX_SAMPLES = 500
"""Approximate number of closed cells at which enclosing bodies are determined."""

_Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]
"""(3,) lower and (3,) upper corner of a box."""


@dataclass(frozen=True, eq=False)
class _Ball:
    """A ball inside a link.

    Attributes:
        link: frame of the link.
        centre: (3,) centre in the frame of the link [m].
        radius: radius [m].
        reach: largest distance from the centre at which the hand touches an object [m].
    """

    link: str
    centre: NDArray[np.float64]
    radius: float
    reach: float


def prove_separated(
    scene: SceneGraph, target: ObjectToMove, *, q: ArrayLike, robot: Manipulator
) -> Infeasibility | None:
    """Prove that a hand cannot touch an object at its start, or at its goal.

    Args:
        scene: scene at the start.
        target: object that must be moved.
        q: (n_joints,) configuration at the start.
        robot: the only arm that can move the object.

    Returns:
        The proof, or None.
    """
    object, movable = target.object, frozenset(movable_frames(scene))
    prove_enclosed = partial(_prove_enclosed, q=q, fact=target.fact, robot=robot)
    bounds = _bounds(scene, object)
    if bounds is None:
        return None
    if _is_static(scene, object, movable - {object}):
        proof = prove_enclosed(scene, object, bounds, what=f"'{object}'")
        if proof is not None:
            return proof
    proofs, diameter = [], norm(bounds[1] - bounds[0]) + _REGION_MARGIN
    for region in target.regions:
        region_bounds = _bounds(scene, region, only_solid=False)
        if region_bounds is None or not _is_static(scene, region, movable):
            return None
        # Compute the box in which the object may be on the region.
        lower, upper = region_bounds
        is_solid = any(attached.collision for attached in scene.shapes(region))
        bottom = upper[2] - (_MAX_SINK if is_solid else _REGION_MARGIN)
        low = np.array([lower[0] - _REGION_MARGIN, lower[1] - _REGION_MARGIN, bottom])
        high = upper + np.array([_REGION_MARGIN, _REGION_MARGIN, diameter])

        proof = prove_enclosed(scene, region, (low, high), what=f"'{object}' on '{region}'")
        if proof is None:
            return None
        proofs.append(proof)
    return proofs[0] if proofs else None


def _prove_enclosed(
    scene: SceneGraph,
    frame: str,
    bounds: _Bounds,
    *,
    what: str,
    q: ArrayLike,
    fact: Fact,
    robot: Manipulator,
) -> Infeasibility | None:
    """Prove that a hand cannot touch anything inside a box.

    Args:
        scene: scene at the start.
        frame: frame of the box.
        bounds: corners of the box in that frame [m].
        what: subject of the cause.
        q: (n_joints,) configuration at the start.
        fact: fact that requires the touch.
        robot: arm and hand.
    """
    root_from_frame = scene.pose(frame, relative_to=scene.root(frame), q=q)
    for ball in _balls(scene, robot):
        start = scene.pose(ball.link, relative_to=scene.root(ball.link), q=q).apply(ball.centre)
        bodies = _enclosing_bodies(
            scene, q, ball, root_from_frame=root_from_frame, bounds=bounds, start=start
        )
        if bodies is not None:
            names = ", ".join(f"'{name}'" for name in bodies[:NAMED_BODIES])
            if len(bodies) > NAMED_BODIES:
                names += " and others"
            cause = (
                f"{what} has to be touched, and static bodies enclose it ({names}): a ball of"
                f" {2000.0 * ball.radius:.1f} mm inside '{ball.link}' fits through no gap"
            )
            return Infeasibility(cause, (fact,), (frame, *bodies))
    return None


def _bounds(scene: SceneGraph, frame: str, *, only_solid: bool = True) -> _Bounds | None:
    """Return the corners of the box around a frame's shapes, in its axes.

    None without shapes, or if a shape is infinite.
    """
    shapes = [attached for attached in scene.shapes(frame) if attached.collision or not only_solid]
    if not shapes or not all(np.all(np.isfinite(attached.shape.bounds)) for attached in shapes):
        return None
    points = np.concatenate([solid_points(attached) for attached in shapes])
    return points.min(axis=0), points.max(axis=0)


def _balls(scene: SceneGraph, robot: Manipulator) -> Iterator[_Ball]:
    """Yield balls inside the hand.

    They are balls of decreasing size in a contact link, and one in each link rigid with the tip.
    """
    contacts, tip = contact_points(scene, robot), robot.tip
    if not contacts or tip not in scene:
        return
    movable = frozenset(movable_frames(scene))
    rigid = [
        tip,
        *(f for f in scene.subtree(tip) if f not in contacts and _is_rigid(scene, f, tip)),
    ]
    links = [next(iter(contacts)), *(f for f in rigid if not _is_below(scene, f, movable))]
    for link in dict.fromkeys(links):
        solids = [attached for attached in scene.shapes(link) if attached.collision]
        balls = [ball for ball in map(_fit_ball, solids) if ball is not None]
        if not balls:
            continue
        centre, radius, excess = max(balls, key=lambda ball: ball[1])

        # Bound the distance from the centre to a contact.
        if link in contacts:
            points = np.concatenate([solid_points(attached) for attached in solids])
            distance = float(np.max(norms(points - centre)))
        else:
            q = scene.zero_configuration()
            tool_from_link = scene.pose(link, relative_to=robot.tool, q=q)
            in_tool = tool_from_link.apply(centre)
            distances = (float(np.max(norms(points - in_tool))) for points in contacts.values())
            distance = min(distances) + _BALL_MARGIN

        is_convex_contact = link in contacts and len(solids) == 1
        for fraction in _BALL_FRACTIONS if is_convex_contact else (1.0,):
            reach = fraction * distance + robot.contact_tolerance + _BALL_MARGIN
            reduced = fraction * radius - (1.0 - fraction) * excess - _BALL_MARGIN
            yield _Ball(link, centre, reduced, reach)


@dataclass(frozen=True, eq=False)
class _CellGrid:
    """Cubic cells for the centre of a ball among static bodies; a cell is three integers.

    Attributes:
        world: static bodies, and the ball.
        origin: (3,) centre of the cell (0, 0, 0), in root axes [m].
        side: side of a cell [m].
    """

    world: FloatingBody
    origin: NDArray[np.float64]
    side: float

    def centres(self, cells: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the centres (n, 3) of cells (n, 3), in root axes [m]."""
        return np.asarray(self.origin + self.side * cells)

    def is_open(self, cells: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return (n,) whether the ball is free of collisions at the centres of cells (n, 3)."""
        return ~self.world.collides(*self._configurations(cells))

    def contacts(self, cells: NDArray[np.intp]) -> Iterator[Contact]:
        """Yield the contacts of the ball at the centres of cells (n, 3)."""
        for contacts in self.world.contacts(*self._configurations(cells)):
            yield from contacts

    def _configurations(
        self, cells: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return floating joint values (n, 6) and finger joint values of the ball in cells."""
        fingers = self.world.finger_configuration({})[None]
        positions = np.hstack([self.centres(cells), np.zeros((len(cells), 3))])
        return positions, np.repeat(fingers, len(cells), axis=0)


def _enclosing_bodies(
    scene: SceneGraph,
    q: ArrayLike,
    ball: _Ball,
    *,
    root_from_frame: Pose,
    bounds: _Bounds,
    start: NDArray[np.float64],
) -> list[str] | None:
    """Return the bodies that enclose a box against a ball, or None if that is not proved.

    Args:
        scene: scene at the start.
        q: (n_joints,) configuration at the start.
        ball: the ball.
        root_from_frame: pose of the frame of the box.
        bounds: corners of the box in that frame [m].
        start: (3,) centre of the ball at the start, in root axes [m].

    Returns:
        Frames by decreasing number of contacts with the ball.
    """
    side = _CELL_SIDE * ball.radius
    reduced_radius = ball.radius - _HALF_DIAGONAL * side
    bodies, names = _static_bodies(scene, q, ball.link)
    if reduced_radius <= 0.0 or not names:
        return None
    shape = AttachedShape(Sphere(reduced_radius))
    body = SceneGraph("ball/root").add_frame("ball/solid", "ball/root", shapes=[shape])
    world = FloatingBody(bodies, body, root="still", margin=0.0)
    grid = _CellGrid(world, root_from_frame.apply((bounds[0] + bounds[1]) / 2), side)

    reach = ball.reach + _HALF_DIAGONAL * side
    count = math.ceil((norm(bounds[1] - bounds[0]) / 2 + reach) / side)
    if count >= _GRID_RADIUS:
        return None

    # Reject open boxes by straight lines from their centre, upwards first.
    steps = itertools.product((0, 1, -1), repeat=3)
    directions = [np.array(direction) for direction in steps if any(direction)]
    distances = np.arange(_GRID_RADIUS)[:, None]
    if any(np.all(grid.is_open(distances * direction)) for direction in directions):
        return None

    # Collect the cells at which the link may touch the box, and try lines from the outermost.
    axis = np.arange(-count, count + 1)
    cells = np.array(np.meshgrid(axis, axis, axis)).reshape(3, -1).T
    local = root_from_frame.inverse().apply(grid.centres(cells))
    cells = cells[norms(local - np.clip(local, *bounds)) <= reach]
    for direction in directions:
        outermost = cells[int(np.argmax(cells @ direction))]
        if np.all(grid.is_open(outermost + distances * direction)):
            return None

    # Follow the open cells, and require that they do not contain the start.
    region = _flood_open_cells(grid, cells)
    if region is None:
        return None
    opened, boundary = region
    start_cell = np.rint((start - grid.origin) / side).astype(int)
    neighbourhood = tuple(slice(i + _GRID_RADIUS - 1, i + _GRID_RADIUS + 2) for i in start_cell)
    if np.max(np.abs(start_cell)) < _GRID_RADIUS and np.any(opened[neighbourhood]):
        return None

    # Determine the bodies at the boundary.
    sample = boundary[:: max(1, len(boundary) // _MAX_SAMPLES)]
    counts = Counter(
        names[contact.frame_a if contact.frame_a in names else contact.frame_b]
        for contact in grid.contacts(sample)
    )
    return sorted(counts, key=lambda name: (-counts[name], name))


def _flood_open_cells(
    grid: _CellGrid, cells: NDArray[np.intp]
) -> tuple[NDArray[np.bool_], NDArray[np.intp]] | None:
    """Return the open cells connected with some of ``cells`` (n, 3), and the closed ones around.

    Returns:
        Mask of the open cells, with cell (0, 0, 0) in its middle, and (m, 3) closed cells. None if
        the open cells reach the edge of the grid, or are too many.
    """
    visited = np.zeros((2 * _GRID_RADIUS + 1,) * 3, dtype=bool)
    opened = visited.copy()
    boundary = []
    n_checked = 0
    while len(cells):
        visited[tuple((cells + _GRID_RADIUS).T)] = True
        is_open = grid.is_open(cells)
        n_checked += len(cells)
        boundary.append(cells[~is_open])
        cells = cells[is_open]
        opened[tuple((cells + _GRID_RADIUS).T)] = True
        is_at_edge = len(cells) > 0 and np.max(np.abs(cells)) >= _GRID_RADIUS - 1
        if n_checked > _MAX_CELLS or is_at_edge:
            return None
        cells = np.unique((cells[:, None] + _NEIGHBOURS).reshape(-1, 3), axis=0)
        cells = cells[~visited[tuple((cells + _GRID_RADIUS).T)]]
    return opened, np.concatenate(boundary)


def _static_bodies(scene: SceneGraph, q: ArrayLike, link: str) -> tuple[SceneGraph, dict[str, str]]:
    """Return the exact solids that never move, below one root, with the names of their frames."""
    bodies, names, movable = SceneGraph("still"), {}, frozenset(movable_frames(scene))
    with bodies.edit() as edit:
        for number, frame in enumerate(scene.frame_names):
            solids = tuple(
                _exact_solid(attached)
                for attached in scene.shapes(frame)
                if attached.collision and attached.shape.kind in _EXACT_KINDS
            )
            if solids and not scene.is_allowed(link, frame) and _is_static(scene, frame, movable):
                names[f"still/{number}"] = frame
                pose = scene.pose(frame, relative_to=scene.root(frame), q=q)
                edit.add_frame(f"still/{number}", "still", pose=pose, shapes=solids)
    return edit.finish(), names


def _exact_solid(attached: AttachedShape) -> AttachedShape:
    """Return a solid whose collision shape is exact."""
    if attached.shape.kind == "mesh":
        return AttachedShape(attached.shape, pose=attached.pose, level="exact")
    return AttachedShape(attached.shape, pose=attached.pose)


def _is_static(scene: SceneGraph, frame: str, movable: frozenset[str]) -> bool:
    """Return whether neither a joint nor a hand moves a frame."""
    return not _is_below(scene, frame, movable) and _is_rigid(scene, frame, None)


def _is_below(scene: SceneGraph, frame: str, movable: frozenset[str]) -> bool:
    """Return whether a frame or one of its ancestors is movable."""
    return not movable.isdisjoint((frame, *scene.ancestors(frame)))


def _is_rigid(scene: SceneGraph, frame: str, ancestor: str | None) -> bool:
    """Return whether no joint moves a frame relative to an ancestor, or to its root if None."""
    chain = itertools.takewhile(lambda above: above != ancestor, (frame, *scene.ancestors(frame)))
    return all(scene.joint(above).type in ("fixed", "free") for above in chain)


def _fit_ball(attached: AttachedShape) -> tuple[NDArray[np.float64], float, float] | None:
    """Return a ball inside a convex solid.

    Returns:
        (3,) centre in the frame of the solid and radius of the ball, and the largest distance of
        the solid beyond the planes that contain the ball [m]. None if there is no ball.
    """
    shape = attached.shape
    if shape.kind in ("box", "sphere", "cylinder", "capsule"):
        lower, upper = (np.asarray(bound) for bound in shape.bounds)
        return attached.pose.apply((lower + upper) / 2), float(np.min(upper - lower)) / 2, 0.0
    import trimesh  # both are slow to import
    from scipy.optimize import linprog

    if shape.kind != "mesh":
        return None
    mesh = trimesh.Trimesh(shape.vertices, shape.outward_faces)
    if not mesh.is_volume:
        return None
    normals = mesh.face_normals
    offsets = np.einsum("ij,ij->i", normals, mesh.triangles[:, 0])
    planes = np.column_stack([normals, np.ones(len(normals))])
    solution = linprog([0.0, 0.0, 0.0, -1.0], planes, offsets, bounds=[(None, None)] * 4)
    if solution.x is None or solution.x[3] <= 0.0:
        return None
    excess = float(np.max(mesh.vertices @ normals.T - offsets))
    return attached.pose.apply(solution.x[:3]), float(solution.x[3]), excess
