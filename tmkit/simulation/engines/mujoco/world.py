"""Simulation of a scene in MuJoCo, with the interface of :class:`tmkit.simulation.Simulation`.

The model has the same rigid pieces, masses, hulls and motors as that of pybullet (:mod:`.model`).
Joints are driven by computed torques within the effort limits. They produce the target velocity of
pybullet's motors. Meshes of level ``exact`` are hulls, and fixed point clouds are spheres. pybullet
uses triangles for both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.errors import SimulationError
from tmkit.graph import SceneGraph
from tmkit.robots import Manipulator
from tmkit.simulation.engines.mujoco.model import SPARE_WELDS, SUBSTEPS, ModelBuilder
from tmkit.simulation.engines.pybullet.bodies import Body
from tmkit.simulation.engines.pybullet.body_world import OVERLAP, TOUCHING
from tmkit.simulation.engines.pybullet.motors import Drive, Drives
from tmkit.simulation.engines.pybullet.world import Simulation
from tmkit.simulation.settings import PhysicsSettings
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_numbers

_BRAKING_FRACTION = 0.3
"""Fraction of the available effort with which an arm brakes in front of its goal."""

_MIN_AVAILABLE_EFFORT = 0.1
"""Minimum of the effort that is available beyond gravity, in units of the effort limit."""


class MujocoSimulation(Simulation):
    """Simulation of a scene in MuJoCo (extra ``engines``), else like :class:`Simulation`.

    Args:
        scene: the scene.
        q: (n_joints,) start configuration.
        robots: arms with hands.
        passive: joints without a motor.
        settings: physical parameters. The solver stops before the last iteration if it converges.
    """

    engine_name = "mujoco"

    def __init__(
        self,
        *,
        scene: SceneGraph,
        q: NDArray[np.float64],
        robots: tuple[Manipulator, ...],
        passive: Sequence[str],
        settings: PhysicsSettings,
    ) -> None:
        self._start, self._scene, self._settings = scene.at(q), scene, settings
        self._q, self._steps = q, 0
        self._robots, self._is_closed = robots, False
        builder = ModelBuilder(self._start, robots, settings)
        self._mujoco, self._bodies = builder.mujoco, builder.bodies
        self._place = {frame: body for body in self._bodies for frame in body.links}
        self._constraints: dict[tuple[str, str], int] = {}
        self._loads: dict[tuple[str, str], NDArray[np.float64]] = {}
        self._drives = Drives(scene=scene, bodies=self._bodies, robots=robots, passive=passive)
        friction = {
            name: settings.joint_friction(scene.joint(scene.joint_frame(name)).type)
            for name in passive
        }
        self._weld_count = len(robots) + SPARE_WELDS
        model = builder.finish(self._drives, friction, robots, self._weld_count)
        self._load_model(model, builder)
        overlaps = self._allowed_overlaps()
        if overlaps:
            for first, second in overlaps:
                builder.exclude(first, second)
            self._load_model(builder.compile(), builder)
        self.set_configuration(q)
        for robot in robots:
            self.command_fingers(q, force=robot.grip_force, arm=robot.name)

    def _load_model(self, model: Any, builder: ModelBuilder) -> None:
        """Load a compiled model, and look up the indices of its bodies and joints."""
        self._model, self._data = model, self._mujoco.MjData(model)
        self._ids = builder.body_ids(model)
        self._frame_of = dict(zip(self._ids.tolist(), builder.links, strict=True))
        joints = [model.joint(name) for name in builder.joints]
        self._positions = np.array([int(joint.qposadr[0]) for joint in joints], dtype=np.intp)
        self._speeds = np.array([int(joint.dofadr[0]) for joint in joints], dtype=np.intp)
        self._limits = np.zeros(len(builder.joints))
        self._goals = np.zeros(len(builder.joints))
        self._goal_speeds = np.zeros(len(builder.joints))
        self._is_of_arm = np.zeros(len(builder.joints), dtype=bool)
        for drive in self._drives.arms:
            self._is_of_arm[drive.indices] = True
        self._mass = np.zeros((model.nv, model.nv))
        self._is_fresh = False
        for drive in self._drives.all:
            self._data.qpos[self._positions[drive.indices]] = drive.positions(self._q)
        self._refresh()

    def _allowed_overlaps(self) -> list[tuple[str, str]]:
        """Return pairs of frames without objects that the scene allows, or that overlap now."""
        place = self._place
        pairs = {pair for pair, distance in self._contacts() if distance < -OVERLAP}
        pairs |= {(a, b) for a, b in self._allowed_pairs() if a in place and b in place}
        return sorted(
            pair
            for pair in pairs
            if all(place[frame].kind != "object" for frame in pair)
            and place[pair[0]] is not place[pair[1]]
        )

    @classmethod
    def _open(
        cls,
        scene: SceneGraph,
        q: NDArray[np.float64],
        robots: tuple[Manipulator, ...],
        passive: Sequence[str],
        *,
        gui: bool,
        settings: PhysicsSettings,
    ) -> Self:
        if gui:
            raise SimulationError(
                "the engine 'mujoco' has no window; record a film, or follow it in a viewer"
            )
        return cls(scene=scene, q=q, robots=robots, passive=passive, settings=settings)

    # --- state

    def close(self) -> None:
        """End the simulation. A second call has no effect."""
        self._is_closed = True

    @property
    def is_closed(self) -> bool:
        """Return whether the simulation is closed."""
        return self._is_closed

    def _require_open(self) -> None:
        """Check that the simulation is not closed."""
        if self._is_closed:
            raise SimulationError("this simulation is closed")

    def _refresh(self) -> None:
        """Update poses, contacts and constraints after a change of the state."""
        self._require_open()
        if not self._is_fresh:
            self._mujoco.mj_step1(self._model, self._data)
            self._is_fresh = True

    def _link_pose(self, body: Body, link: int) -> Pose:
        del body
        self._refresh()
        number = self._ids[link]
        return Pose(self._data.xpos[number].copy(), np.roll(self._data.xquat[number], -1))

    @property
    def q(self) -> NDArray[np.float64]:
        """(n_joints,) simulated joint positions in the scene's order [rad or m]."""
        self._require_open()
        result = self._q.copy()
        for drive in reversed(self._drives.all):
            values = self._data.qpos[self._positions[drive.indices]]
            for value, entry, multiplier, offset in zip(
                values[::-1],
                drive.entries[::-1],
                drive.multipliers[::-1],
                drive.offsets[::-1],
                strict=True,
            ):
                if multiplier != 0.0:
                    result[entry] = (value - offset) / multiplier
        return result

    def speed(self, name: str) -> float:
        """Return the speed of an object's base plus 0.1 m times its angular speed [m/s]."""
        first = self._free_dof(self._object(name))
        velocity = self._data.qvel[first : first + 6]
        return math.hypot(*velocity[:3]) + 0.1 * math.hypot(*velocity[3:])

    def _free_dof(self, body: Body) -> int:
        """Return the index of the first of the six degrees of freedom of an object's base."""
        return int(self._model.body_dofadr[self._ids[body.index]])

    # --- contacts

    def _contacts(self) -> Iterator[tuple[tuple[str, str], float]]:
        """Yield frames and distance of each contact."""
        self._refresh()
        data, body_ids = self._data, self._model.geom_bodyid
        for (first, second), distance in zip(
            data.contact.geom.tolist(), data.contact.dist.tolist(), strict=True
        ):
            first_frame = self._frame_of[int(body_ids[first])]
            second_frame = self._frame_of[int(body_ids[second])]
            yield (first_frame, second_frame), distance

    def touching(self, frame: str) -> tuple[str, ...]:
        """Return the frames in contact with the rigid link that contains ``frame``, sorted."""
        body = self._body(frame)
        link = self._frame_of[int(self._ids[body.links[frame]])]
        pairs = [
            pair for pair, distance in self._contacts() if link in pair and distance <= TOUCHING
        ]
        return tuple(sorted({b if a == link else a for a, b in pairs}))

    def contacts_of(self, frames: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Return the pairs of frames in contact, first those on bodies of ``frames``, sorted."""
        bodies = {id(self._body(frame)) for frame in frames}
        pairs = [
            pair
            for (a, b), distance in self._contacts()
            if distance <= TOUCHING
            for pair in ((a, b), (b, a))
        ]
        return tuple(sorted({pair for pair in pairs if id(self._place[pair[0]]) in bodies}))

    def set_contact(self, name: str, frames: Sequence[str], *, enabled: bool) -> None:
        """Enable or disable collisions of an object or handle with the links of a hand."""
        model, bits = self._model, 0
        for frame in frames:
            is_of_link = model.geom_bodyid == self._ids[self._body(frame).links[frame]]
            bits |= int(np.bitwise_or.reduce(model.geom_contype[is_of_link], initial=0)) & ~1
        body = self._body(name)
        links = set(body.links.values()) if body.kind == "object" else {body.links[name]}
        is_of_object = np.isin(model.geom_bodyid, self._ids[list(links)])
        previous = model.geom_conaffinity[is_of_object]
        model.geom_conaffinity[is_of_object] = previous | bits if enabled else previous & ~bits
        self._is_fresh = False

    def renew_contacts(self, name: str, frames: Sequence[str]) -> None:
        """Do nothing, because MuJoCo computes all contacts in each step."""

    def distance_to(self, name: str, point: ArrayLike, *, reach: float) -> float:
        """Return the signed distance of a point (3,) in the root from an object or handle [m]."""
        self._refresh()
        body, model, data = self._body(name), self._model, self._data
        probe = model.geom("probe").id
        data.geom_xpos[probe] = plain_numbers(point, "point", "m")
        links = sorted(set(body.links.values()) if body.kind == "object" else {body.links[name]})
        geoms = np.flatnonzero(np.isin(model.geom_bodyid, self._ids[links])).tolist()
        distances = [
            self._mujoco.mj_geomDistance(model, data, probe, geom, reach, None) for geom in geoms
        ]
        nearest = min(distances, default=math.inf)
        return math.inf if nearest >= reach else float(nearest) + float(model.geom_size[probe, 0])

    # --- attachments

    def attach(self, name: str, frame: str) -> None:
        """Fix an object or handle to a frame, at its current relative pose."""
        first, second = self._link_of(frame), self._link_of(name)
        if (name, frame) in self._constraints:
            raise SimulationError(f"object '{name}' is attached already", object=name)
        free = sorted(set(range(self._weld_count)) - set(self._constraints.values()))
        if not free:
            raise SimulationError(
                f"object '{name}': more than {self._weld_count} objects are attached", object=name
            )
        self._refresh()
        a_from_b = self._pose_of(first).inverse() @ self._pose_of(second)
        weld = self._model.equality(f"weld {free[0]}").id
        self._model.eq_obj1id[weld], self._model.eq_obj2id[weld] = first, second
        numbers = [0.0, 0.0, 0.0, *a_from_b.translation, *np.roll(a_from_b.quat_xyzw, 1), 1.0]
        self._model.eq_data[weld, : len(numbers)] = numbers
        self._data.eq_active[weld], self._is_fresh = True, False
        self._constraints[name, frame] = free[0]

    def _link_of(self, frame: str) -> int:
        """Return the body index of the link of a frame."""
        return int(self._ids[self._body(frame).links[frame]])

    def _pose_of(self, number: int) -> Pose:
        """Return root_from_body of a body index."""
        return Pose(self._data.xpos[number].copy(), np.roll(self._data.xquat[number], -1))

    def detach(self, name: str, frame: str | None = None) -> None:
        """Remove the constraints of an object, if any."""
        for key in [key for key in self._constraints if key[0] == name and frame in (None, key[1])]:
            weld = self._model.equality(f"weld {self._constraints.pop(key)}").id
            self._data.eq_active[weld], self._is_fresh = False, False

    def load(self, name: str, *, on: str, at: str) -> NDArray[np.float64]:
        """Return force and moment (6,) of an attached object on its parent [N, N m]."""
        reference = self.pose(at).translation
        if (name, on) not in self._constraints:
            raise SimulationError(f"object '{name}' is not attached to '{on}'", object=name)
        force, moment = self._loads.get((name, on), np.zeros((2, 3)))
        lever = self.pose(name).translation - reference
        return np.concatenate([force, moment + np.cross(lever, force)])

    def _load(self, name: str, weld: int) -> NDArray[np.float64]:
        """Return force and moment (2, 3) of an object on its parent, from the last step."""
        body, data = self._body(name), self._data
        rows = np.flatnonzero(
            (data.efc_type == self._mujoco.mjtConstraint.mjCNSTR_EQUALITY)
            & (data.efc_id == self._model.equality(f"weld {weld}").id)
        )
        if body.kind != "object":
            return np.array([data.efc_force[rows[:3]], np.zeros(3)])
        constraint_forces, result = np.zeros(data.nefc), np.zeros(self._model.nv)
        constraint_forces[rows] = data.efc_force[rows]
        self._mujoco.mj_mulJacTVec(self._model, data, result, constraint_forces)
        first = self._free_dof(body)
        force, moment = -result[first : first + 6].reshape(2, 3)
        return np.array([force, data.xmat[self._ids[body.index]].reshape(3, 3) @ moment])

    # --- commands

    def set_configuration(self, q: ArrayLike) -> None:
        """Set all joints to a configuration (n_joints,), at rest, and command it."""
        values = np.array(self._scene.at(q).q, dtype=float)
        self._require_open()
        for drive in self._drives.all:
            self._data.qpos[self._positions[drive.indices]] = drive.positions(values)
            self._data.qvel[self._speeds[drive.indices]] = 0.0
        self._is_fresh = False
        self.command(values)

    def set_object_pose(self, name: str, root_from_object: Pose) -> None:
        """Set the pose of a movable object, with zero velocity."""
        self._require_open()
        body = self._object(name)
        joint, speed = int(self._model.body_jntadr[self._ids[body.index]]), self._free_dof(body)
        place = int(self._model.jnt_qposadr[joint])
        self._data.qpos[place : place + 7] = [
            *root_from_object.translation,
            *np.roll(root_from_object.quat_xyzw, 1),
        ]
        self._data.qvel[speed : speed + 6], self._is_fresh = 0.0, False

    def command(self, q: ArrayLike, velocity: ArrayLike | None = None) -> None:
        """Set the targets of all motors except those of fingers."""
        self._require_open()
        values = plain_numbers(q, "q")
        speeds = np.zeros_like(values) if velocity is None else plain_numbers(velocity, "velocity")
        for drive in self._drives.arms:
            self._set_targets(drive, values, speeds, 1.0)

    def command_fingers(self, q: ArrayLike, *, force: float, arm: str | None = None) -> None:
        """Set the targets and forces of the fingers of an arm."""
        self._require_open()
        values = plain_numbers(q, "q")
        for name in [robot.name for robot in self._robots] if arm is None else [arm]:
            for drive in self._drives.hands[name]:
                self._set_targets(drive, values, np.zeros_like(values), force)

    def _set_targets(
        self, drive: Drive, q: NDArray[np.float64], speeds: NDArray[np.float64], strength: float
    ) -> None:
        """Set position and velocity targets of motors, and their effort limits times a factor."""
        self._goals[drive.indices] = drive.positions(q)
        self._goal_speeds[drive.indices] = drive.velocities(speeds)
        self._limits[drive.indices] = strength * np.array(drive.forces)

    def step(self, count: int = 1) -> None:
        """Run ``count`` time steps."""
        model, data, period = self._model, self._data, self._settings.time_step / SUBSTEPS
        driven = np.flatnonzero(self._limits > 0.0)
        dofs, limits = self._speeds[driven], self._limits[driven]
        is_of_arm = self._is_of_arm[driven]
        # A held object blocks the acceleration of the fingers, which is therefore no load of the
        # arm.
        is_coupled = ~(is_of_arm[:, None] & ~is_of_arm)
        for number in range(count * SUBSTEPS):
            self._refresh()
            self._mujoco.mj_fullM(model, data, self._mass)
            goals = self._goals + (number % SUBSTEPS) * period * self._goal_speeds
            errors = (goals - data.qpos[self._positions])[driven]
            mass = self._mass[np.ix_(dofs, dofs)] * is_coupled
            bias = data.qfrc_bias[dofs] - data.qfrc_passive[dofs]
            # Limit the speed of an arm so that it can brake before its goal.
            available = np.maximum(limits - np.abs(bias), _MIN_AVAILABLE_EFFORT * limits)
            deceleration = _BRAKING_FRACTION * available / np.diag(mass)
            braking_speed = np.sqrt(2.0 * deceleration * np.abs(errors))
            max_speed = np.where(is_of_arm, braking_speed, np.inf)
            corrections = self._settings.position_gain * errors / period
            corrections = np.clip(corrections, -max_speed, max_speed)
            target_speeds = corrections + self._goal_speeds[driven]
            torques = mass @ ((target_speeds - data.qvel[dofs]) / period) + bias
            data.qfrc_applied[dofs] = np.clip(torques, -limits, limits)
            self._mujoco.mj_step2(model, data)
            self._is_fresh = False
        self._loads = {key: self._load(key[0], weld) for key, weld in self._constraints.items()}
        self._steps += count
