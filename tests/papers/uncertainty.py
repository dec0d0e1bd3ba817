"""Numbers of the paper on uncertain transformations: its equations, figure 4, and applications."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from benchmarks.uncertainty_table import evaluation, links_of, tree
from numpy.typing import NDArray
from papers.rows import Row, example, largest_difference
from scipy.linalg import expm
from support.gaussian_poses import random_chain, relative_difference

from tmkit.estimation import (
    LinearCompliance,
    apply_compliance,
    pose_graph,
    solve_pose_graph,
    write_back,
)
from tmkit.spatial import GaussianPose, Pose, adjoint, position_ellipsoid

__all__ = ["arm", "neck_map", "rows"]

Array = NDArray[np.float64]

POSES = 200
"""Number of random poses of each equation."""

QUERIES = 20_000
"""Number of queries of figure 4; the paper has 100,000."""


def rows() -> Iterator[Row]:
    """Yield the rows of this paper."""
    yield from equations()
    yield path()
    yield from arm()
    yield neck_map()
    yield from times()


# --- equations


def hat(vector: Array) -> Array:
    """Return the matrix of a cross product."""
    x, y, z = vector
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def tangent_matrix(xi: Array) -> Array:
    """Return the (4, 4) matrix of a tangent vector [rho, theta]."""
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = hat(xi[3:]), xi[:3]
    return matrix


def adjoint_of(matrix: Array) -> Array:
    """Return the adjoint of a (4, 4) transform by equation 3."""
    turn, shift = matrix[:3, :3], matrix[:3, 3]
    return np.block([[turn, hat(shift) @ turn], [np.zeros((3, 3)), turn]])


def concatenate(a: GaussianPose, b: GaussianPose) -> tuple[Array, Array]:
    """Return mean (4, 4) and covariance (6, 6) by equations 4 and 5."""
    t_ab, t_bc = a.mean.as_matrix(), b.mean.as_matrix()
    carry = adjoint_of(np.linalg.inv(t_bc))
    return t_ab @ t_bc, carry @ a.covariance @ carry.T + b.covariance


def equations() -> Iterator[Row]:
    """Yield the rows of equations 1 to 7, over random poses."""
    chain = random_chain(2 * POSES, linear=0.01, angular=0.02, seed=11)
    pairs = list(zip(chain[::2], chain[1::2], strict=True))
    tangents = np.random.default_rng(12).normal(size=(POSES, 6))
    transforms = [a.mean for a, _ in pairs]
    yield deviation(
        "eq. 1: Exp",
        "matrix exponential",
        [largest_difference(Pose.exp(xi).as_matrix(), expm(tangent_matrix(xi))) for xi in tangents],
        "scipy",
    )
    yield deviation(
        "eq. 2: Ad maps tangent vectors",
        "T Exp(xi) = Exp(Ad xi) T",
        [
            max((pose @ Pose.exp(xi)).distance(Pose.exp(adjoint(pose) @ xi) @ pose))
            for pose, xi in zip(transforms, tangents, strict=True)
        ],
        "both sides",
    )
    yield deviation(
        "eq. 3: Ad",
        "[R, [t]x R; 0, R]",
        [largest_difference(adjoint(pose), adjoint_of(pose.as_matrix())) for pose in transforms],
        "numpy's blocks",
    )
    products = [(a @ b, *concatenate(a, b)) for a, b in pairs]
    yield deviation(
        "eq. 4: mean of a product",
        "T_AB T_BC",
        [largest_difference(pose.mean.as_matrix(), mean) for pose, mean, _ in products],
        "numpy's product",
    )
    yield deviation(
        "eq. 5: its covariance",
        "Ad S_AB Ad^T + S_BC",
        [relative_difference(pose.covariance, covariance) for pose, _, covariance in products],
        "dense matrices, relative",
    )
    yield deviation(
        "eq. 6: mean of an inverse",
        "T_AB^-1",
        [
            largest_difference(a.inverse().mean.as_matrix(), np.linalg.inv(a.mean.as_matrix()))
            for a, _ in pairs
        ],
        "numpy's inverse",
    )
    carries = [adjoint_of(a.mean.as_matrix()) for a, _ in pairs]
    yield deviation(
        "eq. 7: its covariance",
        "Ad S_AB Ad^T",
        [
            relative_difference(a.inverse().covariance, carry @ a.covariance @ carry.T)
            for (a, _), carry in zip(pairs, carries, strict=True)
        ],
        "dense matrices, relative",
    )


def deviation(subject: str, rule: str, errors: list[float], oracle: str) -> Row:
    """Return the row of the largest deviation from a rule."""
    return Row(
        subject,
        rule,
        f"off by {max(errors):.0e}",
        max(errors) < 1e-12,
        f"{len(errors)} random poses; {oracle}",
    )


def path() -> Row:
    """Return the row of the path between two leaves of the tree of figure 2."""
    scene = tree()
    links = links_of(scene, "n31", "n16")
    pose = links[0]
    for link in links[1:]:
        mean, covariance = concatenate(pose, link)
        pose = GaussianPose(Pose.from_matrix(mean), 0.5 * (covariance + covariance.T))
    error = relative_difference(
        scene.gaussian_pose("n31", relative_to="n16").covariance, pose.covariance
    )
    return Row(
        "leaf to leaf in a tree of four levels (Fig. 2)",
        "eqs. 5 and 7 along the path",
        f"{len(links)} edges, off by {error:.0e}",
        error < 1e-12,
        "dense matrices, relative",
    )


# --- figure 4


def times() -> Iterator[Row]:
    """Yield the rows of figure 4: medians of times of queries, relative to the pose alone."""
    taken, errors = evaluation(QUERIES)
    base = float(np.median(taken["pose alone"]))
    closed = float(np.median(taken["pose and covariance"])) / base
    yield Row(
        "pose and covariance, times a pose (Fig. 4)",
        "24.5",
        f"{closed:.1f}",
        None,
        f"base: tf there, `scene.pose` here ({base:.2f} µs)",
    )
    for count in (1, 100):
        name = f"{count} sample{'s' * (count > 1)}"
        sampled = float(np.median(taken[name])) / base
        error = f"covariance off by {errors[count]:.0%}" if count in errors else "no covariance"
        yield Row(
            f"{name}, times a pose (Fig. 4)",
            "60.9, for an unstated number of samples",
            f"{sampled:.1f}",
            None,
            f"{error}; {sampled / closed:.1f} times the closed form, 2.5 times there",
        )


# --- applications


def arm() -> Iterator[Row]:
    """Yield the share of simulated arms whose tool is in the region, by posture."""
    program = example("bending_arm")
    scene, compliances = program["arm"]()
    model = LinearCompliance(compliances, fraction=program["SPREAD"], floor=program["PLAY"])
    arms = program["simulate_arms"](compliances, seed=1)
    for name, values in program["POSTURES"].items():
        q = np.array(values)
        rigid = scene.pose("tool", relative_to="world", q=q)
        version = apply_compliance(scene, model, q=q, iterations=3)
        predicted = version.gaussian_pose("tool", relative_to="world", q=q)
        region = position_ellipsoid(predicted, probability=0.95)
        points = program["tools"](scene, arms, q)
        inside = float(np.mean([region.contains(point) for point in points]))
        from_rigid = 1e3 * float(np.linalg.norm(points - rigid.translation, axis=1).mean())
        from_predicted = 1e3 * float(
            np.linalg.norm(points - predicted.mean.translation, axis=1).mean()
        )
        yield Row(
            f"tool of a bending arm, {name} (Fig. 5)",
            "within the anticipated region",
            f"{inside:.1%} of {len(points)} arms in the region of 95 %",
            abs(inside - 0.95) < 0.05,
            f"{from_rigid:.1f} mm from the rigid tool, {from_predicted:.1f} mm from that predicted",
        )


def neck_map() -> Row:
    """Return the row of the map: deviation of the instrument before and after all observations."""
    program = example("uncertain_neck_map")
    true, scene = program["simulate_drive"](program["initial_estimate"](), seed=4)
    version = write_back(scene, solve_pose_graph(pose_graph(scene)))
    expected = true.pose("instrument", relative_to="map")
    errors, deviations = [], []
    for estimate in (scene, version):
        pose = estimate.pose("instrument", relative_to="map")
        deviation_of_frame = estimate.standard_deviation("instrument", relative_to="map")
        errors.append(1e3 * pose.distance(expected)[0])
        deviations.append(1e3 * float(np.linalg.norm(deviation_of_frame[:3])))
    return Row(
        "error of the instrument on the map (Fig. 6)",
        "optimized estimate, without a number",
        f"{errors[0]:.0f} mm before, {errors[1]:.0f} mm after the observations",
        errors[1] < 3.0 * deviations[1] < deviations[0],
        f"standard deviations of the position: {deviations[0]:.0f} mm, {deviations[1]:.0f} mm",
    )
