"""Exported plans in pandas, rosbags and pyarrow, and a moved block."""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command_bags import messages_of
from support.gantry import GANTRY, stacking_plan

from tmkit.cli import main
from tmkit.errors import ConfigurationError, OutputError, UnknownNameError
from tmkit.plans import Executor, execute, export_plan, motion_table, save_plan
from tmkit.plans.timed_commands import RecordingExecutor, TimedCommand

pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("rosbags.highlevel")
FINGER = GANTRY.gripper_joints[0]


def record_plan(rate: float = 50.0) -> RecordingExecutor:
    """Return the commands of a plan for two blocks."""
    executor = RecordingExecutor(gripper_seconds=0.5)
    assert isinstance(executor, Executor)
    execute(stacking_plan(), executor, rate=rate)
    return executor


def test_commands_follow_each_other_without_gaps() -> None:
    """The hand moves at the grasp and the release; all other commands are arm motions."""
    commands = record_plan().commands
    ends = [command.begin + command.duration for command in commands]
    assert [command.begin for command in commands] == [0.0, *ends[:-1]]
    assert [
        (c.motion.segment.kind.value if c.motion else "closes" if c.closes else "opens")
        for c in commands
    ] == ["transit", "approach", "closes", "lift", "transfer", "lower", "opens", "retreat"]
    assert {command.step for command in commands} == {1}


@pytest.mark.parametrize("rate", [20.0, 50.0, 125.0])
def test_a_table_is_continuous_and_leads_to_the_end(rate: float) -> None:
    """Rows are within the velocity limits, and the last row is the end of the plan."""
    plan = stacking_plan()
    table = motion_table(plan, rate=rate)
    assert table.joint_names == (*GANTRY.joints, *GANTRY.gripper_joints)
    places = [plan.scene.joint_names.index(name) for name in table.joint_names]
    assert np.array_equal(table.positions[0], plan.q[places])
    assert np.allclose(table.positions[-1], plan.steps[-1].q[places], atol=1e-12)
    arm = len(GANTRY.joints)
    limits = GANTRY.velocity_limits(plan.scene)
    steps = np.diff(table.positions, axis=0)
    assert np.all(np.abs(steps[:, :arm]) <= limits / rate + 1e-9)
    assert np.all(np.abs(table.velocities[:, :arm]) <= limits + 1e-9)
    means = (table.velocities[1:, :arm] + table.velocities[:-1, :arm]) / (2.0 * rate)
    assert np.allclose(
        steps[:, :arm], means, atol=0.5 * GANTRY.acceleration_limits(plan.scene).max() / rate**2
    )
    assert table.times[-1] == pytest.approx(record_plan(rate).duration, abs=2.0 / rate)


def test_pandas_reads_the_table(tmp_path: Path) -> None:
    """All numbers to nine digits, with names; the same file each time."""
    plan = stacking_plan()
    for name in ("a.csv", "b.csv"):
        export_plan(plan, tmp_path / name, format="csv", rate=40.0)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    table, read = motion_table(plan, rate=40.0), pd.read_csv(tmp_path / "a.csv")
    assert [*read.columns[:3]] == ["time", "step", "action"]
    assert set(read["action"]) == {str(plan.steps[0].action)}
    numbers = {
        "position": table.positions,
        "velocity": table.velocities,
        "acceleration": table.accelerations,
    }
    for what, values in numbers.items():
        columns = read[[f"{name}.{what}" for name in table.joint_names]].to_numpy()
        assert np.allclose(columns, values, rtol=1e-8, atol=1e-12)
    assert np.allclose(read["time"], table.times)


def runs_of(commands: list[TimedCommand]) -> list[list[TimedCommand]]:
    """Return groups of commands without a stop between them."""
    runs: list[list[TimedCommand]] = []
    before = None
    for command in commands:
        if (
            before is not None
            and before.motion is not None
            and np.any(before.motion.timed.velocities[-1] != 0.0)
        ):
            runs[-1].append(command)
        else:
            runs.append([command])
        before = command
    return runs


