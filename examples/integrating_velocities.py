"""Integration of a constant velocity: the pose depends on which velocity is constant.

Three people mean three motions by the "constant twist" of a cylinder O1 before a robot's base B1
(De Laet et al., "Geometric relations between rigid bodies (part 1)", 2013). tmkit integrates the
two that are motions about one frame, rejects the third with the reason, and the results are checked
against small steps in plain numpy. A page shows both motions. Run it: ``python
examples/integrating_velocities.py``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.relations import PoseCoord, SemanticError, SemanticPose, SemanticTwist, TwistCoord
from tmkit.relations.representations import HomogeneousMatrix
from tmkit.spatial import Pose

Array = NDArray[np.float64]

LINEAR, ANGULAR, SECONDS = [0.1, 0.4, -0.2], [0.3, -0.5, 0.2], 1.7
START = SemanticPose(
    PoseCoord("{o1}|O1", "{b1}|B1", "[b1]"),
    Pose.from_rpy([0.5, -0.3, 0.8], [0.7, -0.2, 0.4]).as_matrix(),
)


def twist_of(point: str, axes: str) -> SemanticTwist:
    """Return the same six numbers as the twist of a point of the cylinder, in some axes."""
    return SemanticTwist(TwistCoord(f"{point}|O1", "B1", f"[{axes}]"), [*LINEAR, *ANGULAR])


def main() -> None:
    """Integrate the three, and compare each with small steps."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    np.set_printoptions(precision=4, suppress=True)

    print("1 pose twist: the velocity of o1, in the axes of b1")
    pose_twist = twist_of("o1", "b1")
    try:
        pose_twist.integrate(SECONDS)
    except SemanticError as error:
        print("   ", error)
    else:
        raise AssertionError("a twist of one frame's point in another frame's axes was integrated")
    # The intended motion is a straight line of the point and a turn about fixed axes; each can be
    # integrated separately.
    displacement = pose_twist.linear.integrate(SECONDS).numbers[0]
    turn = pose_twist.angular.integrate(SECONDS).numbers[0]
    apart = HomogeneousMatrix.of((START.numbers[0] + displacement, turn @ START.numbers[1])).matrix
    show("linear and angular velocity by themselves", apart, small_steps(pose_rate))

    print("2 body-fixed twist: the velocity of o1, in the axes of o1")
    moved = twist_of("o1", "o1").integrate(SECONDS)
    print("   ", moved.coord)
    # The reference of the result is where o1 was: a frame of B1 at that time, as far from b1 as
    # o1 was at the start.
    was = SemanticPose(PoseCoord("{o1}|B1", "{b1}|B1", "[b1]"), START.representation)
    show("moved.compose(was)", moved.compose(was).representation.matrix, small_steps(body_rate))

    print(
        "3 screw twist: the velocity of the point of the cylinder that is at b1, in the axes of b1"
    )
    moved = twist_of("b1", "b1").integrate(SECONDS)
    print("   ", moved.coord)
    # The frame of O1 that was at b1 moves; the pose of o1 relative to it does not change.
    inside = SemanticPose(PoseCoord("{o1}|O1", "{b1}|O1", "[b1]"), START.representation)
    show(
        "inside.compose(moved)",
        inside.compose(moved).representation.matrix,
        small_steps(screw_rate),
    )

    try:
        print(moved.compose(was))
    except SemanticError as error:
        print("The pose of case 2 in the place of that of case 3 is refused:\n   ", error)
    else:
        raise AssertionError("the motion of one case was composed with the pose of the other")
    print(
        "\nThe body-fixed motion (blue) and the screw (orange):",
        draw(folder / "integrating_velocities.html").name,
    )


def draw(path: Path) -> Path:
    """Write a page with the cylinder at ten moments of either motion."""
    scene, start = (
        tk.SceneGraph().add_frame("b1", "world"),
        Pose.from_matrix(START.representation.matrix),
    )
    for number, share in enumerate(np.linspace(0.0, SECONDS, 10)):
        step = Pose.exp(share * np.array([*LINEAR, *ANGULAR]))
        for name, pose, color in (
            ("body", start @ step, (0.12, 0.38, 0.95, 1)),
            ("screw", step @ start, (0.98, 0.6, 0.15, 1)),
        ):
            cylinder = [tk.AttachedShape(tk.Cylinder(0.05, 0.15), color=color)]
            scene = scene.add_frame(f"{name}{number}", "b1", pose=pose, shapes=cylinder)
    return tk.save_html(scene, path)


def show(title: str, result: Array, expected: Array) -> None:
    """Print the pose of the cylinder, and compare it with an integration in small steps."""
    print(
        f"    {title}: o1 is at {result[:3, 3]} m of b1; small steps agree to"
        f" {np.abs(result - expected).max():.0e}\n"
    )
    np.testing.assert_allclose(result, expected, atol=1e-9)


# ----------------------------------------------------------------- the same in small steps, by hand


def crossing(w: Array) -> Array:
    """Return the matrix (3, 3) of the product with a vector."""
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def rate(angular: Array, linear: Array) -> Array:
    """Return the matrix (4, 4) of a twist."""
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = crossing(angular), linear
    return matrix


def pose_rate(pose: Array) -> Array:
    """Return how the pose changes when o1 has the velocity, in the axes of b1."""
    changing = np.zeros((4, 4))
    changing[:3, :3], changing[:3, 3] = crossing(np.array(ANGULAR)) @ pose[:3, :3], LINEAR
    return changing


def body_rate(pose: Array) -> Array:
    """Return how the pose changes when o1 has the velocity, in its own axes."""
    return np.asarray(pose @ rate(np.array(ANGULAR), np.array(LINEAR)))


def screw_rate(pose: Array) -> Array:
    """Return the change of pose when the cylinder's point at b1 has the velocity, in b1's axes."""
    return np.asarray(rate(np.array(ANGULAR), np.array(LINEAR)) @ pose)


def small_steps(rate_of: Callable[[Array], Array], *, count: int = 1000) -> Array:
    """Return where the pose is after the time, by the method of Runge and Kutta."""
    pose, step = np.array(START.representation.matrix), SECONDS / count
    for _ in range(count):
        first = rate_of(pose)
        second = rate_of(pose + step / 2 * first)
        third = rate_of(pose + step / 2 * second)
        pose = pose + step / 6 * (first + 2 * second + 2 * third + rate_of(pose + step * third))
    return pose


if __name__ == "__main__":
    main()
