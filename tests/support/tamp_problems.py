"""Problems decided by geometry, of the built-in generators, by the names of tables and tests."""

from __future__ import annotations

from collections.abc import Callable

from tmkit.batch.generated_problems import (
    CUBE,
    GeneratedProblem as TampProblem,
    add_block,
    add_box,
    blocked_problem,
    clutter_problem,
    cook_problem,
    handover_problem,
    lying_problem,
    mobile_problem,
    regrasp_problem,
    shelf_problem,
    sussman4_problem,
    swaps_problem,
    table_scene,
    tetromino_problem,
    towers_problem,
)

__all__ = [
    "CUBE",
    "PROBLEMS",
    "TampProblem",
    "add_block",
    "add_box",
    "blocked_problem",
    "clutter_problem",
    "cook_problem",
    "handover_problem",
    "lying_problem",
    "mobile_problem",
    "regrasp_problem",
    "shelf_problem",
    "sussman4_problem",
    "swaps_problem",
    "table_scene",
    "tetromino_problem",
    "towers_problem",
]

PROBLEMS: dict[str, Callable[[int], TampProblem]] = {
    "regrasp": lambda seed: regrasp_problem(seed=seed),
    "blocked": lambda seed: blocked_problem(seed=seed),
    **{f"swap{n}": lambda seed, n=n: swaps_problem(n, seed=seed) for n in (2, 4, 8, 16)},  # type: ignore[misc]
    **{f"shelf{n}": lambda seed, n=n: shelf_problem(n, seed=seed) for n in (1, 3, 6)},  # type: ignore[misc]
    "shelf_front": lambda seed: shelf_problem(1, in_front=True, seed=seed),
    "clutter9_3cm": lambda seed: clutter_problem(3, gap=0.03, seed=seed),
    "clutter16_2cm": lambda seed: clutter_problem(4, gap=0.02, seed=seed),
    "clutter25_2cm": lambda seed: clutter_problem(5, gap=0.02, seed=seed),
    **{
        f"handover{n}_{wall}cm": lambda seed, n=n, wall=wall: (  # type: ignore[misc]
            handover_problem(n, wall / 100, seed=seed)
        )
        for wall in (20, 40)
        for n in (1, 2, 4)
    },
    **{f"towers{n}": lambda seed, n=n: towers_problem(n, seed=seed) for n in (15, 20, 25)},  # type: ignore[misc]
    **{f"cook{n}": lambda seed, n=n: cook_problem(n, seed=seed) for n in (12, 16, 20)},  # type: ignore[misc]
    **{
        f"sussman4_{robot}": lambda seed, robot=robot: sussman4_problem(robot, seed=seed)
        for robot in ("baxter", "panda", "iiwa")
    },
    "lying6": lambda seed: lying_problem(6, seed=seed),
    "cubby": lambda seed: lying_problem(1, seed=seed),
    "tetromino": lambda seed: tetromino_problem(seed=seed),
    "mobile": lambda seed: mobile_problem(seed=seed),
}
"""The problems by name; each takes a seed, which varies where things stand."""
