"""Objects fixed to frames, and what they pull with.

pybullet ties a link and an object by a constraint. Two things have to be known of it. A constraint on a link that
weighs next to nothing drifts away, and a cup or a hand often is such a link; so the object is tied to the heaviest of
the links that are rigidly joined to the wanted one, which comes to the same. And what it says of its load is in two
systems at once: the force along the axes of the root, the moment about the object's origin and along its axes.

Invariants: an object is attached to a frame once at most, and to two frames only while it goes from hand to hand; where
it is attached it stays as it was at that moment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SimulationError
from tmkit.graph import SceneGraph
from tmkit.simulation.bodies import BASE, Body
from tmkit.spatial import Pose

_HOLDING_FORCE = 2000.0  # newtons that a rigid grasp can bear


def link_pose(bullet: Any, client: int, *, body: Body, link: int) -> Pose:
    """Return the pose of a link relative to the root.

    Args:
        bullet: the module ``pybullet``.
        client: index of the connection.
        body: the body.
        link: index of the link, or ``BASE``.
    """
    if link == BASE:
        position, quaternion = bullet.getBasePositionAndOrientation(body.index, physicsClientId=client)
        return Pose(position, quaternion) @ body.base_from_inertial.inverse()
    state = bullet.getLinkState(body.index, link, computeForwardKinematics=1, physicsClientId=client)
    return Pose(state[4], state[5])


class Attachments:
    """The attached objects of one connection.

    Args:
        bullet: the pybullet module.
        client: the connection.
        scene: the scene that the bodies were made from.
    """

    def __init__(self, bullet: Any, client: int, *, scene: SceneGraph) -> None:
        self._bullet = bullet
        self._client = client
        self._scene = scene
        self._constraints: dict[tuple[str, str], int] = {}  # by object and the frame that holds it

    @property
    def names(self) -> tuple[str, ...]:
        """The attached objects, in the order in which they were attached."""
        return tuple(dict.fromkeys(name for name, _ in self._constraints))

    def attach(self, child: Body, name: str, *, parent: Body, frame: str) -> None:
        """Fix an object, or the frame of a mechanism, to a frame of another body by a constraint.

        Args:
            child: body of the object.
            name: the object, or the frame of the mechanism.
            parent: body of the frame.
            frame: the frame.

        Raises:
            SimulationError: it is attached to this frame already.
        """
        if (name, frame) in self._constraints:
            raise SimulationError(f"object '{name}' is attached already", object=name)
        link = self._bearing_link(parent, frame)
        own = BASE if child.kind == "object" else self._bearing_link(child, name)
        at_link = (self._link_pose(parent, link) @ self._inertial_of(parent, link)).inverse()
        at_link = at_link @ self._link_pose(child, own)
        at_object = self._inertial_of(child, own).inverse()
        constraint = self._bullet.createConstraint(
            parent.index, link, child.index, own, self._bullet.JOINT_FIXED, [0.0, 0.0, 0.0], list(at_link.translation),
            list(at_object.translation), list(at_link.quat_xyzw), list(at_object.quat_xyzw),
            physicsClientId=self._client,
        )  # fmt: skip
        self._bullet.changeConstraint(constraint, maxForce=_HOLDING_FORCE, physicsClientId=self._client)
        self._constraints[name, frame] = constraint

    def detach(self, name: str, frame: str | None = None) -> None:
        """Remove the constraints of an object; nothing happens if there are none.

        Args:
            name: the object.
            frame: frame that it is attached to; any by default.
        """
        for key in [key for key in self._constraints if key[0] == name and frame in (None, key[1])]:
            self._bullet.removeConstraint(self._constraints.pop(key), physicsClientId=self._client)

    def load(self, child: Body, name: str, *, frame: str, about: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the force in newtons and the moment in newton metres, (6,), of an object on what holds it.

        Args:
            child: the object's body.
            name: the object.
            frame: the frame that holds it.
            about: (3,) point of the root about which the moment is taken.

        Returns:
            The load of the last step, expressed in the root.

        Raises:
            SimulationError: the object is not attached.
        """
        if (name, frame) not in self._constraints:
            raise SimulationError(f"object '{name}' is not attached to '{frame}'", object=name)
        state = self._bullet.getConstraintState(self._constraints[name, frame], physicsClientId=self._client)
        force, moment = np.array(state[:3]), np.array(state[3:])
        root_from_object = self._link_pose(child, BASE if child.kind == "object" else self._bearing_link(child, name))
        lever = root_from_object.translation - about
        return np.concatenate([force, root_from_object.rotate(moment) + np.cross(lever, force)])

    def _link_pose(self, body: Body, link: int) -> Pose:
        return link_pose(self._bullet, self._client, body=body, link=link)

    def _inertial_of(self, body: Body, link: int) -> Pose:
        """Return link_from_inertial."""
        if link == BASE:
            return body.base_from_inertial
        info = self._bullet.getDynamicsInfo(body.index, link, physicsClientId=self._client)
        return Pose(info[3], info[4])

    def _bearing_link(self, body: Body, frame: str) -> int:
        """Return the heaviest link on the fixed edges from a frame up to the next joint."""
        fixed = [frame]
        while self._scene.joint(fixed[-1]).type in ("fixed", "free"):
            above = self._scene.parent(fixed[-1])
            if above is None or above not in body.links:
                break
            fixed.append(above)
        masses = {body.links[name]: 0.0 for name in fixed}
        for link in masses:
            masses[link] = float(self._bullet.getDynamicsInfo(body.index, link, physicsClientId=self._client)[0])
        return max(masses, key=lambda link: masses[link])
