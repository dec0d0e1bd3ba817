"""One robot holds a cylinder, another a spray gun: inverse kinematics of the relative pose.

The steps are those of De Laet et al., "Geometric relations between rigid bodies (part 1)", 2013:
known quantities are written with their semantics, six operations lead to the target, first in
meaning alone (1 to 6), then with matrices (7 to 12), and inverse kinematics does the rest. The
robots are a Panda and a UR5. The result is checked by forward kinematics of both, and by a product
of matrices. Run it: ``python examples/two_robots.py``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import tmkit as tk
from tmkit.graph import relate
from tmkit.motion import InverseKinematicsStatus, inverse_kinematics
from tmkit.relations import PoseCoord, SemanticError, SemanticPose, apply
from tmkit.relations.representations import HomogeneousMatrix

FIRST_JOINTS = (0.4, -0.3, 0.2, -2.0, 0.1, 1.9, 0.5)  # given [rad]

# Where the bodies meet: {o1} is the cylinder, {o2} the gun, {b} the bases, {e} the end effectors.
MOUNTED = {
    # the robots face each other
    "{b2}|B2 {b1}|B1": tk.Pose.from_rpy([1.1, 0.1, 0.0], [0.0, 0.0, np.pi]),
    # the cylinder in the hand
    "{o1}|O1 {e1}|E1": tk.Pose.from_rpy([0.0, 0.0, 0.15], [np.pi / 2, 0.0, 0.0]),
    # the gun on the flange
    "{o2}|O2 {e2}|E2": tk.Pose.from_rpy([0.01, 0.02, 0.25], [0.0, -0.2, 0.0]),
    # where the gun is to spray from
    "{o2}|O2 {o1}|O1": tk.Pose.from_rpy([0.2, 0.0, 0.05], [0.0, -np.pi / 2, 0.3]),
}


def coord_of(pair: str) -> PoseCoord:
    """Return the coordinates of one frame relative to another, in the axes of the other."""
    target, reference = pair.split()
    return PoseCoord(target, reference, reference.split("|")[0].replace("{", "[").replace("}", "]"))


def main() -> None:
    """Go through the twelve steps, move the robots, and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    np.set_printoptions(precision=4, suppress=True)
    first, arm = tk.load_scene("panda_table"), tk.load_manipulator("panda")
    second, other = tk.load_scene("ur5_table"), tk.load_manipulator("ur5")

    # Known poses. The pose of the first end effector is that of its forward kinematics.
    q1 = first.configuration(dict(zip(arm.joints, FIRST_JOINTS, strict=True)))
    poses = {pair: SemanticPose(coord_of(pair), pose.as_matrix()) for pair, pose in MOUNTED.items()}
    reached = first.pose(arm.tip, relative_to=arm.base, q=q1)
    poses["{e1}|E1 {b1}|B1"] = SemanticPose(coord_of("{e1}|E1 {b1}|B1"), reached.as_matrix())
    e1_b1, b2_b1 = poses["{e1}|E1 {b1}|B1"], poses["{b2}|B2 {b1}|B1"]
    o1_e1, o2_e2, o2_o1 = (
        poses["{o1}|O1 {e1}|E1"],
        poses["{o2}|O2 {e2}|E2"],
        poses["{o2}|O2 {o1}|O1"],
    )

    print("Steps 1 to 6: meaning alone. No number is needed to see that the plan is sound.")
    meaning = {1: apply("inverse2", o2_e2.coord)}
    meaning[2] = apply("compose", meaning[1], o2_o1.coord)
    meaning[3] = apply("compose", meaning[2], o1_e1.coord)
    meaning[4] = apply("compose", meaning[3], e1_b1.coord)
    meaning[5] = apply("inverse2", b2_b1.coord)
    meaning[6] = apply("compose", meaning[4], meaning[5])
    for number, coord in meaning.items():
        print(f"    ({number}) {coord}")
    assert meaning[6] == PoseCoord("{e2}|E2", "{b2}|B2", "[b2]")
    try:
        apply("compose", meaning[3], b2_b1.coord)
    except SemanticError as error:
        print(f"    a step is missing: {error.violations[0]}\n")
    else:
        raise AssertionError("a chain with a gap was composed")

    print("Steps 7 to 12: the same with matrices.")
    numbers = {7: o2_e2.inverse2()}
    numbers[8] = numbers[7].compose(o2_o1)
    numbers[9] = numbers[8].compose(o1_e1)
    numbers[10] = numbers[9].compose(e1_b1)
    numbers[11] = b2_b1.inverse2()
    numbers[12] = numbers[10].compose(numbers[11])
    for number, pose in numbers.items():
        assert pose.coord == meaning[number - 6]
        print(f"    ({number}) {pose.coord} at {pose.numbers[0]} m")
    wanted = numbers[12].in_representation(HomogeneousMatrix).matrix
    matrices = {
        pair: pose.in_representation(HomogeneousMatrix).matrix for pair, pose in poses.items()
    }
    inverse = np.linalg.inv
    by_hand = (
        inverse(matrices["{b2}|B2 {b1}|B1"])
        @ matrices["{e1}|E1 {b1}|B1"]
        @ matrices["{o1}|O1 {e1}|E1"]
        @ matrices["{o2}|O2 {o1}|O1"]
        @ inverse(matrices["{o2}|O2 {e2}|E2"])
    )
    np.testing.assert_allclose(wanted, by_hand, atol=1e-12)

    target = tk.Pose.from_matrix(wanted)
    q = other.ready_configuration(second)
    solution = inverse_kinematics(
        second, other.tip, target_pose=target, joints=other.joints, q=q, relative_to=other.base
    )
    print(f"\nInverse kinematics of the second robot: {solution.status.name}")
    assert solution.status is InverseKinematicsStatus.SOLVED
    for name, value in zip(other.joints, solution.q, strict=True):
        print(f"    {name:20} {value:8.4f} rad")

    # Both robots in one scene, with cylinder and gun: forward kinematics must show the pose that
    # was wanted.
    bench = first.mount(second, arm.base, prefix="second/", pose=MOUNTED["{b2}|B2 {b1}|B1"])
    bench = bench.add_body("O1").add_body("O2")
    bench = bench.add_frame("o1", arm.tip, pose=MOUNTED["{o1}|O1 {e1}|E1"], body="O1")
    bench = bench.add_frame("o2", f"second/{other.tip}", pose=MOUNTED["{o2}|O2 {e2}|E2"], body="O2")
    angles = dict(zip(arm.joints, FIRST_JOINTS, strict=True))
    angles.update(
        (f"second/{name}", float(value))
        for name, value in zip(other.joints, solution.q, strict=True)
    )
    seen = relate(
        bench, o2_o1.coord, q=bench.configuration(angles), representation=HomogeneousMatrix
    )
    difference = np.abs(seen.representation.matrix - matrices["{o2}|O2 {o1}|O1"]).max()
    print(f"\n{seen.coord} of the two robots is off by {difference:.0e}")
    assert difference < 1e-4
    tk.save_html(bench, folder / "two_robots.html", q=bench.configuration(angles))


if __name__ == "__main__":
    main()
