"""Uncertain poses in chains and trees: composed along a path, and jointly for correlated leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.uncertain_answers import Shelf
from support.uncertain_inputs import gaussian_of
from tmkit.spatial import GaussianPose, JointGaussianPose, Pose, adjoint, compose

__all__ = ["compose_chain", "replay_tree"]

Array = NDArray[np.float64]


def compose_chain(poses: Sequence[GaussianPose], left: bool, shelf: Shelf) -> GaussianPose:
    """Compose a chain to first and to fourth order, put both there, and return the former."""
    first, fourth = compose(poses), compose(poses, order=4)
    for words, pose in (("first order", first), ("fourth order", fourth)):
        shelf.pose(words, pose, left=left)
        entries = pose.left_covariance if left else pose.covariance
        for i, j in np.ndindex(6, 6):  # single entries by their place, counted from one: Sigma66
            shelf.put("S", f"{words} sigma{i + 1}{j + 1} {i + 1}{j + 1}", float(entries[i, j]))
    return first


def replay_tree(
    edges: Mapping[tuple[str, str], tuple[Any, Any]],
    query: tuple[str, str] | None,
    left: bool,
    shelf: Shelf,
) -> tuple[Array, Array]:
    """Compute the poses between frames of a tree and the joint covariance of its leaves.

    The result of the case is the pose between its two frames, or of the first leaf but one, or of
    the only leaf from the root.
    """
    links = {frames: gaussian_of(*fields, left) for frames, fields in edges.items()}
    names = list(dict.fromkeys(name for pair in links for name in pair))
    root = next(name for name in names if name not in {child for _, child in links})
    leaves = [name for name in names if name not in {parent for parent, _ in links}]
    below = (
        leaves + [name for name in names if name not in (root, *leaves)]
        if len(names) < 12
        else leaves
    )
    joint = _joint(links, root, below)
    picked = JointGaussianPose(
        [joint.means[below.index(name)] for name in leaves], _blocks(joint, below, leaves)
    )
    if query is None and len(leaves) > 1:
        result = picked.relative(1, relative_to=0)
        shelf.pose("result", result, left=left)
    else:
        start, end = query or (root, leaves[0])
        result = compose_chain(_links_between(links, root, start, end), left, shelf)
    shelf.put("S", "joint joint12", picked.covariance)
    for i, a in enumerate(below):
        shelf.pose(f"{root}{a} {root} {a}", joint.marginal(i), left=left)
        for j, b in enumerate(below):
            if i != j:
                _put_pair(shelf, joint, (a, i), (b, j), left=left)
    return result.mean.as_matrix(), result.left_covariance if left else result.covariance


def _joint(
    links: Mapping[tuple[str, str], GaussianPose], root: str, names: Sequence[str]
) -> JointGaussianPose:
    """Return the poses of frames relative to the root, with their correlated errors."""
    order = list(links)
    edges = JointGaussianPose.independent([links[pair] for pair in order])
    maps, means = [], []
    for name in names:
        row, rest = np.zeros((6, 6 * len(order))), Pose()
        for pair in reversed(_path(root, name, links)):
            i = order.index(pair)
            row[:, 6 * i : 6 * i + 6] = adjoint(rest.inverse())
            rest = links[pair].mean @ rest
        maps.append(row)
        means.append(rest)
    stacked = np.vstack(maps)
    whole = stacked @ edges.covariance @ stacked.T
    return JointGaussianPose(means, 0.5 * (whole + whole.T))


def _blocks(joint: JointGaussianPose, names: Sequence[str], chosen: Sequence[str]) -> Array:
    """Return the joint covariance of some of the frames."""
    places = [6 * names.index(name) + k for name in chosen for k in range(6)]
    block: Array = joint.covariance[np.ix_(places, places)]
    return block


def _put_pair(
    shelf: Shelf,
    joint: JointGaussianPose,
    first: tuple[str, int],
    second: tuple[str, int],
    *,
    left: bool,
) -> None:
    """Store the pose of the second relative to the first, with and without the correlation."""
    (a, i), (b, j) = first, second
    relative, alone = (
        joint.relative(j, relative_to=i),
        joint.marginal(i).inverse() @ joint.marginal(j),
    )
    shelf.pose(f"{a}{b} {a} {b} relative", relative, left=left)
    shelf.pose(f"{a}{b} {a} {b} dropped correlation", alone, left=left)
    shelf.put("S", f"cross {a}{b} {a} {b}", joint.cross(i, j))
    for part, block in (("rho", slice(0, 3)), ("theta", slice(3, 6))):
        traces = [float(np.trace(pose.covariance[block, block])) for pose in (alone, relative)]
        if i < j and traces[1] > 0.0:
            shelf.put("ratio", f"naive true trace {part}", traces[0] / traces[1])


def _links_between(
    links: Mapping[tuple[str, str], GaussianPose], root: str, start: str, end: str
) -> list[GaussianPose]:
    """Return the links from one frame to another: inverted up to the common ancestor, then down."""
    up, down = (_path(root, name, links) for name in (start, end))
    while up and down and up[0] == down[0]:
        up, down = up[1:], down[1:]
    return [*(links[pair].inverse() for pair in reversed(up)), *(links[pair] for pair in down)]


def _path(root: str, name: str, links: Mapping[tuple[str, str], object]) -> list[tuple[str, str]]:
    path: list[tuple[str, str]] = []
    while name != root:
        pair = next(pair for pair in links if pair[1] == name)
        path.insert(0, pair)
        name = pair[0]
    return path
