"""Families of KinDER's environments, with the function that makes the task of each."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.kinder import disc, dynamic, tasks, vega
from benchmarks.kinder.robots import Robot, make_tidybot
from benchmarks.kinder.worlds import Observation, Task


@dataclass(frozen=True)
class Family:
    """Environments of one class.

    Attributes:
        module: module of the class below ``kinder.envs``.
        config: name of the configuration class.
        make: function that makes the task of an observation.
        variants: names of the variants.
        robot: function that makes the robot, with a folder for its files.
        place_gap: height above its support at which an object is released [m]. Contact is a
            collision in the environments.
        repeats: number of times that an action is sent: a motion at most, an event always.
        tolerance: largest error of a joint after an action that was carried out [rad or m].
    """

    module: str
    config: str
    make: Callable[[Observation, Any, Any], Task]
    variants: tuple[str, ...] = ("",)
    place_gap: float = 0.002
    robot: Callable[[Path], Robot] = make_tidybot
    repeats: int = 1
    tolerance: float = 1e-3

    def configuration(self, environment: str) -> Any:
        """Return the configuration with its defaults, or the file of a task in MuJoCo."""
        if not self.config:
            return dynamic.task_file(environment)
        return getattr(importlib.import_module(f"kinder.envs.{self.module}"), self.config)()


FAMILIES = {
    "BaseMotion3D": Family(
        "kinematic3d.base_motion3d", "BaseMotion3DEnvConfig", tasks.base_motion_task
    ),
    "ClutteredRetrieval2D": Family(
        "kinematic2d.clutteredretrieval2d",
        "ClutteredRetrieval2DEnvConfig",
        disc.retrieval_task,
        ("o1", "o10", "o25"),
        robot=partial(disc.make_disc, is_upright=False),
    ),
    "ClutteredStorage2D": Family(
        "kinematic2d.clutteredstorage2d",
        "ClutteredStorage2DEnvConfig",
        disc.storage_task,
        ("b1", "b3", "b7", "b15"),
        robot=partial(disc.make_disc, is_upright=False),
    ),
    "KinematicCylinderShelf3D": Family(
        "kinematic3d.cylinder_shelf3d",
        "CylinderShelf3DEnvConfig",
        tasks.cylinder_shelf_task,
        ("o1", "o2", "o3"),
    ),
    "KinematicShelf3D": Family(
        "kinematic3d.shelf3d", "Shelf3DEnvConfig", tasks.shelf_task, ("o1", "o2", "o3", "o5", "o10")
    ),
    "Motion2D": Family(
        "kinematic2d.motion2d",
        "Motion2DEnvConfig",
        disc.motion_task,
        ("p0", "p1", "p2", "p3", "p4", "p5"),
        robot=partial(disc.make_disc, is_upright=False),
    ),
    "Obstruction2D": Family(
        "kinematic2d.obstruction2d",
        "Obstruction2DEnvConfig",
        disc.obstruction_task,
        ("o0", "o1", "o2", "o3", "o4"),
        robot=partial(disc.make_disc, is_upright=True),
    ),
    "Obstruction3D": Family(
        "kinematic3d.obstruction3d",
        "Obstruction3DEnvConfig",
        tasks.obstruction_task,
        ("o0", "o1", "o2", "o3", "o4"),
    ),
    "Packing3D": Family(
        "kinematic3d.packing3d", "Packing3DEnvConfig", tasks.packing_task, ("p1", "p2", "p3")
    ),
    "PickPlace3D": Family(
        "dynamic3d",
        "",
        dynamic.ground_task,
        ("o1",),
        robot=dynamic.make_dynamic_tidybot,
        repeats=20,
        tolerance=5e-3,
    ),
    "PrplLab3D": Family(
        "kinematic3d.prpl3d", "PrplLab3DEnvConfig", tasks.laboratory_task, ("o1", "o2"), 0.055
    ),
    "Table3D": Family(
        "kinematic3d.table3d", "Table3DEnvConfig", tasks.table_task, ("o1", "o2", "o3")
    ),
    "Transport3D": Family(
        "kinematic3d.transport3d", "Transport3DEnvConfig", tasks.transport_task, ("o1", "o2")
    ),
    "VegaMotion3D": Family(
        "kinematic3d_v2.vega_motion3d",
        "VegaMotion3DEnvConfig",
        vega.motion_task,
        robot=partial(vega.make_vega, observed={"right": "robot"}),
    ),
    "VegaPickPlace3D": Family(
        "kinematic3d_v2.vega_pickplace3d",
        "VegaPickPlace3DEnvConfig",
        vega.pick_place_task,
        robot=partial(vega.make_vega, observed={"left": "left_arm", "right": "right_arm"}),
    ),
}
"""Families of environments by the name of their class."""
