"""The pairs of links that collide whatever the robot does; they may touch (reason ``always``).

They are those that collide in each of :data:`SAMPLES` random configurations within the limits. The
seed is fixed and the robot is checked alone, so the result depends on the description only. A pair
that is free in a hundredth of the configurations is missed with a probability of 13 %, one in ten
thousand. Then a motion that needs such a configuration would not be checked for this pair. Where
more links have shapes, or more pairs collide, than robots have, the search is omitted with a note:
it would take too long.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tmkit._support.source_location import Note, unheard
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.spec.build import build_scene
from tmkit.formats.spec.model import AllowedPairSpec, SceneSpecification

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph

SAMPLES = 200
SEED = 0
MOST_LINKS = 1000
MOST_PAIRS = 1000


def with_always_colliding(
    robot: SceneSpecification, *, loader: MeshLoader, note: Note = unheard
) -> SceneSpecification:
    """Return a robot with the pairs allowed that always collide; a note says if none was looked for."""
    places = {frame.name: frame.place for frame in robot.frames}
    solid = [frame for frame in robot.frames if any(shape.collision for shape in frame.geometry)]
    if len(solid) > MOST_LINKS:
        reason = f"{len(solid)} links have collision shapes, more than {MOST_LINKS}"
        note(solid[0].place, f"{reason}; pairs of them that always collide are not looked for")
        return robot
    pairs = _always_colliding(build_scene([robot], loader=loader))
    if pairs is None:
        reason = f"more than {MOST_PAIRS} pairs of links collide at some configuration"
        note(solid[0].place, f"{reason}; those that always do are not looked for")
        return robot
    allowed = [AllowedPairSpec(first, second, "always", places[second]) for first, second in pairs]
    return replace(robot, allowed=(*robot.allowed, *allowed))


def _always_colliding(scene: SceneGraph) -> tuple[tuple[str, str], ...] | None:
    """Return the pairs of frames that always collide, ``None`` when too many do at the first configuration."""
    from tmkit._core import CollisionWorld

    world = CollisionWorld(scene, margin=0.0)
    if not world.pairs:
        return ()
    remaining: list[tuple[str, str]] | None = None
    for q in random_configurations(scene, SAMPLES, seed=SEED):
        found = {(contact.frame_a, contact.frame_b): None for contact in world.contacts(q)}
        remaining = [pair for pair in (found if remaining is None else remaining) if pair in found]
        if not remaining:
            return ()
        if len(remaining) > MOST_PAIRS:
            return None
    return tuple(remaining or ())


def random_configurations(scene: SceneGraph, samples: int, *, seed: int) -> npt.NDArray[np.float64]:
    """Return random configurations (samples, n_joints), uniform within the limits; unlimited joints within +-pi."""
    limits = np.asarray(scene.joint_limits, dtype=np.float64).reshape(-1, 2)
    lower = np.where(
        np.isfinite(limits[:, 0]), limits[:, 0], np.minimum(-np.pi, limits[:, 1] - np.pi)
    )
    upper = np.where(np.isfinite(limits[:, 1]), limits[:, 1], np.maximum(np.pi, lower + np.pi))
    return np.random.default_rng(seed).uniform(lower, upper, (samples, len(limits)))
