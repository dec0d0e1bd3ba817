"""Samplers of grasps and placements, built-in and custom.

A *sampler* is any callable: a :class:`GraspSampler` returns grasps for a :class:`GraspRequest`, a
:class:`PlacementSampler` yields placements for a :class:`PlacementRequest`, best first.
:class:`Samplers` maps objects to samplers::

    samplers = tk.Samplers().with_grasps(by_the_handle, of_class="mug")
    result = tk.plan(scene, domain="blocks", goal="(on a b)", samplers=samplers)

Invariants: one sampler is used for each object, the last registered one that applies. Results are
checked; an invalid result raises a :class:`~tmkit.errors.SamplerError` with the sampler's name.
Grasps of one shape by one hand are computed once a run. Their random generator depends on the seed
and the shape alone, so they do not depend on the order of the calls.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from numbers import Real
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tmkit._support.argument_errors import callable_name, check_argument
from tmkit._support.initialization import initialize
from tmkit._support.time_limits import check_time
from tmkit.errors import (
    ConfigurationError,
    MissingExtraError,
    SamplerError,
    TimeLimitError,
    UnknownNameError,
)
from tmkit.graph import SceneGraph
from tmkit.manipulation.grasps.sampling import Grasp, grasps_of
from tmkit.manipulation.placements.sampling import (
    Placement,
    PlacementSettings,
    placements_in_region,
    placements_on_surface,
)
from tmkit.manipulation.racks import RACK, rack_placements
from tmkit.robots import Manipulator
from tmkit.robots.robot_files import Robot, resolve_robot
from tmkit.spatial import Pose

Configuration = NDArray[np.float64]

_MAX_RESULTS = 10_000
"""Maximum number of grasps or placements from one call of a custom sampler."""

_START_RANK = 4
"""Number of placements before the one at the object's start pose."""

_MAX_DISTANCE = 1.0
"""Largest distance of a tool from its object, or an object from its support, beyond shapes [m]."""


@dataclass(frozen=True, eq=False)
class GraspRequest:
    """Arguments of a grasp sampler.

    Attributes:
        scene: scene with the object.
        object: frame of the object.
        robot: arm with the hand. The constructor also accepts its name.
        rng: random generator, seeded by the plan's seed and the object's shapes.
    """

    scene: SceneGraph
    object: str
    robot: Manipulator
    rng: np.random.Generator

    def __post_init__(self) -> None:
        initialize(self, robot=resolve_robot(self.robot, self.scene, function="GraspRequest"))


@dataclass(frozen=True, eq=False)
class PlacementRequest:
    """Arguments of a placement sampler.

    Attributes:
        scene: scene, in which the object may be in the hand.
        q: (n_joints,) configuration.
        object: frame of the object.
        support: frame of the support: a surface, a region, or another object.
        robot: arm that places the object. The constructor also accepts its name.
        rng: random generator, seeded for this visit of an action.
        is_random: whether to return placements far apart from each other in random order, instead
            of the best ones first.
    """

    scene: SceneGraph
    q: Configuration
    object: str
    support: str
    robot: Manipulator
    rng: np.random.Generator
    is_random: bool = False

    def __post_init__(self) -> None:
        initialize(self, robot=resolve_robot(self.robot, self.scene, function="PlacementRequest"))


class GraspSampler(Protocol):
    """Protocol of functions that sample grasps."""

    def __call__(self, request: GraspRequest, /) -> Iterable[Grasp]:
        """Return finitely many grasps, best first, and the same for equal requests."""
        ...


class PlacementSampler(Protocol):
    """Protocol of functions that sample placements."""

    def __call__(self, request: PlacementRequest, /) -> Iterable[Placement]:
        """Yield placements, best first, and the same for equal requests."""
        ...


def sample_grasps(request: GraspRequest, /) -> tuple[Grasp, ...]:
    """Return the built-in grasps of an object: the default sampler."""
    check_argument(request, GraspRequest, "request", function="sample_grasps")
    return grasps_of(request.scene, request.object, robot=request.robot, rng=request.rng)


def sample_placements(request: PlacementRequest, /) -> Iterator[Placement]:
    """Yield the built-in placements of an object: the default sampler.

    In a region, a frame of class ``region``, placements are packed. On a rack, a frame of class
    ``rack``, the object hangs. On other supports, placements near the object come first.
    """
    check_argument(request, PlacementRequest, "request", function="sample_placements")
    if RACK in request.scene.classes(request.support):
        for pose, name in rack_placements(
            request.scene, request.object, request.support, q=request.q
        ):
            yield Placement(request.support, pose, name)
        return
    is_region = "region" in request.scene.classes(request.support)
    yield from (placements_in_region if is_region else placements_on_surface)(
        request.scene,
        request.object,
        request.support,
        q=request.q,
        rng=request.rng,
        robot=request.robot,
        settings=PlacementSettings(is_packed=is_region, is_random=request.is_random),
    )


