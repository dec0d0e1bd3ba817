"""Covariance of hand-mounted cameras, fitted from recorded looks and stored in the scene.

A camera is taken off an arm and put on again, a little differently each time: a decalibration that
a scene should model. Three errors are mixed in the records: of the mount (new each time it is put
on), of the arm (new in each posture) and of the camera (new in each picture). The example
generates a year of records with a seed: in each mounting some postures, in each posture two
pictures of a marker whose place is known. It fits all three covariances:

* the error of one look is, to first order, xi = Ad(m) mount + Ad(a) arm + camera, each adjoint
  known from the posture;
* looks of two postures have only the mount in common: E[xi xi'^T] = Ad(m) M Ad(m')^T;
* pictures of one posture also the arm, a picture with itself also the camera: each pair has its own
  sum of covariances.

These are linear in the covariances: least squares. They come out within the error of so many
samples; the scene that carries them predicts the error of the marker, and is honest about it
(NEES).

Run it: ``python examples/hand_eye.py``; it draws the picture of the documentation into
``--out`` (with the extra ``pictures``).
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.spatial import GaussianPose, adjoint, nees_of_errors

Array = NDArray[np.float64]

MOUNTINGS, POSTURES, PICTURES = 250, 5, 2
NAMES = ("mount", "arm", "camera")
HAND_FROM_CAMERA = tk.Pose.from_rpy([0.05, 0.0, 0.08], [0.0, 0.1, 0.3])


def square(linear: tuple[float, ...], angular: tuple[float, ...], *, tied: float = 0.0) -> Array:
    """Return a covariance from deviations [mm, mrad]; ``tied`` correlates x with the y turn."""
    deviations = 1e-3 * np.array([*linear, *angular])
    correlation = np.eye(6)
    correlation[0, 4] = correlation[4, 0] = tied
    return np.asarray(correlation * np.outer(deviations, deviations))


TRUE = {
    "mount": square((2.0, 1.0, 0.5), (3.0, 8.0, 2.0), tied=0.7),
    "arm": square((0.4, 0.4, 0.8), (2.0, 2.0, 1.0)),
    "camera": square((0.6, 0.6, 1.8), (4.0, 4.0, 1.0)),
}


def postures(random: np.random.Generator, count: int) -> list[tk.Pose]:
    """Return marker_from_camera in so many postures: from all round, some near and some far."""
    poses = []
    for _ in range(count):
        turn = tk.Pose.from_rpy(
            [0.0, 0.0, 0.0], random.uniform([-0.8, -0.8, -3.0], [0.8, 0.8, 3.0])
        )
        poses.append(turn @ tk.Pose([0.0, 0.0, random.uniform(-0.7, -0.25)]))
    return poses


def record(seed: int) -> tuple[list[list[tk.Pose]], list[list[Array]]]:
    """Return the expected views of the marker and their errors, by mounting and view.

    The error (6,) is that of the marker as seen, log of expected^-1 seen, in the marker's axes.
    """
    random = np.random.default_rng(seed)
    roots = {name: np.linalg.cholesky(TRUE[name]) for name in NAMES}
    places: list[list[tk.Pose]] = []
    errors: list[list[Array]] = []
    for _ in range(MOUNTINGS):
        mount = tk.Pose.exp(roots["mount"] @ random.normal(size=6))
        places.append([])
        errors.append([])
        for marker_from_camera in postures(random, POSTURES):
            arm = tk.Pose.exp(roots["arm"] @ random.normal(size=6))
            marker_from_hand = marker_from_camera @ HAND_FROM_CAMERA.inverse()
            really = marker_from_hand @ arm @ HAND_FROM_CAMERA @ mount  # marker_from_camera
            for _ in range(PICTURES):
                # camera_from_marker
                seen = really.inverse() @ tk.Pose.exp(roots["camera"] @ random.normal(size=6))
                places[-1].append(marker_from_camera)
                errors[-1].append((marker_from_camera @ seen).log())
    return places, errors


def carriers(marker_from_camera: tk.Pose) -> tuple[Array, Array]:
    """Return the transforms of the mount's and the arm's errors into the marker's axes."""
    return -adjoint(marker_from_camera), -adjoint(marker_from_camera @ HAND_FROM_CAMERA.inverse())


