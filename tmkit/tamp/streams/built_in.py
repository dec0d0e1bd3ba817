"""Built-in streams: grasps, placements, configurations of a pick, and paths.

A domain lists them among its :attr:`~tmkit.tamp.streams.StreamSemantics.streams`, beside its own.
Grasps and placements come from the samplers of the planning run, so a sampler that is registered
for a class of objects applies here too.
"""

from __future__ import annotations

from collections.abc import Iterator

from tmkit.manipulation.actions.basic_motions import ActionMotion
from tmkit.manipulation.grasps.sampling import Grasp
from tmkit.manipulation.placements.sampling import Placement
from tmkit.plans.values import Configuration
from tmkit.tamp.streams.declaration import stream
from tmkit.tamp.streams.scene_view import SceneView

_SEED_COUNT = 2**31
"""Number of seeds of the path search."""


@stream("?o - object", gives="?g - grasp", certifies="(grasp ?o ?g)")
def grasps(view: SceneView, o: str) -> Iterator[Grasp]:
    """Yield the grasps of an object by the first arm, best first."""
    yield from view.grasps(o)


@stream("?o ?s - object", gives="?p - placement", certifies="(placement ?o ?s ?p)")
def placements(view: SceneView, o: str, s: str) -> Iterator[Placement]:
    """Yield placements of an object on a support, best first."""
    yield from view.placements(o, s)


@stream("?o - object ?g - grasp", gives="?q - configuration", certifies="(reaches ?o ?g ?q)")
def pick_configurations(view: SceneView, o: str, g: Grasp) -> Iterator[Configuration]:
    """Yield configurations of the first arm at a grasp, without collision checks."""
    root_from_tool = view.pose(o) @ g.object_from_tool
    yield from view.inverse_kinematics(root_from_tool)


@stream("?q - configuration", gives="?m - motion", certifies="(motion ?q ?m)")
def paths(view: SceneView, q: Configuration) -> Iterator[ActionMotion]:
    """Yield collision-free motions of the first arm to a configuration, with any held object."""
    context = view.context
    arm = next(iter(context.arms.values()))
    seed = int(view.rng.integers(_SEED_COUNT))
    attempts = arm.move(context.scene, context.q, to=q, seed=seed, name="a configuration")
    yield from (attempt for attempt in attempts if isinstance(attempt, ActionMotion))
