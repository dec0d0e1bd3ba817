"""Five common mistakes with rigid bodies, and the error that tmkit raises for each.

They are the common errors of De Laet et al., "Geometric relations between rigid bodies (part 1)",
2013. Run it: ``python examples/common_errors.py``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tmkit.relations import (
    LinearVelocityCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord as At,
    SemanticError,
    SemanticLinearVelocity,
    SemanticOrientation,
    SemanticPose,
    SemanticPosition,
    SemanticTwist,
    TwistCoord,
    checks_off,
)
from tmkit.relations.representations import HomogeneousMatrix, RotationMatrix
from tmkit.spatial import Pose


def print_error(title: str, mistake: Callable[[], object]) -> None:
    """Print the error of tmkit for a mistake."""
    try:
        mistake()
    except SemanticError as error:
        print(f"{title}\n    {error}\n")
        return
    raise AssertionError(f"'{title}' was not refused")


def main() -> None:
    """Make all five, and do it right."""
    matrix = Pose.from_rpy([0.4, 0.1, 0.3], [0.2, -0.4, 0.7]).as_matrix()
    grasp = Pose.from_rpy([0.0, 0.05, 0.1], [0.0, 0.9, 0.0]).as_matrix()

    # 1 The inverse of a velocity is not the velocity of the other frame's origin: the point stays.
    tool = SemanticLinearVelocity(LinearVelocityCoord("e|Tool", "Base", "[b]"), [0.1, 0.0, 0.2])
    print("1 the inverse of", tool, "is", tool.inverse(), "\n")
    base = SemanticLinearVelocity(LinearVelocityCoord("b|Base", "Tool", "[b]"), [-0.1, 0.0, -0.2])
    print_error("1 velocities of two points do not cancel", lambda: tool.compose(base))

    # 2 Twists are composed at one point.
    link = SemanticTwist(TwistCoord("e|Tool", "Link", "[b]"), [0.1, 0, 0, 0, 0, 0.5])
    arm = SemanticTwist(TwistCoord("g|Link", "Base", "[b]"), [0, 0.2, 0, 0, 0, 0.3])
    print_error("2 twists with different points", lambda: link.compose(arm))
    at_tool = arm.change_point(SemanticPosition(At("e|Link", "g|Link", "[b]"), [0.3, 0.0, 0.0]))
    print("  right:", link.compose(at_tool), "\n")

    # 3 ... and in one set of axes.
    other = SemanticTwist(TwistCoord("e|Link", "Base", "[w]"), at_tool.representation)
    print_error("3 different coordinate frames", lambda: link.compose(other))

    # 4 Matrices are multiplied in the order in which the frames meet.
    hand = SemanticPose(PoseCoord("{hand}|Hand", "{base}|Base", "[base]"), matrix)
    cup = SemanticPose(PoseCoord("{cup}|Cup", "{hand}|Hand", "[hand]"), grasp)
    right = hand.compose(cup)
    assert np.allclose(right.representation.matrix, matrix @ grasp)
    print("4 either order of operands gives", right)
    with checks_off():  # without semantics the error passes unnoticed
        wrong = SemanticPose(
            cup.coord, HomogeneousMatrix(cup.representation.matrix @ hand.representation.matrix)
        )
    print(
        "  the product the wrong way round would be off by",
        f"{np.abs(wrong.numbers[0] - right.numbers[0]).max():.3f} m\n",
    )
    print_error(
        "4 poses that do not meet",
        lambda: hand.compose(
            SemanticPose(PoseCoord("{cup}|Cup", "{table}|Table", "[table]"), matrix)
        ),
    )

    # 5 A twist is integrated when its point and its axes are of one frame.
    pose_twist = SemanticTwist(TwistCoord("hand|Hand", "Base", "[base]"), [0.1, 0, 0, 0, 0, 0.5])
    print_error("5 integrating a pose twist", lambda: pose_twist.integrate(0.1))
    coord = OrientationCoord("[base]|Base", "[hand]|Hand", "[hand]")
    turned = SemanticOrientation(coord, RotationMatrix(matrix[:3, :3].T))
    print("  right:", pose_twist.change_coordinate_frame(turned).integrate(0.1))


if __name__ == "__main__":
    main()