_Sampler = TypeVar("_Sampler")


@dataclass(frozen=True)
class _Rule(Generic[_Sampler]):
    """A sampler with the objects and supports to which it applies, None for all."""

    sampler: _Sampler
    of_class: str | None
    of_kind: str | None
    on_class: str | None = None
    of_frame: str | None = None

    def applies(self, scene: SceneGraph, object: str, support: str | None = None) -> bool:
        """Return whether the rule applies to an object on a support."""
        if self.of_frame is not None and self.of_frame != object:
            return False
        if self.of_class is not None and self.of_class not in scene.classes(object):
            return False
        if self.on_class is not None and (
            support is None or self.on_class not in scene.classes(support)
        ):
            return False
        kinds = (attached.shape.kind for attached in scene.shapes(object) if attached.collision)
        return self.of_kind is None or self.of_kind in kinds


@dataclass(frozen=True)
class Samplers:
    """Mapping from objects to samplers, a value.

    ``Samplers()`` contains the built-in samplers alone.
    """

    _grasps: tuple[_Rule[GraspSampler], ...] = ()
    _placements: tuple[_Rule[PlacementSampler], ...] = ()

    def with_grasps(
        self,
        sampler: GraspSampler,
        *,
        of_class: str | None = None,
        of_kind: str | None = None,
        of_frame: str | None = None,
    ) -> Samplers:
        """Return samplers in which one more grasp sampler is registered.

        Args:
            sampler: grasp sampler.
            of_class: class of the objects' frames. Defaults to any.
            of_kind: kind (``"box"``, ``"mesh"``, ...) of one of the objects' collision shapes.
                Defaults to any.
            of_frame: frame of the object. Defaults to any.

        Raises:
            ConfigurationError: if the sampler is not callable.
        """
        rule = _Rule(_require_callable(sampler), of_class, of_kind, of_frame=of_frame)
        return replace(self, _grasps=(rule, *self._grasps))

    def with_placements(
        self,
        sampler: PlacementSampler,
        *,
        of_class: str | None = None,
        of_kind: str | None = None,
        on_class: str | None = None,
    ) -> Samplers:
        """Return samplers in which one more placement sampler is registered.

        Args:
            sampler: placement sampler.
            of_class: class of the objects' frames. Defaults to any.
            of_kind: kind of one of the objects' collision shapes. Defaults to any.
            on_class: class of the supports' frames. Defaults to any.

        Raises:
            ConfigurationError: if the sampler is not callable.
        """
        rule = _Rule(_require_callable(sampler), of_class, of_kind, on_class)
        return replace(self, _placements=(rule, *self._placements))

    def grasp_sampler(self, scene: SceneGraph, object: str) -> GraspSampler:
        """Return the grasp sampler of an object, by default the built-in one.

        Args:
            scene: scene with the object.
            object: frame of the object.
        """
        samplers = (rule.sampler for rule in self._grasps if rule.applies(scene, object))
        return next(samplers, sample_grasps)

    def placement_sampler(self, scene: SceneGraph, object: str, support: str) -> PlacementSampler:
        """Return the placement sampler of an object on a support, by default the built-in one.

        Args:
            scene: scene with the object.
            object: frame of the object.
            support: frame of the support.
        """
        rules = (rule for rule in self._placements if rule.applies(scene, object, support))
        return next((rule.sampler for rule in rules), sample_placements)


