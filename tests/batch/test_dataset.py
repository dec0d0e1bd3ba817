"""Datasets: tables agree with the plans, and episodes have the layout of LeRobot."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import tmkit as tk
from tmkit.batch import Dataset, open_results, run_batch
from tmkit.batch.dataset import DatasetOptions, write_dataset
from tmkit.batch.generators import GeneratorSource
from tmkit.batch.problems import Batch, BatchEntry, FixedProblem
from tmkit.errors import (
    ConfigurationError,
    FileFormatError,
    MissingFileError,
    OutputError,
    UnknownNameError,
)
from tmkit.formats import scene_from_dict
from tmkit.tamp.options import PlanningOptions

pytest.importorskip("pyarrow")
pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two solvable problems and one unsolvable problem."""
    folder = tmp_path_factory.mktemp("batch") / "results"
    options = PlanningOptions(max_iterations=4)
    table = tk.load_scene("panda_table", "blocks2")
    unsolvable = FixedProblem(tk.PlanningProblem(table, goal="(and (on a b) (on b a))"), options)
    swaps = GeneratorSource("swaps", {"blocks": 2}, options)
    run_batch(
        Batch((BatchEntry("swaps", swaps, range(2)), BatchEntry("never", unsolvable, [0]))),
        folder,
        workers=1,
    )
    return folder


def test_tables_agree_with_the_plans(results: Path, tmp_path: Path) -> None:
    """Actions link the states, paths are those of the plans, and rows are reproducible."""
    write_dataset(
        results, tmp_path / "data", options=DatasetOptions(picture_size=(64, 48), points=200)
    )
    data = Dataset(tmp_path / "data")
    data.check()
    assert [row["status"] for row in data.rows("problems", "status")] == [
        "solved",
        "solved",
        "proved unsolvable",
    ]
    solved = [row.plan for row in open_results(results) if row.is_solved]
    for number, plan in enumerate(solved):
        assert plan is not None
        tables = {
            name: [row for row in data.rows(name) if row["problem"] == number]
            for name in data.tables[3:]
        }
        facts = [set(row["facts"]) for row in tables["states"]]
        for action, (before, after) in zip(tables["actions"], pairwise(facts), strict=True):
            assert (before - {*action["deletes"]}) | {*action["adds"]} == after
        segments = [segment for step in plan.steps for segment in step.segments]
        assert len(tables["motions"]) == len(segments)
        for row, segment in zip(tables["motions"], segments, strict=True):
            np.testing.assert_array_equal(row["path"], segment.path)
        assert [row["object"] for row in tables["grasps"]] == [
            segment.held for segment in segments if segment.kind is tk.plans.SegmentKind.GRASP
        ]
        final = plan.final_scene.at(plan.final_q)
        last = tables["states"][-1]
        for name, pose in zip(last["objects"], last["poses"], strict=True):
            np.testing.assert_allclose(pose, final.pose(name).as_array(), atol=1e-12)
        assert len(tables["pictures"]) == len(tables["clouds"]) == len(plan.steps) + 1
        with Image.open(io.BytesIO(tables["pictures"][0]["png"])) as picture:
            assert picture.size == (64, 48)
            assert np.asarray(picture).std() > 5.0
        points = np.array(tables["clouds"][0]["points"])
        assert 100 < len(points) <= 200
        on_table = np.abs(points[:, 2]) < 5e-3
        assert on_table.mean() > 0.2
    scene = scene_from_dict(json.loads(next(data.rows("scenes"))["json"]))
    assert scene == next(iter(open_results(results))).scene
    assert data.table("states").to_table(columns=["q"]).num_rows == len([*data.rows("states")])
    write_dataset(
        results, tmp_path / "again", options=DatasetOptions(picture_size=(64, 48), points=200)
    )
    assert Dataset(tmp_path / "again").card == data.card


def test_a_damaged_table_raises_an_error(results: Path, tmp_path: Path) -> None:
    """A table without a row, and a file that is no table, are rejected."""
    import pyarrow.parquet as pq

    write_dataset(results, tmp_path / "data")
    data, file = Dataset(tmp_path / "data"), tmp_path / "data" / "actions.parquet"
    assert data.tables == (
        "problems",
        "failures",
        "scenes",
        "states",
        "actions",
        "grasps",
        "motions",
    )
    pq.write_table(pq.read_table(file).slice(1), file)
    with pytest.raises(
        FileFormatError, match=r"actions\.parquet: the table differs from its digest"
    ):
        data.check()
    file.write_bytes(b"nothing")
    with pytest.raises(FileFormatError, match=r"actions\.parquet: the table cannot be read"):
        data.table("actions")
    with pytest.raises(UnknownNameError, match=r"'action'.*did you mean 'actions'"):
        data.table("action")