def test_the_bag_and_the_json_are_equal(tmp_path: Path) -> None:
    """Each motion is a trajectory of the arm, each change of the hand a command."""
    plan = stacking_plan()
    export_plan(plan, tmp_path / "bag", format="ros2", rate=50.0)
    export_plan(plan, tmp_path / "bag.json", format="ros2", rate=50.0)
    runs, read = runs_of(record_plan().commands), messages_of(tmp_path / "bag")
    written = json.loads((tmp_path / "bag.json").read_text())
    assert len(read) == len(written) == len(runs) < len(record_plan().commands)
    for (command, *rest), (topic, time, message), stored in zip(runs, read, written, strict=True):
        assert (stored["topic"], stored["time"]) == (topic, command.begin)
        assert time == pytest.approx(1e9 * command.begin, abs=1)
        if command.motion is None:
            assert topic == "/hand_controller/gripper_cmd"
            wanted = GANTRY.gripper_closed[FINGER] if command.closes else command.fingers[FINGER]
            assert (message.position, message.max_effort) == (wanted, GANTRY.grip_force)
            assert stored["message"] == {"position": wanted, "max_effort": GANTRY.grip_force}
            continue
        assert topic == "/gantry_controller/joint_trajectory"
        assert (
            tuple(message.joint_names) == tuple(stored["message"]["joint_names"]) == GANTRY.joints
        )
        first, *following = [
            other.motion.timed for other in (command, *rest) if other.motion is not None
        ]
        for kind in ("positions", "velocities", "accelerations"):
            rows = np.concatenate(
                [getattr(first, kind), *(getattr(timed, kind)[1:] for timed in following)]
            )
            assert np.array_equal([getattr(point, kind) for point in message.points], rows)
            assert np.array_equal([point[kind] for point in stored["message"]["points"]], rows)
        due = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points]
        assert np.allclose(due, np.arange(len(rows)) * first.period, atol=1e-8)


def test_a_dataset_has_the_layout_of_lerobot(tmp_path: Path) -> None:
    """Version 3.0: paths, features, tasks as a pandas index, episodes, statistics."""
    plan = stacking_plan()
    export_plan(plan, tmp_path / "data", format="lerobot", rate=30.0)
    table, folder = motion_table(plan, rate=30.0), tmp_path / "data"
    information = json.loads((folder / "meta/info.json").read_text())
    count = len(table.positions)
    assert information["codebase_version"] == "v3.0"
    assert [
        information[key] for key in ("fps", "total_episodes", "total_frames", "total_tasks")
    ] == [30, 1, count, 1]
    data = folder / information["data_path"].format(chunk_index=0, file_index=0)
    read = pd.read_parquet(data)
    assert [*read.columns] == [*information["features"]]
    for name, feature in information["features"].items():
        values = (
            np.stack(read[name].to_numpy()) if feature["shape"] != [1] else read[name].to_numpy()
        )
        assert str(values.dtype) == feature["dtype"]
        assert [*values.shape[1:]] == (feature["shape"] if values.ndim > 1 else [])
    state, action = (np.stack(read[name].to_numpy()) for name in ("observation.state", "action"))
    assert np.allclose(state, table.positions, atol=1e-6)
    assert np.array_equal(action[:-1], state[1:])
    for what, values in (("velocity", table.velocities), ("acceleration", table.accelerations)):
        assert np.allclose(np.stack(read[f"observation.{what}"].to_numpy()), values, atol=1e-6)
    assert np.allclose(read["timestamp"], np.arange(count) / 30.0)
    tasks = pd.read_parquet(folder / "meta/tasks.parquet")
    assert (tasks.index.name, [*tasks.index], [*tasks["task_index"]]) == (
        "task",
        [" ".join(plan.goal.split())],
        [0],
    )
    [episode] = pq.read_table(folder / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    assert (episode["length"], episode["dataset_to_index"], episode["tasks"]) == (
        count,
        count,
        [*tasks.index],
    )
    stats = json.loads((folder / "meta/stats.json").read_text())
    assert np.allclose(stats["observation.state"]["mean"], state.mean(axis=0), atol=1e-5)
    assert episode["stats/action/max"] == pytest.approx(action.max(axis=0))


def test_a_plan_without_actions_is_one_row(tmp_path: Path) -> None:
    """The goal held at the start."""
    plan = replace(stacking_plan(), steps=())
    table = motion_table(plan)
    assert len(table.positions) == 1
    export_plan(plan, tmp_path / "empty", format="lerobot")
    export_plan(plan, tmp_path / "empty.csv", format="csv")
    export_plan(plan, tmp_path / "bag", format="ros2")
    assert messages_of(tmp_path / "bag") == []


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (UnknownNameError, "unknown format 'ros'; did you mean 'ros2'", {"format": "ros"}),
        (ConfigurationError, "rate must be positive", {"format": "csv", "rate": 0.0}),
        (
            ConfigurationError,
            "a whole number of frames a second, not 12.5",
            {"format": "lerobot", "rate": 12.5},
        ),
        (
            ConfigurationError,
            "gripper_seconds is positive and finite",
            {"format": "csv", "gripper_seconds": np.nan},
        ),
    ],
)
def test_invalid_arguments_are_rejected(
    tmp_path: Path, error: type[Exception], message: str, options: dict[str, Any]
) -> None:
    """Nothing is written."""
    with pytest.raises(error, match=message):
        export_plan(stacking_plan(), tmp_path / "out", **options)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("format", ["ros2", "lerobot"])