@dataclass(frozen=True, eq=False)
class SeededSamplers:
    """Samplers of one planning run, with its seed and a cache of grasps.

    Attributes:
        samplers: mapping from objects to samplers.
        robot: first arm. The constructor also accepts its name.
        seed: seed of the run, at least 0.
        is_random: whether placements are in random order; see :class:`PlacementRequest`.
        arranged: placements by object and support, which replace those of the sampler.
        start: scene at the start of the run. An object's start pose is a placement that the arm
            can often reach. None if there is no such scene.
        run_data: data of other packages, kept until the end of the run.
    """

    samplers: Samplers
    robot: Manipulator
    seed: int = 0
    is_random: bool = False
    arranged: Mapping[tuple[str, str], Placement] = field(default_factory=dict, repr=False)
    start: SceneGraph | None = None
    run_data: dict[object, object] = field(default_factory=dict, repr=False)
    _grasp_cache: dict[tuple[object, ...], tuple[Grasp, ...]] = field(
        default_factory=dict, repr=False
    )

    def __post_init__(self) -> None:
        initialize(self, robot=resolve_robot(self.robot, function="SeededSamplers"))

    def shared_value(self, key: object, create: Callable[[], object]) -> object:
        """Return a value that is created at the first call and kept until the end of the run.

        Args:
            key: key of the value.
            create: function that returns a new value.
        """
        if key not in self.run_data:
            self.run_data[key] = create()
        return self.run_data[key]

    def grasps(
        self, scene: SceneGraph, object: str, *, robot: Robot | None = None
    ) -> tuple[Grasp, ...]:
        """Return the grasps of an object, best first; none for an arm without a gripper.

        Grasps are computed once for equal objects, or equal shapes with the built-in sampler.

        Args:
            scene: scene with the object.
            object: frame of the object.
            robot: name or description of the arm with the hand. Defaults to the first arm.

        Raises:
            SamplerError: if the sampler fails, or returns an invalid grasp for this hand.
            SceneError: if the object has no collision shape.
            UnknownNameError: if the frame is unknown.
        """
        sampler = self.samplers.grasp_sampler(scene, object)
        shapes = tuple(attached for attached in scene.shapes(object) if attached.collision)
        arm = self.robot
        if robot is not None:
            arm = resolve_robot(robot, scene, function="grasps")
        if arm.gripper_kind == "none":
            return ()
        is_built_in = sampler is sample_grasps
        key: tuple[Any, ...] = (sampler, arm.name, scene.extract(object))
        if is_built_in:
            # The built-in grasps do not depend on colours or other properties of the frame.
            inertia = scene.inertia(object)
            solids = tuple((attached.shape, attached.pose, attached.level) for attached in shapes)
            mass = () if inertia is None else (inertia.mass, *inertia.center.tolist())
            key = (sampler, arm.name, solids, mass)
        if key not in self._grasp_cache:
            content = "".join(attached.shape.digest for attached in shapes)
            digest = int.from_bytes(hashlib.sha256(content.encode()).digest()[:8], "little")
            request = GraspRequest(scene, object, arm, np.random.default_rng((self.seed, digest)))
            results = _call_sampler(sampler, request, f"for '{object}'", is_built_in=is_built_in)
            radius = math.inf if is_built_in else _radius(scene, object)
            checked = (_check_grasp(grasp, sampler, object, arm, radius) for grasp in results)
            grasps = tuple(islice(checked, _MAX_RESULTS + 1))
            if len(grasps) > _MAX_RESULTS:
                raise _error(sampler, f"returns more than {_MAX_RESULTS} grasps of '{object}'")
            self._grasp_cache[key] = grasps
        return self._grasp_cache[key]

    def placements(
        self,
        scene: SceneGraph,
        object: str,
        support: str,
        *,
        q: Configuration,
        rng: np.random.Generator,
        robot: Robot | None = None,
    ) -> Iterator[Placement]:
        """Yield placements of an object on a support, best first.

        Args:
            scene: scene with object and support.
            object: frame of the object.
            support: frame of a surface, a region or another object.
            q: (n_joints,) configuration.
            rng: random generator of this visit.
            robot: name or description of the arm that places the object. Defaults to the first arm.

        Raises:
            SamplerError: if the sampler fails, or yields an invalid placement.
            SceneError: if the support has no level top, or the object has no stable face.
            UnknownNameError: if a frame is unknown.
        """
        if (object, support) in self.arranged:
            yield self.arranged[object, support]
            return
        sampler = self.samplers.placement_sampler(scene, object, support)
        arm = self.robot
        if robot is not None:
            arm = resolve_robot(robot, scene, function="placements")
        request = PlacementRequest(scene, q, object, support, arm, rng, self.is_random)
        label = f"for '{object}' on '{support}'"
        is_built_in = sampler is sample_placements
        results = _call_sampler(sampler, request, label, is_built_in=is_built_in)
        if is_built_in:
            yield from self._insert_start_pose(results, scene, object, support)
            return
        radii: dict[str, float] = {}
        object_frames = scene.subtree(object)
        for result in islice(results, _MAX_RESULTS):
            check_time()
            placement = _check_placement(result, sampler, scene, label)
            frame = placement.support
            if frame in object_frames:
                reason = f"on '{frame}', which moves with the object"
                raise _error(sampler, f"returns a placement {label} {reason}")
            if frame not in radii:
                radii[frame] = _radius(scene, frame) + _radius(scene, object)
            distance = _norm(placement.support_from_object)
            if distance > radii[frame] + _MAX_DISTANCE:
                reason = f"that is {distance:.3g} m away from '{frame}'"
                raise _error(sampler, f"returns a placement {label} {reason}")
            yield placement

    def _insert_start_pose(
        self, placements: Iterator[Placement], scene: SceneGraph, object: str, support: str
    ) -> Iterator[Placement]:
        """Yield placements, with the object's start pose after the first four on a surface."""
        is_surface = "region" not in scene.classes(support)
        has_start = is_surface and self.start is not None and self.start.parent(object) == support
        for number, placement in enumerate(placements, 1):
            yield placement
            if number == _START_RANK and has_start and self.start is not None:
                yield Placement(support, self.start.local_pose(object), "where it was at the start")


