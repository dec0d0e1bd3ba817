"""Plain numpy model of the errors of a scene: the oracle of the tests of uncertainty.

Everything goes through names, dense matrices and poses that the scene gives; nothing of how the
core walks is here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tmkit import NoiseSource, Pose, SceneGraph
from tmkit.spatial import GaussianPose

Array = NDArray[np.float64]


def adjoint(pose: Pose) -> Array:
    """Return Ad(T) for [rho, theta]."""
    rotation, (x, y, z) = pose.rotation, pose.translation
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.block([[rotation, skew @ rotation], [np.zeros((3, 3)), rotation]])


def path_maps(
    scene: SceneGraph, target: str, reference: str, q: Array | None = None
) -> dict[NoiseSource, Array]:
    """Return the error of reference_from_target in the target's tangent, by source."""
    up, down = [target, *scene.ancestors(target)], [reference, *scene.ancestors(reference)]
    common = next(frame for frame in up if frame in down)
    edges = [(frame, 1.0) for frame in up[: up.index(common)]] + [
        (frame, -1.0) for frame in down[: down.index(common)]
    ]
    maps: dict[NoiseSource, Array] = {}
    for frame, sign in edges:
        noise = scene.noise(frame)
        if noise is None:
            continue
        carry = adjoint(scene.pose(frame, relative_to=target, q=q))
        for source in noise.sources:
            maps[source] = maps.get(source, 0) + sign * carry @ noise.map(source)
    return maps


def covariance(scene: SceneGraph, target: str, reference: str, q: Array | None = None) -> Array:
    """Return the covariance of reference_from_target in the target's tangent."""
    maps = path_maps(scene, target, reference, q)
    return sum((map_ @ map_.T for map_ in maps.values()), start=np.zeros((6, 6)))


def joint_covariance(
    scene: SceneGraph, pairs: list[tuple[str, str]], q: Array | None = None
) -> Array:
    """Return the covariance of several relative poses at once."""
    maps = [path_maps(scene, target, reference, q) for target, reference in pairs]
    sources = list(dict.fromkeys(source for each in maps for source in each))
    rows = [
        np.hstack([each.get(s, np.zeros((6, s.dimension))) for s in sources] or [np.zeros((6, 0))])
        for each in maps
    ]
    stacked = np.vstack(rows)
    return stacked @ stacked.T


def random_covariance(
    random: np.random.Generator, *, linear: float = 1e-3, angular: float = 1e-3, rank: int = 6
) -> Array:
    """Return a covariance of a rank, of standard deviations about these."""
    root = random.normal(size=(6, rank)) * np.array([linear] * 3 + [angular] * 3)[:, None]
    return root @ root.T


def random_tree(random: np.random.Generator, frames: int, *, scale: float = 0.5) -> SceneGraph:
    """Return a random tree of uncertain frames, some of them exact, f0 to f(n-1) below world."""
    names = ["world"]
    with SceneGraph().edit() as edit:
        for number in range(frames):
            parent = names[int(random.integers(max(0, len(names) - 4), len(names)))]
            covariance_ = (
                None
                if random.random() < 0.2
                else random_covariance(random, rank=int(random.integers(1, 7)))
            )
            pose = Pose.exp(random.normal(size=6) * scale)
            edit.add_frame(f"f{number}", parent, pose=GaussianPose(pose, covariance_))
            names.append(f"f{number}")
    return edit.finish()


def errors(mean: Pose, poses: Array) -> Array:
    """Return xi with pose = mean @ exp(xi) for rows of poses."""
    inverse = mean.inverse()
    return np.array([(inverse @ Pose.from_array(row)).log() for row in poses])
