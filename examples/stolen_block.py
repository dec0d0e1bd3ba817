"""A block is removed from the hand during a task; closed-loop execution completes the tower."""

import argparse
from pathlib import Path

import numpy as np

import tmkit as tk
from tmkit.plans import PlanStep
from tmkit.simulation import (
    Camera,
    Film,
    SensorNoise,
    SimulatedCamera,
    SimulatedExecutor,
    Simulation,
    open_studio,
)
from tmkit.world import execute_closed_loop

VIEW = Camera((1.7, -1.0, 1.0), (0.35, 0.0, 0.28), width=400, height=300)
SENSORS = (Camera((1.3, -0.5, 1.0), (0.45, 0.0, 0.1)), Camera((0.2, 1.2, 1.0), (0.45, 0.0, 0.1)))


class Thief(SimulatedExecutor):
    """Executes plans in a simulation, in which somebody takes a block away after the third step."""

    steps = 0

    def end_step(self, number: int, step: PlanStep) -> None:
        """Take the block that the hand holds, and put it down elsewhere."""
        super().end_step(number, step)
        self.steps += 1
        held = [name for name in self.simulation.objects if step.scene.parent(name) == "panda_hand"]
        if self.steps == 3 and held:
            self.simulation.set_object_pose(held[0], tk.Pose([0.5, -0.28, 0.026]))
            print(f"somebody takes '{held[0]}' out of the hand")


def main() -> None:
    """Build the tower, with cameras that miss objects and see some where there are none."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for what is shown"
    )
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    scene, robot = tk.load_scene("panda_table", "blocks3"), tk.load_manipulator("panda")
    q = robot.ready_configuration(scene)
    problem = tk.PlanningProblem(
        scene, q, domain="blocks", goal="(and (on a b) (on b c))", robots="panda"
    )
    film, states = Film(folder / "stolen_block.gif"), 0
    with (
        Simulation.from_scene(scene, q, robot=robot) as simulation,
        open_studio(simulation, VIEW, supersampling=1.0, renderer="tiny") as studio,
    ):

        def draw(*_: object) -> None:
            nonlocal states
            states += 1
            if states % 8 == 0:
                film.add(studio.picture())

        cameras = [
            SimulatedCamera(
                simulation,
                view,
                seed=number,
                noise=SensorNoise(
                    covariance=np.diag([1e-6] * 3 + [1e-4] * 3), misses=0.1, false_rate=0.05
                ),
            )
            for number, view in enumerate(SENSORS)
        ]
        executor = Thief(simulation, on_state=draw)
        result = execute_closed_loop(problem, executor, cameras, options=tk.PlanningOptions(seed=0))
    print(result)
    print("plans with", " and ".join(f"{len(plan.steps)} steps" for plan in result.plans))
    assert result.status == "goal reached"
    for number, event in enumerate(result.events, start=1):
        print("see", event.draw(folder / f"stolen_block_{number}.png"))
    print("see", film.write())


if __name__ == "__main__":
    main()