# ------------------------------------------------------------------------------------------ fitting


def fit(
    places: list[list[tk.Pose]], errors: list[list[Array]]
) -> tuple[dict[str, Array], dict[str, float]]:
    """Return the three covariances that explain the errors best, and the standard error of each.

    Observations are weighted by the residuals of the previous fit: far views do not dominate near
    ones. The standard error is the root mean square of the Frobenius norm of the error, from
    the scatter between mountings.
    """
    spread: dict[str, float] = {}
    covariances = {name: np.eye(6) * 1e-6 for name in NAMES}
    for _ in range(2):
        covariances, spread = _fit_once(places, errors, covariances)
    return covariances, spread


def _fit_once(
    places: list[list[tk.Pose]], errors: list[list[Array]], covariances: dict[str, Array]
) -> tuple[dict[str, Array], dict[str, float]]:
    basis = _basis()
    equations = [
        _equations(views, looks, covariances, basis)
        for views, looks in zip(places, errors, strict=True)
    ]
    inverse = np.linalg.inv(sum(normal for normal, _ in equations))
    solved = inverse @ sum(right for _, right in equations)
    scatter = sum(
        np.outer(left, left) for left in (right - normal @ solved for normal, right in equations)
    )
    variances = np.diag(inverse @ scatter @ inverse).reshape(3, 21) * (basis**2).sum(axis=0)
    sums = {
        name: _covariance((basis @ row).reshape(6, 6))
        for name, row in zip(NAMES, solved.reshape(3, 21), strict=True)
    }
    return sums, {
        name: float(np.sqrt(row.sum())) for name, row in zip(NAMES, variances, strict=True)
    }


def _equations(
    views: list[tk.Pose], looks: list[Array], covariances: dict[str, Array], basis: Array
) -> tuple[Array, Array]:
    """Return the normal equations (63, 63) and (63,) of one mounting, 21 for each covariance."""
    normal, right = np.zeros((63, 63)), np.zeros(63)
    carried = [carriers(view) for view in views]
    sizes = [
        m @ covariances["mount"] @ m.T + a @ covariances["arm"] @ a.T + covariances["camera"]
        for m, a in carried
    ]
    whiten = [np.linalg.inv(np.linalg.cholesky(size)) for size in sizes]
    for i, (mount, arm) in enumerate(carried):
        for j in range(i + 1):
            left, other = whiten[i], whiten[j]
            design = np.zeros((36, 63))
            design[:, :21] = np.kron(left @ mount, other @ carried[j][0]) @ basis
            if i // PICTURES == j // PICTURES:
                design[:, 21:42] = np.kron(left @ arm, other @ arm) @ basis
            if i == j:
                design[:, 42:] = np.kron(left, left) @ basis
            normal += design.T @ design
            right += design.T @ np.outer(left @ looks[i], other @ looks[j]).ravel()
    return normal, right


def _basis() -> Array:
    """Return (36, 21): symmetric matrices, row by row, from their 21 numbers."""
    columns = []
    for i in range(6):
        for j in range(i + 1):
            matrix = np.zeros((6, 6))
            matrix[i, j] = matrix[j, i] = 1.0
            columns.append(matrix.ravel())
    return np.array(columns).T


