"""A robot sprays a moving cylinder: pose and velocity of the painted spot relative to the gun.

The example is that of De Laet, Bruyninckx and De Schutter's scene graph of poses and twists (2013):
each relation is put in as it was measured, and the graph computes the quantities for the painting.
They are checked against explicit matrix products, and the graph is drawn. Run it: ``python
examples/spray_painting.py``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.graph import SceneGraph, add_pose, add_twist, relate
from tmkit.relations import (
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    SemanticError,
    SemanticOrientation,
    SemanticPose,
    SemanticPosition,
    SemanticTwist,
    TwistCoord,
)
from tmkit.relations.representations import EulerAngles, HomogeneousMatrix, UnitQuaternion
from tmkit.visualization import draw_semantics_graph

Array = NDArray[np.float64]

BODIES = {
    "B": ("b",),  # the robot's base
    "E": ("e",),  # its end effector
    "C": ("c",),  # the camera, mounted beside the base
    "O1": ("o1", "f1"),  # the cylinder, and the spot on it that is to be painted
    "O2": ("o2",),  # the spray gun
}

# frame, body, reference frame, reference body: angles about z, y', x'' and position, in the axes of
# the reference
POSES = [
    (("c", "C", "b", "B"), (0.5, -0.3, 0.2), (1.2, -0.4, 0.9)),  # how the camera is mounted
    (("o1", "O1", "c", "C"), (-0.7, 0.4, 1.1), (0.3, -0.1, 1.5)),  # from the camera
    (("f1", "O1", "o1", "O1"), (np.pi / 4, 0.0, 0.0), (0.02, 0.0, 0.2)),  # where paint is wanted
    (("o2", "O2", "e", "E"), (0.0, np.pi / 2, 0.0), (0.0, 0.05, 0.12)),  # how the gun is mounted
    (("e", "E", "b", "B"), (1.0, 0.2, -0.4), (0.6, 0.3, 0.7)),  # from the joint angles
]

# point, body, reference body, frame of expression: linear and angular velocity
TWISTS = [
    (("c", "C", "B", "b"), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    # in the camera's axes: not as edges are kept
    (("o1", "O1", "C", "c"), (0.2, 0.1, 0.1), (0.05, 0.1, 0.2)),
    (("o2", "O2", "E", "o2"), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    (("e", "E", "B", "e"), (0.1, -0.2, 0.05), (0.3, -0.1, 0.2)),  # from the joint velocities
]


def build() -> SceneGraph:
    """Return the graph: bodies, frames, and every known pose and twist with its semantics."""
    scene = SceneGraph(root=None)
    for body, frames in BODIES.items():
        scene = scene.add_body(body)
        for frame in frames:
            scene = scene.add_root(frame, body=body)
    for (frame, body, ref, ref_body), angles, position in POSES:
        turned = SemanticOrientation(
            OrientationCoord(f"[{frame}]|{body}", f"[{ref}]|{ref_body}", f"[{ref}]"),
            EulerAngles(angles, "ZYX"),
        )
        translation = SemanticPosition(
            PositionCoord(f"{frame}|{body}", f"{ref}|{ref_body}", f"[{ref}]"), position
        )
        scene = add_pose(scene, SemanticPose.of(translation, turned))
    for (point, body, ref_body, axes), linear, angular in TWISTS:
        coord = TwistCoord(f"{point}|{body}", ref_body, f"[{axes}]")
        scene = add_twist(scene, SemanticTwist(coord, [*linear, *angular]))
    return scene


def main() -> None:
    """Build the graph, query it, and check the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    np.set_printoptions(precision=4, suppress=True)
    scene = build()

    reference, numbers = scene.twist_edge("o1") or ("", [])
    print(
        "The camera's twist of the cylinder was given in [c]; the edge keeps it in [o1],"
        " relative to",
        reference,
    )
    print("   ", np.array(numbers), "\n")

    pose = relate(scene, PoseCoord("{f1}|O1", "{o2}|O2", "[o2]"))
    print(pose.coord)
    print(
        "    at",
        pose.position.numbers[0],
        "m, quaternion xyzw",
        pose.orientation.in_representation(UnitQuaternion).quat_xyzw,
    )
    twist = relate(scene, TwistCoord("f1|O1", "O2", "[o2]"))
    print(twist.coord)
    print(
        "    linear", twist.linear.numbers[0], "m/s, angular", twist.angular.numbers[0], "rad/s\n"
    )

    expected_pose, expected_twist = by_hand()
    np.testing.assert_allclose(
        pose.in_representation(HomogeneousMatrix).matrix, expected_pose, atol=1e-12
    )
    np.testing.assert_allclose(np.concatenate(twist.numbers), expected_twist, atol=1e-12)

    print(
        "The point of one frame, the axes of another, expressed in a third: no homogeneous matrix"
        " says that."
    )
    try:
        relate(scene, PoseCoord("(f1,[o1])|O1", "{o2}|O2", "[b]"), representation=HomogeneousMatrix)
    except SemanticError as error:
        print("   ", error)
    else:
        raise AssertionError("a homogeneous matrix cannot say that")
    print(
        "\nBodies, frames and edges:",
        draw_semantics_graph(scene, folder / "spray_painting.svg").name,
    )


# -------------------------------------------------------- the same by hand, in the axes of the base


def matrix(angles: ArrayLike, position: ArrayLike) -> Array:
    """Return the matrix (4, 4) of a turn about z, the new y and the new x, then a translation."""
    (cz, cy, cx), (sz, sy, sx) = np.cos(angles), np.sin(angles)
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = about_z @ about_y @ about_x, position
    return matrix


def by_hand() -> tuple[Array, Array]:
    """Return the pose (4, 4) and twist (6,) of the spot relative to the gun, in the gun's axes."""
    c, o1, f1, o2, e = (matrix(angles, position) for _, angles, position in POSES)
    spot, gun, wrist = c @ o1 @ f1, e @ o2, e

    def velocity_at(
        point: Array, *, axes: Array, origin: Array, linear: ArrayLike, angular: ArrayLike
    ) -> Array:
        turn = axes[:3, :3] @ np.asarray(angular)
        return np.concatenate(
            [axes[:3, :3] @ np.asarray(linear) + np.cross(turn, point - origin[:3, 3]), turn]
        )

    spot_position = spot[:3, 3]
    _, seen, _, driven = TWISTS
    of_spot = velocity_at(spot_position, axes=c, origin=c @ o1, linear=seen[1], angular=seen[2])
    of_gun = velocity_at(
        spot_position, axes=wrist, origin=wrist, linear=driven[1], angular=driven[2]
    )
    relative = of_spot - of_gun
    to_gun = gun[:3, :3].T
    return np.linalg.inv(gun) @ spot, np.concatenate([to_gun @ relative[:3], to_gun @ relative[3:]])


if __name__ == "__main__":
    main()