_Request = TypeVar("_Request")
_Value = TypeVar("_Value")


def _call_sampler(
    sampler: Callable[[_Request], Iterable[_Value]],
    request: _Request,
    label: str,
    *,
    is_built_in: bool,
) -> Iterator[_Value]:
    """Yield the results of a sampler.

    Args:
        sampler: sampler of grasps or placements.
        request: arguments of the sampler.
        label: object and support, for messages.
        is_built_in: whether the sampler is built in, so that its errors are not converted.

    Raises:
        SamplerError: if a custom sampler raises an error.
    """
    try:
        yield from sampler(request)
    except (TimeLimitError, MissingExtraError, MemoryError):
        raise
    except Exception as error:
        if is_built_in:
            raise
        raise _error(sampler, f"fails {label}: {type(error).__name__}: {error}") from error


def _check_grasp(
    grasp: object, sampler: GraspSampler, object: str, robot: Manipulator, radius: float
) -> Grasp:
    """Return a grasp from a sampler, if it is valid.

    Args:
        grasp: result of the sampler.
        sampler: grasp sampler.
        object: frame of the object.
        robot: arm with the hand.
        radius: radius of the object [m].

    Raises:
        SamplerError: if the grasp is invalid for this object or hand.
    """
    if not isinstance(grasp, Grasp) or not isinstance(grasp.object_from_tool, Pose):
        raise _error(sampler, f"returns {grasp!r} for '{object}', which is not a Grasp")
    prefix = f"returns a grasp of '{object}'"
    if isinstance(grasp.width, bool) or not isinstance(grasp.width, Real):
        raise _error(sampler, f"{prefix} whose width is {grasp.width!r}, which is not a number")
    if not _is_finite(grasp.object_from_tool) or not math.isfinite(grasp.width):
        raise _error(sampler, f"{prefix} with numbers that are not finite: {grasp!r}")
    distance = _norm(grasp.object_from_tool)
    if distance > radius + _MAX_DISTANCE:
        raise _error(sampler, f"{prefix} with the tool {distance:.3g} m away from the object")
    if robot.is_two_fingered:
        low, high = robot.width_closed, robot.width_open
        if not low <= grasp.width <= high:
            opening = f"the hand of '{robot.name}' opens from {low:g} to {high:g} m"
            raise _error(sampler, f"{prefix} that is {grasp.width:g} m wide, but {opening}")
    return grasp


def _check_placement(
    placement: object, sampler: PlacementSampler, scene: SceneGraph, label: str
) -> Placement:
    """Return a placement from a sampler, if it is valid.

    Args:
        placement: result of the sampler.
        sampler: placement sampler.
        scene: scene with the support.
        label: object and support, for messages.

    Raises:
        SamplerError: if the placement is invalid in this scene.
    """
    if not isinstance(placement, Placement) or not isinstance(placement.support_from_object, Pose):
        raise _error(sampler, f"returns {placement!r} {label}, which is not a Placement")
    prefix = f"returns a placement {label}"
    if not isinstance(placement.support, str) or placement.support not in scene:
        unknown = UnknownNameError.of("frame", str(placement.support), scene.frame_names)
        raise _error(sampler, f"{prefix} on an {unknown.message}")
    if not _is_finite(placement.support_from_object):
        raise _error(sampler, f"{prefix} with numbers that are not finite: {placement!r}")
    return placement


def _norm(pose: Pose) -> float:
    """Return the length of a pose's translation [m]."""
    return math.hypot(*pose.translation.tolist())


def _radius(scene: SceneGraph, frame: str) -> float:
    """Return the radius of a ball around a frame that contains all shapes of its subtree [m]."""
    radius = 0.0
    for name in scene.subtree(frame):
        distance = _norm(scene.pose(name, relative_to=frame, q=scene.zero_configuration()))
        for attached in scene.shapes(name):
            corners = np.abs(np.array(attached.shape.bounds)).max(axis=0)
            shape_radius = math.hypot(*corners.tolist())
            radius = max(radius, distance + _norm(attached.pose) + shape_radius)
    return radius


def _is_finite(pose: Pose) -> bool:
    """Return whether all numbers of a pose are finite."""
    return bool(np.all(np.isfinite(pose.as_array())))


def _require_callable(sampler: _Sampler) -> _Sampler:
    """Return a sampler.

    Raises:
        ConfigurationError: if it is not callable.
    """
    if not callable(sampler):
        raise ConfigurationError(f"expected a callable as sampler, got {sampler!r}")
    return sampler


def _error(sampler: object, fault: str) -> SamplerError:
    """Return the error for a fault of a sampler."""
    name = callable_name(sampler)
    return SamplerError(f"sampler '{name}' {fault}", sampler=name)