def _covariance(matrix: Array) -> Array:
    """Return the matrix without negative eigenvalues, which a fit of few data may have."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    return np.asarray((vectors * np.maximum(values, 1e-12)) @ vectors.T)


# -------------------------------------------------------------------------------------------- usage


def scene_of(covariances: dict[str, Array], view: tk.Pose) -> tk.SceneGraph:
    """Return the scene of one view with these covariances; frame 'seen' has the look's error."""
    return (
        tk.SceneGraph("marker")
        .add_frame(
            "hand",
            "marker",
            pose=GaussianPose(view @ HAND_FROM_CAMERA.inverse(), covariances["arm"]),
        )
        .add_frame("camera", "hand", pose=GaussianPose(HAND_FROM_CAMERA, covariances["mount"]))
        .add_frame("seen", "camera", pose=GaussianPose(view.inverse(), covariances["camera"]))
    )


def honesty(covariances: dict[str, Array], *, seed: int) -> str:
    """Return the NEES of new records, one look of each mounting, with the scene's covariances."""
    places, errors = record(seed)
    claims = [
        scene_of(covariances, views[0]).gaussian_pose("seen", relative_to="marker")
        for views in places
    ]
    nees = nees_of_errors(
        [(looks[0], claim.covariance) for looks, claim in zip(errors, claims, strict=True)]
    )
    where = "inside" if nees.is_consistent else "OUTSIDE"
    return f"{nees.mean:7.2f}, {where} of {nees.lower:.2f} to {nees.upper:.2f}"


def main() -> None:
    """Record, fit, compare, use."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    places, errors = record(seed=7)
    covariances, spread = fit(places, errors)
    print(
        f"{MOUNTINGS} mountings, {POSTURES} postures in each, {PICTURES} pictures in each of"
        " these\n"
    )
    print(f"{'':<10}{'true deviations':^34}{'fitted':^34}{'off by':>8}{'expected':>10}")
    for name in NAMES:
        true, error = TRUE[name], float(np.linalg.norm(covariances[name] - TRUE[name]))
        size = float(np.linalg.norm(true))
        numbers = f"{error / size:>8.1%}{spread[name] / size:>10.1%}"
        print(f"{name:<10}{deviations(true):^34}{deviations(covariances[name]):^34}{numbers}")
        assert error < 2.5 * spread[name], "the fit is farther off than so many samples explain"
    tied = covariances["mount"][0, 4] / np.sqrt(
        covariances["mount"][0, 0] * covariances["mount"][4, 4]
    )
    print(f"x of the mount and its turn about y: correlation {tied:.2f}, in truth 0.70\n")
    print(f"NEES of new records, as fitted:        {honesty(covariances, seed=8)}")
    forgotten = {**covariances, "mount": np.zeros((6, 6))}
    print(f"NEES if the mount were taken as exact: {honesty(forgotten, seed=8)}")
    if importlib.util.find_spec("matplotlib") is not None:
        draw(covariances, folder / "hand_eye.png")
        print("see", folder / "hand_eye.png")


def deviations(covariance: Array) -> str:
    """Return standard deviations in mm and mrad."""
    return " ".join(f"{1e3 * value:.1f}" for value in np.sqrt(np.diag(covariance)))


def draw(covariances: dict[str, Array], path: Path) -> None:
    """Draw true and fitted covariances: shift along x against the turn about y."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.3), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    turn = np.linspace(0.0, 2.0 * np.pi, 100)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    for axes, name in zip(figure.subplots(1, 3), NAMES, strict=True):
        for covariance, style, label in (
            (TRUE[name], "k--", "true"),
            (covariances[name], "#1f5fa8", "fitted"),
        ):
            part = covariance[np.ix_([0, 4], [0, 4])]
            outline = 1e3 * circle @ np.linalg.cholesky(part).T
            axes.plot(outline[:, 0], outline[:, 1], style, label=label)
        axes.set(title=name, xlabel="shift along x (mm)", ylabel="turn about y (mrad)")
        axes.grid(visible=True, linewidth=0.3)
        axes.margins(0.15)
    figure.axes[0].legend(fontsize=8)
    figure.savefig(path, format="png", metadata={"Software": None})


if __name__ == "__main__":
    main()
