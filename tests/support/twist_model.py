"""Scenes with uncertain twists, and a plain model: exact scenes with errors added explicitly.

The effect of a source on a number of the scene is a difference of two exact scenes, one
with the source a little above zero and one a little below. No propagation of errors
is implemented here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from support.noise_model import random_covariance
from tmkit import NoiseSource, Pose, SceneGraph
from tmkit._core import twist_noise
from tmkit.spatial import GaussianPose

__all__ = ["exact_with", "maps_by_differences", "random_movers", "sources_of"]

Array = NDArray[np.float64]

_STEP = 1e-3  # of a source: errors are small, so the second order is below the tolerance


def random_movers(random: np.random.Generator, *, uncertain_poses: bool = True) -> SceneGraph:
    """Return a base, a tray and a lamp that move relative to it, and a cup on the tray."""

    def pose() -> Pose:
        return Pose.exp(random.normal(size=6) * 0.5)

    def spread(rank: int = 6) -> Array | None:
        return (
            random_covariance(random, rank=rank)
            if uncertain_poses and random.random() < 0.7
            else None
        )

    with SceneGraph(root=None).edit() as edit:
        for body in ("Base", "Tray", "Cup", "Lamp"):
            edit.add_body(body)
        edit.add_root("base", body="Base")
        edit.add_frame("tray", "base", pose=GaussianPose(pose(), spread()), body="Tray")
        edit.add_frame("cup", "tray", pose=GaussianPose(pose(), spread(3)), body="Cup")
        edit.add_frame("handle", "cup", pose=pose(), body="Cup")
        edit.add_frame("lamp", "cup", pose=GaussianPose(pose(), spread()), body="Lamp")
        for frame, reference, rank in (
            ("tray", "Base", 6),
            ("handle", "Tray", 4),
            ("lamp", "Base", 1),
        ):
            covariance = random_covariance(random, rank=rank) if random.random() < 0.8 else None
            edit.set_twist(
                frame, random.normal(size=6), relative_to_body=reference, covariance=covariance
            )
    scene = edit.finish()
    shared = twist_noise(scene, "tray")
    return (
        scene.set_twist_noise("lamp", shared)
        if shared is not None and random.random() < 0.3
        else scene
    )


def sources_of(scene: SceneGraph) -> tuple[NoiseSource, ...]:
    """Return all noise sources of a scene, each once."""
    noises = [scene.noise(frame) for frame in scene.noisy_frames]
    noises += [twist_noise(scene, frame) for frame in scene.twist_frames]
    return tuple(
        dict.fromkeys(source for noise in noises if noise is not None for source in noise.sources)
    )


def exact_with(scene: SceneGraph, values: Mapping[NoiseSource, Array]) -> SceneGraph:
    """Return the exact scene in which the sources have these values, and all others are zero."""
    with scene.edit() as edit:
        for frame in scene.noisy_frames:
            noise = scene.noise(frame)
            assert noise is not None
            xi = sum(
                (noise.map(s) @ values[s] for s in noise.sources if s in values), start=np.zeros(6)
            )
            edit.set_pose(frame, scene.local_pose(frame) @ Pose.exp(xi))
            edit.set_covariance(frame, None)
        for frame in scene.twist_frames:
            noise, twist = twist_noise(scene, frame), scene.twist_edge(frame)
            assert twist is not None
            terms = (
                []
                if noise is None
                else [noise.map(s) @ values[s] for s in noise.sources if s in values]
            )
            edit.set_twist(frame, sum(terms, start=twist[1]), relative_to_body=twist[0])
    return edit.finish()


def maps_by_differences(scene: SceneGraph, numbers_of: Callable[[SceneGraph], Array]) -> Array:
    """Return a column for each dimension of each source: the effect of its unit on the numbers."""
    columns = []
    for source in sources_of(scene):
        for axis in _STEP * np.eye(source.dimension):
            above, below = (
                numbers_of(exact_with(scene, {source: sign * axis})) for sign in (1.0, -1.0)
            )
            columns.append((above - below) / (2.0 * _STEP))
    return np.array(columns).T if columns else np.zeros((len(numbers_of(scene)), 1))
