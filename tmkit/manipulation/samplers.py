"""Samplers: samplers of grasps and placements, and how to put one's own in their place.

A *sampler* is any callable: a :class:`GraspSampler` gives grasps for a :class:`GraspRequest`, a
:class:`PlacementSampler` placements for a :class:`PlacementRequest`, best first. :class:`Samplers`
says which one is asked for which object::

    samplers = tk.Samplers().with_grasps(by_the_handle, of_class="mug")
    result = tk.plan(scene, domain="blocks", goal="(on a b)", samplers=samplers)

Invariants: what is asked last registered first, and only one is asked. What a sampler gives is
checked; nonsense is a :class:`~tmkit.errors.SamplerError` that names the sampler. Grasps of one
shape by one hand are computed once a run, with a generator that depends on the seed and the shape
alone, so they do not depend on the order of the calls.
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

from tmkit._support.argument_errors import callable_name
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
from tmkit.spatial import Pose

Configuration = NDArray[np.float64]

_MOST = 10_000  # grasps or placements that a sampler of the user is asked for at once
_BEFORE_START = 4  # places that are tried before the one where an object was at the start
# metres beyond their shapes from which a tool is not at an object, and an object not on its support
_FAR = 1.0


@dataclass(frozen=True, eq=False)
class GraspRequest:
    """What a grasp sampler is asked.

    Attributes:
        scene: the scene with the object.
        object: frame of the object.
        manipulator: the arm whose hand grasps.
        rng: random generator, seeded by the plan's seed and the object's shapes.
    """

    scene: SceneGraph
    object: str
    manipulator: Manipulator
    rng: np.random.Generator


@dataclass(frozen=True, eq=False)
class PlacementRequest:
    """What a placement sampler is asked.

    Attributes:
        scene: the scene; the object may be in the hand.
        q: (n_joints,) configuration.
        object: frame of the object.
        support: frame to put it on: a surface, a region, or another object.
        manipulator: the arm that puts it there.
        rng: random generator, seeded for this visit of an action.
        is_random: whether placements far apart from each other are wanted, in random order, not the
            best ones first.
    """

    scene: SceneGraph
    q: Configuration
    object: str
    support: str
    manipulator: Manipulator
    rng: np.random.Generator
    is_random: bool = False


class GraspSampler(Protocol):
    """Proposes grasps; a function of this signature is one."""

    def __call__(self, request: GraspRequest, /) -> Iterable[Grasp]:
        """Return finitely many grasps, best first; the same for equal requests."""
        ...


class PlacementSampler(Protocol):
    """Proposes placements; a function of this signature is one."""

    def __call__(self, request: PlacementRequest, /) -> Iterable[Placement]:
        """Yield placements, best first; the same for equal requests."""
        ...


def sample_grasps(request: GraspRequest, /) -> tuple[Grasp, ...]:
    """Return the built-in grasps of an object: the default sampler."""
    return grasps_of(
        request.scene, request.object, manipulator=request.manipulator, rng=request.rng
    )


def sample_placements(request: PlacementRequest, /) -> Iterator[Placement]:
    """Yield the built-in placements: packed in a region, else near the current pose of the object, or on a rack.

    A region is a frame of class ``region``, a rack one of class ``rack``.
    """
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
        manipulator=request.manipulator,
        settings=PlacementSettings(is_packed=is_region, is_random=request.is_random),
    )


_Sampler = TypeVar("_Sampler")


@dataclass(frozen=True)
class _Rule(Generic[_Sampler]):
    """For which objects a sampler is asked; None where anything will do."""

    sampler: _Sampler
    of_class: str | None
    of_kind: str | None
    on_class: str | None = None

    def fits(self, scene: SceneGraph, object: str, support: str | None = None) -> bool:
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
    """Which sampler is asked for which object; a value.

    ``Samplers()`` holds the samplers of this package alone.
    """

    _grasps: tuple[_Rule[GraspSampler], ...] = ()
    _placements: tuple[_Rule[PlacementSampler], ...] = ()

    def with_grasps(
        self, sampler: GraspSampler, *, of_class: str | None = None, of_kind: str | None = None
    ) -> Samplers:
        """Return a registry in which a sampler is asked for the grasps of some objects.

        Args:
            sampler: the sampler.
            of_class: the class that the object's frame must have; by default any.
            of_kind: the kind (``"box"``, ``"mesh"``, ...) that one of its collision shapes must
                have; by default any.

        Raises:
            ConfigurationError: the sampler cannot be called.
        """
        return replace(self, _grasps=(_Rule(_callable(sampler), of_class, of_kind), *self._grasps))

    def with_placements(
        self,
        sampler: PlacementSampler,
        *,
        of_class: str | None = None,
        of_kind: str | None = None,
        on_class: str | None = None,
    ) -> Samplers:
        """Return a registry in which a sampler is asked for the placements of some objects.

        Args:
            sampler: the sampler.
            of_class: the class that the object's frame must have; by default any.
            of_kind: the kind that one of its collision shapes must have; by default any.
            on_class: the class that the support must have; by default any.

        Raises:
            ConfigurationError: the sampler cannot be called.
        """
        return replace(
            self,
            _placements=(_Rule(_callable(sampler), of_class, of_kind, on_class), *self._placements),
        )

    def grasp_sampler(self, scene: SceneGraph, object: str) -> GraspSampler:
        """Return the sampler of an object's grasps: that of the first rule that applies, or else the default.

        Args:
            scene: the scene.
            object: the object.
        """
        return next(
            (rule.sampler for rule in self._grasps if rule.fits(scene, object)), sample_grasps
        )

    def placement_sampler(self, scene: SceneGraph, object: str, support: str) -> PlacementSampler:
        """Return the sampler of an object's placements: that of the first rule that applies, or else the default.

        Args:
            scene: the scene.
            object: the object.
            support: the support.
        """
        found = (rule.sampler for rule in self._placements if rule.fits(scene, object, support))
        return next(found, sample_placements)


@dataclass(frozen=True, eq=False)
class SeededSamplers:
    """The samplers at work in one planning run.

    Attributes:
        samplers: which sampler is asked for which object.
        manipulator: the arm, of several the first.
        seed: seed of the run, at least 0.
        is_random: whether placements are scattered; see :class:`PlacementRequest`.
        arranged: placements, by object and support, that are used in place of those of the sampler.
        start: scene at the start of the run, in which the arm reaches the objects that it picks;
            None for none.
    """

    samplers: Samplers
    manipulator: Manipulator
    seed: int = 0
    is_random: bool = False
    arranged: Mapping[tuple[str, str], Placement] = field(default_factory=dict, repr=False)
    start: SceneGraph | None = None
    _known: dict[tuple[object, ...], tuple[Grasp, ...]] = field(default_factory=dict, repr=False)

    def grasps(
        self, scene: SceneGraph, object: str, *, manipulator: Manipulator | None = None
    ) -> tuple[Grasp, ...]:
        """Return the grasps of an object, best first; computed once for the same object (or shape, by our sampler).

        Args:
            scene: the scene with the object.
            object: frame of the object.
            manipulator: the arm whose hand grasps, when it is not the first.

        Raises:
            SamplerError: the sampler fails, or gives what is no grasp for this hand.
            SceneError: the object has no shape to grasp it by.
            UnknownNameError: no such frame.
        """
        sampler = self.samplers.grasp_sampler(scene, object)
        shapes = tuple(attached for attached in scene.shapes(object) if attached.collision)
        arm = manipulator or self.manipulator
        key: tuple[Any, ...] = (sampler, arm.name, scene.extract(object))
        if sampler is sample_grasps:
            inertia = scene.inertia(object)
            # of any colour
            solids = tuple((attached.shape, attached.pose, attached.level) for attached in shapes)
            key = (
                sampler,
                arm.name,
                solids,
                () if inertia is None else (inertia.mass, *inertia.center.tolist()),
            )
        if key not in self._known:
            content = "".join(attached.shape.digest for attached in shapes)
            digest = int.from_bytes(hashlib.sha256(content.encode()).digest()[:8], "little")
            request = GraspRequest(scene, object, arm, np.random.default_rng((self.seed, digest)))
            is_ours = sampler is sample_grasps
            found = _asked(sampler, request, f"for '{object}'", is_ours=is_ours)
            radius = math.inf if is_ours else _radius(scene, object)
            grasps = tuple(
                islice(
                    (_checked_grasp(grasp, sampler, object, arm, radius) for grasp in found),
                    _MOST + 1,
                )
            )
            if len(grasps) > _MOST:
                raise _error(sampler, f"gives more than {_MOST} grasps of '{object}'")
            self._known[key] = grasps
        return self._known[key]

    def placements(
        self,
        scene: SceneGraph,
        object: str,
        support: str,
        *,
        q: Configuration,
        rng: np.random.Generator,
        manipulator: Manipulator | None = None,
    ) -> Iterator[Placement]:
        """Yield placements of an object on a support, best first.

        Args:
            scene: the scene.
            object: frame of the object.
            support: frame of a surface, a region or another object.
            q: (n_joints,) configuration.
            rng: generator of this visit.
            manipulator: the arm that puts it there, when it is not the first.

        Raises:
            SamplerError: the sampler fails, or gives what is no placement.
            SceneError: the support has nothing to rest on, or the object cannot rest.
            UnknownNameError: no such frame.
        """
        if (object, support) in self.arranged:
            yield self.arranged[object, support]
            return
        sampler = self.samplers.placement_sampler(scene, object, support)
        request = PlacementRequest(
            scene, q, object, support, manipulator or self.manipulator, rng, self.is_random
        )
        what = f"for '{object}' on '{support}'"
        is_ours = sampler is sample_placements
        found = _asked(sampler, request, what, is_ours=is_ours)
        if is_ours:
            yield from self._with_start(found, scene, object, support)
            return
        radii: dict[str, float] = {}
        carried = scene.subtree(object)
        for placement in islice(found, _MOST):
            check_time()
            checked = _checked_placement(placement, sampler, scene, what)
            on = checked.support
            if on in carried:
                raise _error(
                    sampler, f"gives a placement {what} on '{on}', which moves with the object"
                )
            if on not in radii:
                radii[on] = _radius(scene, on) + _radius(scene, object)
            far = _norm(checked.support_from_object)
            if far > radii[on] + _FAR:
                raise _error(
                    sampler, f"gives a placement {what} that is {far:.3g} m away from '{on}'"
                )
            yield checked

    def _with_start(
        self, placements: Iterator[Placement], scene: SceneGraph, object: str, support: str
    ) -> Iterator[Placement]:
        """Yield placements, after the first of which comes the one where the object was at the start, on a surface."""
        is_surface = "region" not in scene.classes(support)
        has_start = is_surface and self.start is not None and self.start.parent(object) == support
        for number, placement in enumerate(placements, 1):
            yield placement
            if number == _BEFORE_START and has_start and self.start is not None:
                yield Placement(support, self.start.local_pose(object), "where it was at the start")


_Request = TypeVar("_Request")
_Value = TypeVar("_Value")


def _asked(
    sampler: Callable[[_Request], Iterable[_Value]], request: _Request, what: str, *, is_ours: bool
) -> Iterator[_Value]:
    """Yield what a sampler gives, its own failures made errors that name it."""
    try:
        yield from sampler(request)
    except (TimeLimitError, MissingExtraError, MemoryError):
        raise
    except Exception as error:
        if is_ours:
            raise
        raise _error(sampler, f"fails {what}: {type(error).__name__}: {error}") from error


def _checked_grasp(
    grasp: object, sampler: GraspSampler, object: str, manipulator: Manipulator, radius: float
) -> Grasp:
    if not isinstance(grasp, Grasp) or not isinstance(grasp.object_from_tool, Pose):
        raise _error(sampler, f"gives {grasp!r} for '{object}', which is no Grasp")
    if isinstance(grasp.width, bool) or not isinstance(grasp.width, Real):
        raise _error(
            sampler,
            f"gives a grasp of '{object}' whose width is {grasp.width!r}, which is no number",
        )
    if not _is_finite(grasp.object_from_tool) or not math.isfinite(grasp.width):
        raise _error(
            sampler, f"gives a grasp of '{object}' with numbers that are not finite: {grasp!r}"
        )
    if _norm(grasp.object_from_tool) > radius + _FAR:
        far = f"{_norm(grasp.object_from_tool):.3g} m away from the object"
        raise _error(sampler, f"gives a grasp of '{object}' with the tool {far}")
    if manipulator.gripper_kind == "parallel":
        low, high = manipulator.width_closed, manipulator.width_open
        if not low <= grasp.width <= high:
            opening = f"the hand of '{manipulator.name}' opens from {low:g} to {high:g} m"
            raise _error(
                sampler,
                f"gives a grasp of '{object}' that is {grasp.width:g} m wide, but {opening}",
            )
    return grasp


def _checked_placement(
    placement: object, sampler: PlacementSampler, scene: SceneGraph, what: str
) -> Placement:
    if not isinstance(placement, Placement) or not isinstance(placement.support_from_object, Pose):
        raise _error(sampler, f"gives {placement!r} {what}, which is no Placement")
    if not isinstance(placement.support, str) or placement.support not in scene:
        unknown = UnknownNameError.of("frame", str(placement.support), scene.frame_names)
        raise _error(sampler, f"gives a placement {what} on an {unknown.message}")
    if not _is_finite(placement.support_from_object):
        raise _error(
            sampler, f"gives a placement {what} with numbers that are not finite: {placement!r}"
        )
    return placement


def _norm(pose: Pose) -> float:
    return math.hypot(*pose.translation.tolist())


def _radius(scene: SceneGraph, frame: str) -> float:
    """Return a distance from a frame within which all of its shapes are, and those of frames that move with it."""
    reach = 0.0
    for name in scene.subtree(frame):
        away = scene.pose(name, relative_to=frame, q=scene.zero_configuration())
        for attached in scene.shapes(name):
            corners = np.abs(np.array(attached.shape.bounds)).max(axis=0)
            reach = max(reach, _norm(away) + _norm(attached.pose) + math.hypot(*corners.tolist()))
    return reach


def _is_finite(pose: Pose) -> bool:
    return bool(np.all(np.isfinite(pose.as_array())))


def _callable(sampler: _Sampler) -> _Sampler:
    if not callable(sampler):
        raise ConfigurationError(
            f"a sampler is something to call with a request, which {sampler!r} is not"
        )
    return sampler


def _error(sampler: object, what: str) -> SamplerError:
    name = callable_name(sampler)
    return SamplerError(f"sampler '{name}' {what}", sampler=name)
