"""Allowed collisions of link pairs that collide in every sampled configuration (reason ``always``).

A pair is allowed if it collides in each of :data:`SAMPLES` random configurations within the limits.
The seed is fixed and the robot is checked alone, so the result depends on the description only.

A pair that is free in 1 % of the configurations is wrongly allowed with a probability of 13 %. One
that is free in 0.01 % is nearly always allowed. The pair is then not checked in any motion.

The search is skipped with a note above :data:`MAX_LINKS` links or :data:`MAX_PAIRS` pairs, because
it would take too long. Real robots have fewer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tmkit._support.source_location import Note, ignore_note
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.spec.build import build_scene
from tmkit.formats.spec.model import AllowedPairSpec, SceneSpecification

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph

SAMPLES = 200
"""Number of random configurations in which a pair must collide to be allowed."""

SEED = 0
"""Seed of the random configurations."""

MAX_LINKS = 1000
"""Largest number of links with collision shapes that are searched for pairs."""

MAX_PAIRS = 1000
"""Largest number of colliding pairs in one configuration for which the search continues."""


def allow_always_colliding(
    robot: SceneSpecification, *, loader: MeshLoader, note: Note = ignore_note
) -> SceneSpecification:
    """Return the robot with the pairs allowed that always collide.

    Args:
        robot: specification of the robot.
        loader: loader of the meshes.
        note: receiver of a note if the search is skipped.
    """
    places = {frame.name: frame.place for frame in robot.frames}
    solid = [frame for frame in robot.frames if any(shape.collision for shape in frame.geometry)]
    if len(solid) > MAX_LINKS:
        reason = f"{len(solid)} links have collision shapes, more than {MAX_LINKS}"
        note(solid[0].place, f"{reason}; pairs of them that always collide are not searched")
        return robot
    pairs = _always_colliding(build_scene([robot], loader=loader))
    if pairs is None:
        reason = f"more than {MAX_PAIRS} pairs of links collide in one configuration"
        note(solid[0].place, f"{reason}; pairs that always collide are not searched")
        return robot
    allowed = [AllowedPairSpec(first, second, "always", places[second]) for first, second in pairs]
    return replace(robot, allowed=(*robot.allowed, *allowed))


def _always_colliding(scene: SceneGraph) -> tuple[tuple[str, str], ...] | None:
    """Return the pairs of frames that always collide.

    Returns:
        None if more than :data:`MAX_PAIRS` pairs collide in the first configuration.
    """
    from tmkit._core import CollisionWorld

    world = CollisionWorld(scene, margin=0.0)
    if not world.pairs:
        return ()
    candidates: list[tuple[str, str]] | None = None
    for q in random_configurations(scene, SAMPLES, seed=SEED):
        contacts = dict.fromkeys(
            (contact.frame_a, contact.frame_b) for contact in world.contacts(q)
        )
        pairs = contacts if candidates is None else candidates
        candidates = [pair for pair in pairs if pair in contacts]
        if not candidates:
            return ()
        if len(candidates) > MAX_PAIRS:
            return None
    return tuple(candidates or ())


def random_configurations(scene: SceneGraph, samples: int, *, seed: int) -> npt.NDArray[np.float64]:
    """Return (samples, n_joints) random configurations, uniform within the joint limits.

    Values of joints without limits are in [-pi, pi].
    """
    limits = np.asarray(scene.joint_limits, dtype=np.float64).reshape(-1, 2)
    low, high = limits[:, 0], limits[:, 1]
    lower = np.where(np.isfinite(low), low, np.minimum(-np.pi, high - np.pi))
    upper = np.where(np.isfinite(high), high, np.maximum(np.pi, lower + np.pi))
    return np.random.default_rng(seed).uniform(lower, upper, (samples, len(limits)))