def test_a_folder_is_made_atomically(
    tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An existing folder stays unchanged, and an error leaves nothing."""
    (tmp_path / "there").mkdir()
    with pytest.raises(OutputError, match="there: is there already"):
        export_plan(stacking_plan(), tmp_path / "there", format=format)
    with pytest.raises(OutputError, match="cannot be written: No such file or directory"):
        export_plan(stacking_plan(), tmp_path / "nowhere" / "out", format=format)
    full = OSError(28, "No space left on device")

    def fail(*_: object, **__: object) -> None:
        raise full

    monkeypatch.setattr("rosbags.rosbag2.Writer.write", fail)
    monkeypatch.setattr("pyarrow.parquet.write_table", fail)
    with pytest.raises(OutputError, match="out: cannot be written: No space left on device"):
        export_plan(stacking_plan(), tmp_path / "out", format=format)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes the same files as the library; errors are one line."""
    save_plan(stacking_plan(), tmp_path / "plan.json")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["tmkit", "export", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    assert run("plan.json", "--format", "csv", "-o", "plan.csv", "--rate", "25") == 0
    export_plan(stacking_plan(), tmp_path / "same.csv", format="csv", rate=25.0)
    assert (tmp_path / "plan.csv").read_bytes() == (tmp_path / "same.csv").read_bytes()
    assert run("plan.json", "--format", "lerobot", "-o", "data") == 0
    assert "Written to data" in capsys.readouterr().out
    assert run("plan.json", "--format", "lerobot", "-o", "data") == 2
    assert re.fullmatch(r"error: data: is there already\n", capsys.readouterr().err)
    assert run("plan.json", "--format", "rosbag", "-o", "x") == 2
    assert "known: csv, lerobot, ros2" in capsys.readouterr().err
    assert run("gone.json", "--format", "csv", "-o", "x.csv") == 2


def test_exported_messages_move_a_block(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example replays only the messages of a bag; the block ends within 3 mm."""
    pytest.importorskip("pybullet")
    monkeypatch.setattr(sys, "argv", ["replay_export", "--out", str(tmp_path)])
    run: Callable[..., object] = runpy.run_path
    run(str(Path(__file__).parents[2] / "examples" / "replay_export.py"), run_name="__main__")
    match = re.search(r"block a ended ([\d.]+) mm from its place", capsys.readouterr().out)
    assert match is not None
    assert float(match[1]) < 3.0
