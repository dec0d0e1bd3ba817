"""Problems decided by geometry, of the built-in generators, by the names of tables and tests."""

from __future__ import annotations

from collections.abc import Callable

from tmkit.batch.generated_problems import (
    CUBE,
    GeneratedProblem as TampProblem,
    add_block,
    add_box,
    blocked,
    clutter,
    cook,
    handover,
    lying,
    mobile,
    regrasp,
    shelf,
    sussman4,
    swaps,
    table_scene,
    tetromino,
    towers,
)

__all__ = [
    "CUBE",
    "PROBLEMS",
    "TampProblem",
    "add_block",
    "add_box",
    "blocked",
    "clutter",
    "cook",
    "handover",
    "lying",
    "mobile",
    "regrasp",
    "shelf",
    "sussman4",
    "swaps",
    "table_scene",
    "tetromino",
    "towers",
]

PROBLEMS: dict[str, Callable[[int], TampProblem]] = {
    "regrasp": lambda seed: regrasp(seed=seed),
    "blocked": lambda seed: blocked(seed=seed),
    **{f"swap{n}": lambda seed, n=n: swaps(n, seed=seed) for n in (2, 4, 8, 16)},  # type: ignore[misc]
    **{f"shelf{n}": lambda seed, n=n: shelf(n, seed=seed) for n in (1, 3, 6)},  # type: ignore[misc]
    "shelf_front": lambda seed: shelf(1, in_front=True, seed=seed),
    "clutter9_3cm": lambda seed: clutter(3, gap=0.03, seed=seed),
    "clutter16_2cm": lambda seed: clutter(4, gap=0.02, seed=seed),
    "clutter25_2cm": lambda seed: clutter(5, gap=0.02, seed=seed),
    **{
        f"handover{n}_{wall}cm": lambda seed, n=n, wall=wall: handover(n, wall / 100, seed=seed)  # type: ignore[misc]
        for wall in (20, 40)
        for n in (1, 2, 4)
    },
    **{f"towers{n}": lambda seed, n=n: towers(n, seed=seed) for n in (15, 20, 25)},  # type: ignore[misc]
    **{f"cook{n}": lambda seed, n=n: cook(n, seed=seed) for n in (12, 16, 20)},  # type: ignore[misc]
    **{
        f"sussman4_{robot}": lambda seed, robot=robot: sussman4(robot, seed=seed)
        for robot in ("baxter", "panda", "iiwa")
    },
    "lying6": lambda seed: lying(6, seed=seed),
    "cubby": lambda seed: lying(1, seed=seed),
    "tetromino": lambda seed: tetromino(seed=seed),
    "mobile": lambda seed: mobile(seed=seed),
}
"""The problems by name; each takes a seed, which varies where things stand."""
