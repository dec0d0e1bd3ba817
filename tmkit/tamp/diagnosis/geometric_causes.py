"""Geometric causes of many failures at once.

A list of what failed how often leaves the user to guess. Two things that explain whole lists can be asked of geometry,
each by a question that leaves the rest of the problem out:

* *No room for the hand*: is there any grasp of an object at which the open hand alone, there or on its straight way
  there, is clear of what never moves? If not, no configuration of the arm takes the object with these grasps where it
  stands: that is proved, since the arm only adds obstacles. Where it holds of the convex hulls of meshes alone, and not
  of the meshes themselves, it explains why the search found nothing and is no proof; the sentence says so.
* *No way from the start*: does the arm get from where it starts to configurations drawn from all that it can do? If it
  reaches few of them, it is enclosed, and what encloses it is what stands on the straight ways there. This is no proof:
  it rests on searches with a budget.

Invariants: causes are sentences without a full stop; they depend on the scene, the seed and the log, and on no clock.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit.graph import Continuous, Prismatic, SceneGraph
from tmkit.manipulation.actions.pick_place import ArmMotion
from tmkit.manipulation.grasps.hand import yaw_pitch_roll
from tmkit.manipulation.grasps.sampling import Grasp
from tmkit.manipulation.samplers import Sampling
from tmkit.motion import CollisionRules, CollisionWorld, MotionPlanner, PathQuery, PathStatus
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.mechanisms import moved_frames
from tmkit.spatial import Pose
from tmkit.tamp.refinement_tree import FailureLog, RefinementNode

_TARGETS = 16  # configurations to which ways are searched
_DRAWN = 400  # configurations that are drawn for that at most, to find so many that are free
_FEW = 0.5  # share of them below which the arm counts as enclosed
_NAMED = 4  # bodies that are named
_STEPS = 9  # poses of the hand on its straight way
_OBJECTS = 3  # objects of which it is asked whether the hand has room
_PREFIX = "alone"


def find_causes(
    scene: SceneGraph, q: Configuration, *, log: FailureLog, roots: Sequence[RefinementNode],
    arms: Mapping[str, ArmMotion], sampling: Sampling, seed: int, is_over: Callable[[], bool],
    wanted: Collection[str] = (),
) -> tuple[str, ...]:  # fmt: skip
    """Return what explains many failures of a run at once.

    Args:
        scene: the scene at the start.
        q: (n_joints,) configuration at the start.
        log: what failed.
        roots: the roots of the refinement trees.
        arms: the arms by name, the first first.
        sampling: the grasp sampler.
        seed: makes it repeatable.
        is_over: tells whether the time is up; then no paths are searched.
        wanted: objects that the goal names, of which causes are found first.
    """
    first = next(iter(arms))
    found: list[str | None] = []
    for object, robot in failing_objects(log, scene, wanted):
        arm = arms[robot or first]
        grasps = sampling.grasps(scene, object, manipulator=arm.manipulator)
        approach = arm.pieces.budget.approach
        found.append(no_room_for_hand(scene, q, object, grasps=grasps, manipulator=arm.manipulator, approach=approach))
    expansions = [expansion for root in roots for expansion in root.expansions.values()]
    records = [record for expansion in expansions for record in expansion.failures if record.failure.is_of_way]
    if not any(expansion.children for expansion in expansions):
        for robot in dict.fromkeys(record.arm or first for record in records):
            pieces = arms[robot].pieces
            if not is_over():
                found.append(
                    enclosed_arm(
                        scene, q, rules=pieces.rules, motion_planner=pieces.motion_planner,
                        max_iterations=pieces.budget.path_iterations, seed=seed,
                    )
                )  # fmt: skip
    return tuple(cause for cause in found if cause is not None)


def failing_objects(log: FailureLog, scene: SceneGraph, wanted: Collection[str]) -> list[tuple[str, str | None]]:
    """Return objects whose handling failed where they stood, with the arm; three at most, wanted and most often first.

    Args:
        log: what failed.
        scene: the scene at the start.
        wanted: objects that the goal names.
    """
    counts = Counter[tuple[str, str | None]]()
    movable = movable_frames(scene)
    for key, record in log.records.items():
        object = record.object
        if object in movable and record.scene.parent(object) == scene.parent(object):
            counts[object, record.arm] += log.counts[key]
    ordered = sorted(counts, key=lambda pair: (pair[0] not in wanted, -counts[pair], pair[0], pair[1] or ""))
    return ordered[:_OBJECTS]


def no_room_for_hand(
    scene: SceneGraph, q: Configuration, object: str, *, grasps: Sequence[Grasp], manipulator: Manipulator,
    approach: float,
) -> str | None:  # fmt: skip
    """Return why no grasp of an object at its current pose has room for the open hand; None if one has.

    It says "whatever the arm does" only where that holds of the meshes themselves, not of their convex hulls alone.

    Args:
        scene: the scene.
        q: (n_joints,) configuration.
        object: frame of the object.
        grasps: its grasps.
        manipulator: the arm.
        approach: metres of the straight way to a grasp.
    """
    chain = [*reversed(scene.ancestors(manipulator.tool)), manipulator.tool]
    links = [frame for frame in chain if scene.joint(frame).name in manipulator.joints]
    if not grasps or not links or not _is_still(scene, object):
        return None
    made = _with_free_hand(scene, links[0], manipulator)
    if made is None:
        return None
    free, tip_from_tool = made
    root_from_object = scene.pose(object, relative_to=scene.root(object), q=q)
    bodies = Counter[str]()
    hand = set(free.subtree(_JOINTS[-1]))
    pairs = CollisionWorld(free).pairs
    still = {frame for frame in free.frame_names if frame not in hand and _is_still(free, frame)}
    margins = {(a, b): -math.inf for a, b, _ in pairs if not ({a, b} & hand and {a, b} & still)}
    hulls, meshes = (CollisionWorld(free, pair_margins=margins, level=level) for level in ("hull", "exact"))
    fixed = {
        joint: float(value) for joint, value in zip(scene.joint_names, q, strict=True) if joint in free.joint_names
    }
    with_room = 0
    for grasp in grasps:
        rows = []
        for back in np.linspace(0.0, approach, _STEPS):
            pose = root_from_object @ grasp.object_from_tool @ Pose([0.0, 0.0, -back]) @ tip_from_tool.inverse()
            values = dict(zip(_JOINTS, [*pose.translation, *yaw_pitch_roll(pose.rotation)], strict=True))
            rows.append(free.configuration({**fixed, **values, **dict(manipulator.gripper_open)}))
        met = hulls.contacts_batch(np.array(rows))
        first = next((contacts for contacts in met if contacts), None)
        if first is None:
            return None
        with_room += not np.any(meshes.in_collision_batch(np.array(rows)))
        bodies.update({frame for contact in first for frame in (contact.frame_a, contact.frame_b)} - hand)
    support = scene.parent(object)
    if len(bodies) > 1 and support in bodies:
        del bodies[support]
    tried = (
        f"all {len(grasps)} grasps of '{object}' collide" if len(grasps) > 1 else f"the grasp of '{object}' collides"
    )
    moves = "moves" if len(bodies) == 1 else "move"
    always = "" if with_room else f", in every configuration of '{manipulator.name}'"
    hulls_only = f"; {with_room} would have room if meshes were not checked as their convex hulls" if with_room else ""
    return (
        f"{tried} with {_named(bodies)}, which never {moves}: the open hand alone collides, at the grasp or on its "
        f"straight approach{always}{hulls_only}"
    )


_JOINTS = tuple(f"{_PREFIX}/{name}" for name in ("x", "y", "z", "yaw", "pitch", "roll"))
_AXES = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 1), (0, 1, 0), (1, 0, 0))


def _is_still(scene: SceneGraph, frame: str) -> bool:
    """Return whether no joint moves a frame."""
    return all(scene.joint(above).type in ("fixed", "free") for above in (frame, *scene.ancestors(frame)))


def _with_free_hand(scene: SceneGraph, first_link: str, manipulator: Manipulator) -> tuple[SceneGraph, Pose] | None:
    """Return what never moves, with the hand on six joints of its own, and tip_from_tool; None for one without shapes.

    Args:
        scene: the scene.
        first_link: the first frame that the arm moves.
        manipulator: the arm.
    """
    hand, root = scene.extract(manipulator.tip), scene.root(first_link)
    for frame in movable_frames(hand):
        if frame in hand and frame != manipulator.tip:
            hand = hand.remove_frame(frame, subtree=True)
    if not any(attached.collision for frame in hand.frame_names for attached in hand.shapes(frame)):
        return None
    tip_from_tool = hand.pose(manipulator.tool, relative_to=manipulator.tip, q=hand.zero_configuration())
    still = scene.remove_frame(first_link, subtree=True)
    for frame in movable_frames(still):
        still = still.set_shapes(frame, ())
    above = root
    for name, axis in zip(_JOINTS, _AXES, strict=True):
        joint = Prismatic(axis, name=name) if name in _JOINTS[:3] else Continuous(axis, name=name)
        still = still.add_frame(name, above, joint=joint)
        above = name
    return still.mount(hand, above), tip_from_tool


def enclosed_arm(
    scene: SceneGraph, q: Configuration, *, rules: CollisionRules, motion_planner: MotionPlanner, max_iterations: int,
    seed: int,
) -> str | None:  # fmt: skip
    """Return that the start configuration of an arm is enclosed; None if it is not.

    Args:
        scene: the scene.
        q: (n_joints,) configuration at the start.
        rules: the rules of contact, of the arm that is asked about.
        motion_planner: finds paths.
        max_iterations: of one search.
        seed: makes it repeatable.
    """
    arm = rules.manipulator
    world = rules.check_world(scene, rules.exemptions(scene, touched=rules.held(scene)))
    targets = _free_configurations(scene, q, arm, world, seed)
    if not len(targets):
        return None
    reached, met = 0, Counter[str]()
    own = moved_frames(scene, arm) | ({*scene.subtree(str(held))} if (held := rules.held(scene)) else set())
    for target in targets:
        query = PathQuery(world, arm.joints, q, target[None], seed=seed, max_iterations=max_iterations)
        if motion_planner.search(query).status is PathStatus.SOLVED:
            reached += 1
            if reached >= _FEW * len(targets):
                return None
        elif (collision := world.find_edge_collision(q, target)) is not None:
            met.update({collision.frame_a, collision.frame_b} - own)
    around = f"; {_named(met)} {'is' if len(met) == 1 else 'are'} around it" if met else ""
    return (
        f"the start configuration is enclosed: of {len(targets)} free configurations from all over the arm's range, "
        f"a path was found to {reached or 'none'}{around}"
    )


def _free_configurations(
    scene: SceneGraph, q: Configuration, arm: Manipulator, world: CollisionWorld, seed: int
) -> NDArray[np.float64]:
    """Return configurations (n, n_joints) of an arm, drawn evenly from its range, that are free of collision."""
    rng = np.random.default_rng(seed)
    entries = [scene.joint_names.index(joint) for joint in arm.joints]
    limits = np.clip(scene.joint_limits[entries], -math.pi, math.pi)
    drawn = np.tile(np.asarray(q, dtype=float), (_DRAWN, 1))
    drawn[:, entries] = rng.uniform(limits[:, 0], limits[:, 1], size=(_DRAWN, len(entries)))
    free = np.logical_not(world.in_collision_batch(drawn))
    return drawn[free][:_TARGETS]


def _named(bodies: Counter[str]) -> str:
    """Return the bodies met most often, in words."""
    return listed_bodies(sorted(bodies, key=lambda name: (-bodies[name], name)))


def listed_bodies(frames: Collection[str]) -> str:
    """Return the first few of some frames in words.

    Args:
        frames: the frames, at least one.
    """
    names = list(frames)
    words = [f"'{name}'" for name in names[:_NAMED]]
    if len(names) > _NAMED:
        words.append("others")
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