def test_episodes_have_the_layout_of_lerobot(results: Path, tmp_path: Path) -> None:
    """Frames, episodes, tasks and statistics agree with those computed by pandas and NumPy."""
    write_dataset(
        results,
        tmp_path / "data",
        options=DatasetOptions(layout="lerobot", rate=2.0, picture_size=(32, 24)),
    )
    information = json.loads((tmp_path / "data/meta/info.json").read_text())
    frames = pd.read_parquet(tmp_path / "data/data/chunk-000/file-000.parquet")
    episodes = pd.read_parquet(tmp_path / "data/meta/episodes/chunk-000/file-000.parquet")
    tasks = pd.read_parquet(tmp_path / "data/meta/tasks.parquet")
    assert information["total_episodes"] == len(episodes) == 2
    assert information["total_frames"] == len(frames) == episodes["length"].sum()
    assert information["total_tasks"] == len(tasks) == 2
    assert frames["index"].tolist() == [*range(len(frames))]
    for row in episodes.itertuples():
        episode_frames = frames[frames["episode_index"] == row.episode_index]
        assert episode_frames["frame_index"].tolist() == [*range(row.length)]
        assert tasks.index[episode_frames["task_index"].iloc[0]] == row.tasks[0]
    stats = json.loads((tmp_path / "data/meta/stats.json").read_text())
    state = np.stack(frames["observation.state"].tolist()).astype(float)
    for name, value in (
        ("mean", state.mean(0)),
        ("std", state.std(0)),
        ("min", state.min(0)),
        ("max", state.max(0)),
    ):
        np.testing.assert_allclose(stats["observation.state"][name], value, atol=1e-9)
    pictures = [
        np.asarray(Image.open(io.BytesIO(picture["bytes"])))
        for picture in frames["observation.images.scene"]
    ]
    assert np.shape(pictures) == (len(frames), 24, 32, 3)
    channels = np.reshape(pictures, (-1, 3)) / 255.0
    np.testing.assert_allclose(
        np.ravel(stats["observation.images.scene"]["std"]), channels.std(0), atol=1e-9
    )
    assert any(np.any(picture != pictures[0]) for picture in pictures)


def test_invalid_arguments_are_rejected(results: Path, tmp_path: Path) -> None:
    """The error leaves no folder behind."""
    for match, error, options in (
        (
            r"unknown layout 'parket'; did you mean 'parquet'",
            UnknownNameError,
            {"layout": "parket"},
        ),
        (r"points must be at least 0", ConfigurationError, {"points": -1}),
        (r"and 0 for 'lerobot'", ConfigurationError, {"points": 5, "layout": "lerobot"}),
        (r"pictures are 1 to 4096 pixels", ConfigurationError, {"picture_size": (0, 5)}),
        (
            r"a whole number of frames a second, not 2\.5",
            ConfigurationError,
            {"layout": "lerobot", "rate": 2.5},
        ),
    ):
        with pytest.raises(error, match=match):
            write_dataset(results, tmp_path / "data", options=DatasetOptions(**options))
    assert not [*tmp_path.iterdir()]
    with pytest.raises(MissingFileError, match=r"it has no results of a batch"):
        write_dataset(tmp_path, tmp_path / "data")
    with pytest.raises(MissingFileError, match=r"there is no dataset in"):
        Dataset(tmp_path)
    (tmp_path / "data").mkdir()
    with pytest.raises(OutputError, match=r"is there already"):
        write_dataset(results, tmp_path / "data")


def test_episodes_with_different_joints_are_rejected(tmp_path: Path) -> None:
    """The error names the problem. A batch without plans is rejected as well."""
    options = PlanningOptions(max_iterations=4)
    sources = [
        GeneratorSource("sussman4", {"robot": robot}, options) for robot in ("panda", "iiwa")
    ]
    entries = tuple(BatchEntry(f"e{index}", source, [0]) for index, source in enumerate(sources))
    run_batch(Batch(entries), tmp_path / "results", workers=1)
    assert all(row.is_solved for row in open_results(tmp_path / "results"))
    with pytest.raises(
        ConfigurationError,
        match=r"e1/0: episodes of one dataset have the same joints.*panda_joint1",
    ):
        write_dataset(
            tmp_path / "results", tmp_path / "data", options=DatasetOptions(layout="lerobot")
        )
    unsolvable = tk.PlanningProblem(
        tk.load_scene("panda_table", "blocks2"), goal="(and (on a b) (on b a))"
    )
    run_batch(
        Batch((BatchEntry("never", FixedProblem(unsolvable, options), [0]),)),
        tmp_path / "no",
        workers=1,
    )
    with pytest.raises(ConfigurationError, match="there are no episodes"):
        write_dataset(tmp_path / "no", tmp_path / "data", options=DatasetOptions(layout="lerobot"))
