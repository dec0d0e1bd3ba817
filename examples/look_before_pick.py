"""Blocks with uncertain poses: a plan that looks first, and one that does not.

The scene holds the estimate: three blocks, each known to 2 cm. A world is drawn from it, in which
they stand somewhere else. Looks are taken in that world by a camera with random errors; they
condition the scene, and the rest is planned from there. Written to ``--out``: how both end, and the
second plan as a page.
"""

import argparse
from pathlib import Path

import tmkit as tk
from tmkit.tamp import sample_scene, stands_on

GOAL = "(surely-on a b)"
WORLD = 1


def main() -> None:
    """Plan with looks, execute them, plan the rest, and simulate it beside a plan without looks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    scene = tk.load_scene("panda_alone", "unsure_blocks")
    plan = tk.plan(scene, domain="blocks_uncertain", goal=GOAL).plan
    assert plan is not None
    print("planned:", *plan.actions)
    print(f"P(a is on b) at the end: {stands_on(plan.final_scene, 'a', 'b', q=plan.final_q)}")
    assert tk.validate_plan(plan).is_valid

    world = sample_scene(scene, seed=WORLD)
    seen = scene
    for number, step in enumerate(plan.steps):
        for look in step.observations:
            measured = look.simulate(world, q=step.q, seed=number)
            moved = scene.pose(look.frame, relative_to=look.camera, q=step.q).distance(measured)[0]
            print(
                f"{step.action}: '{look.frame}' is {moved * 1000:.0f} mm from its estimated"
                " position"
            )
            seen = seen.condition(
                look.measurement(seen, q=step.q, measured_pose=measured), q=step.q
            )

    rest = tk.plan(seen, domain="blocks_uncertain", goal=GOAL).plan
    blind = tk.plan(scene, domain="blocks", goal="(on a b)").plan
    assert rest is not None
    assert blind is not None
    print("the rest:", *rest.actions)
    for name, executed in (("without looks", blind), ("after looks", rest)):
        picture = folder / f"look_before_pick_{name.replace(' ', '_')}.png"
        error = (
            tk.simulate(executed, picture=picture, options=tk.SimulationOptions(world=world))
            .errors["a"]
            .position
        )
        print(
            f"{name}: a ends {error * 1000:.0f} mm from its place, which is"
            f" {'' if error < 0.04 else 'not '}on b"
        )
        print("see", picture)
    print("see", tk.save_html(rest, folder / "look_before_pick.html"))


if __name__ == "__main__":
    main()
