"""Datasets in the layout of LeRobot, version 3.0, with one episode for each plan.

The layout is that of https://github.com/huggingface/lerobot. State and action are joint values; the
action is the state of the next frame. Pictures are PNG in the table itself. Each episode is written
when it is added, so none stays in memory.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._support.extras import importing
from tmkit.errors import ConfigurationError

PICTURES = "observation.images.scene"
"""Name of the feature with the pictures."""

_FILE_PATTERN = "chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
"""Pattern of the paths of data files."""

_FILE_NAME = _FILE_PATTERN.format(chunk_index=0, file_index=0)
"""Path of the only data file."""


class LeRobotWriter:
    """Writer of a dataset; :meth:`close` completes the dataset.

    Args:
        folder: empty folder.
        robot: name of the robot.
        rate: number of frames per second [Hz].

    Raises:
        ConfigurationError: if the rate is not a whole number.
        MissingExtraError: if ``pyarrow`` is missing.
    """

    def __init__(self, folder: Path, *, robot: str, rate: float) -> None:
        if rate != int(rate):
            raise ConfigurationError(
                f"a dataset of LeRobot has a whole number of frames a second, not {rate}"
            )
        with importing("pyarrow", "learning", "datasets of LeRobot need"):
            import pyarrow.parquet
        self._arrow: Any = pyarrow
        self._folder, self._robot, self._rate = folder, robot, int(rate)
        self._names: tuple[str, ...] = ()
        self._size: tuple[int, ...] | None = None
        self._data: Any = None
        self._episodes: list[dict[str, Any]] = []
        self._tasks: dict[str, int] = {}
        self._frames = 0
        self._totals: dict[str, _Statistics] = {}

    def add(
        self,
        positions: NDArray[np.float64],
        *,
        velocities: NDArray[np.float64],
        accelerations: NDArray[np.float64],
        joint_names: tuple[str, ...],
        task: str,
        pictures: Sequence[NDArray[np.uint8]] | None = None,
    ) -> None:
        """Add an episode.

        Args:
            positions: (m, n) joint values by frame [rad or m].
            velocities: (m, n) joint velocities [rad/s or m/s].
            accelerations: (m, n) joint accelerations [rad/s^2 or m/s^2].
            joint_names: names of the n joints.
            task: description of the task, as text or PDDL.
            pictures: picture (height, width, 3) of each frame, for all episodes or none.

        Raises:
            ConfigurationError: if the joints or the size of the pictures differ from those of the
                first episode.
        """
        size = None if pictures is None else pictures[0].shape
        if self._episodes and (joint_names, size) != (self._names, self._size):
            raise ConfigurationError(
                "episodes of one dataset have the same joints and pictures:"
                f" {', '.join(self._names)} and {self._size}, not {', '.join(joint_names)} and"
                f" {size}"
            )
        self._names, self._size = joint_names, size
        count, number = len(positions), len(self._episodes)
        state = positions.astype(np.float32)
        columns: dict[str, NDArray[Any]] = {
            "observation.state": state,
            "action": np.concatenate([state[1:], state[-1:]]),
            "observation.velocity": velocities.astype(np.float32),
            "observation.acceleration": accelerations.astype(np.float32),
            "timestamp": (np.arange(count) / self._rate).astype(np.float32),
            "frame_index": np.arange(count),
            "episode_index": np.full(count, number),
            "index": self._frames + np.arange(count),
            "task_index": np.full(count, self._tasks.setdefault(task, len(self._tasks))),
        }
        statistics = {
            name: _Statistics.of(values.reshape(count, -1)) for name, values in columns.items()
        }
        arrays = {name: self._to_arrow(values) for name, values in columns.items()}
        if pictures is not None:
            pixels = np.concatenate([picture.reshape(-1, 3) for picture in pictures])
            statistics[PICTURES] = _Statistics.of(pixels / 255.0)
            rows = [{"bytes": png_bytes(picture), "path": None} for picture in pictures]
            row_type = self._arrow.struct(
                [("bytes", self._arrow.binary()), ("path", self._arrow.string())]
            )
            arrays[PICTURES] = self._arrow.array(rows, row_type)
        table = self._arrow.table(arrays)
        if self._data is None:
            path = self._folder / "data" / _FILE_NAME
            path.parent.mkdir(parents=True)
            self._data = self._arrow.parquet.ParquetWriter(path, table.schema)
        self._data.write_table(table)
        for name, entry in statistics.items():
            total = self._totals.get(name)
            self._totals[name] = entry if total is None else total.combine(entry)
        fields = {
            f"stats/{name}/{quantity}": value
            for name, entry in statistics.items()
            for quantity, value in _lerobot_statistics(name, entry).items()
        }
        self._episodes.append(
            {
                "episode_index": number,
                "tasks": [task],
                "length": count,
                "data/chunk_index": 0,
                "data/file_index": 0,
                "dataset_from_index": self._frames,
                "dataset_to_index": self._frames + count,
                "meta/episodes/chunk_index": 0,
                "meta/episodes/file_index": 0,
                **fields,
            }
        )
        self._frames += count

    def close(self) -> None:
        """Write the metadata of the dataset.

        Raises:
            ConfigurationError: if there is no episode.
        """
        if self._data is None:
            raise ConfigurationError(
                "a dataset of LeRobot has at least one episode: there is no plan"
            )
        self._data.close()
        width = len(self._names)
        numbers = {"dtype": "float32", "shape": [width], "names": [*self._names]}
        counters = ("frame_index", "episode_index", "index", "task_index")
        joint_features = (
            "observation.state",
            "action",
            "observation.velocity",
            "observation.acceleration",
        )
        features: dict[str, Any] = {
            **dict.fromkeys(joint_features, numbers),
            "timestamp": {"dtype": "float32", "shape": [1], "names": None},
            **{name: {"dtype": "int64", "shape": [1], "names": None} for name in counters},
        }
        if self._size is not None:
            names = ["height", "width", "channels"]
            features[PICTURES] = {"dtype": "image", "shape": [*self._size], "names": names}
        information = {
            "codebase_version": "v3.0",
            "robot_type": self._robot,
            "fps": self._rate,
            "total_episodes": len(self._episodes),
            "total_frames": self._frames,
            "total_tasks": len(self._tasks),
            "chunks_size": 1000,
            "data_files_size_in_mb": 100,
            "video_files_size_in_mb": 200,
            "splits": {"train": f"0:{len(self._episodes)}"},
            "data_path": f"data/{_FILE_PATTERN}",
            "video_path": None,
            "features": features,
        }
        meta = self._folder / "meta"
        episodes = meta / "episodes" / _FILE_NAME
        episodes.parent.mkdir(parents=True)
        self._arrow.parquet.write_table(self._arrow.Table.from_pylist(self._episodes), episodes)
        self._write_tasks(meta / "tasks.parquet")
        statistics = {
            name: _lerobot_statistics(name, entry) for name, entry in self._totals.items()
        }
        for name, content in (("info", information), ("stats", statistics)):
            text = json.dumps(content, indent=4) + "\n"
            (meta / f"{name}.json").write_text(text, encoding="utf-8")

    def _write_tasks(self, path: Path) -> None:
        """Write the table of tasks, whose metadata declare the task as the pandas index."""
        column_types = {"task_index": ("int64", "int64"), "task": ("unicode", "object")}
        columns = [
            {
                "name": name,
                "field_name": name,
                "pandas_type": pandas_type,
                "numpy_type": numpy_type,
                "metadata": None,
            }
            for name, (pandas_type, numpy_type) in column_types.items()
        ]
        metadata = {
            "index_columns": ["task"],
            "column_indexes": [],
            "columns": columns,
            "pandas_version": "2.2.0",
        }
        table = self._arrow.table(
            {
                "task_index": self._arrow.array([*self._tasks.values()]),
                "task": self._arrow.array([*self._tasks]),
            }
        )
        table = table.replace_schema_metadata({"pandas": json.dumps(metadata)})
        self._arrow.parquet.write_table(table, path)

    def _to_arrow(self, values: NDArray[Any]) -> Any:
        """Return an array (m,) or (m, n) as an Arrow array of numbers or lists."""
        if values.ndim == 1:
            return self._arrow.array(values)
        return self._arrow.FixedSizeListArray.from_arrays(
            self._arrow.array(values.reshape(-1)), values.shape[1]
        )


def _lerobot_statistics(name: str, statistics: _Statistics) -> dict[str, Any]:
    """Return the statistics of a feature in the layout of LeRobot: (3, 1, 1) for pictures."""
    values = statistics.to_dict()
    if name != PICTURES:
        return values
    return {
        quantity: value if quantity == "count" else [[[number]] for number in value]
        for quantity, value in values.items()
    }


class _Statistics:
    """Count, bounds, mean and sum of squared deviations of the columns of an array."""

    def __init__(self, count: int, bounds: tuple[Any, Any], mean: Any, squares: Any) -> None:
        self.count, self.bounds = count, bounds
        self.mean, self.squares = mean, squares

    @classmethod
    def of(cls, values: NDArray[Any]) -> _Statistics:
        """Return the statistics of an array (m, n)."""
        numbers = values.astype(float)
        mean = numbers.mean(axis=0)
        bounds = (numbers.min(axis=0), numbers.max(axis=0))
        return cls(len(numbers), bounds, mean, np.sum((numbers - mean) ** 2, axis=0))

    def combine(self, other: _Statistics) -> _Statistics:
        """Return the statistics of both, by the formula of Chan, Golub and LeVeque (1983)."""
        count, difference = self.count + other.count, other.mean - self.mean
        bounds = (
            np.minimum(self.bounds[0], other.bounds[0]),
            np.maximum(self.bounds[1], other.bounds[1]),
        )
        weight = self.count * other.count / count
        squares = self.squares + other.squares + difference**2 * weight
        return _Statistics(count, bounds, self.mean + difference * (other.count / count), squares)

    def to_dict(self) -> dict[str, Any]:
        """Return minimum, maximum, mean, standard deviation and count."""
        return {
            "min": self.bounds[0].tolist(),
            "max": self.bounds[1].tolist(),
            "mean": self.mean.tolist(),
            "std": np.sqrt(self.squares / self.count).tolist(),
            "count": [self.count],
        }


def png_bytes(picture: NDArray[np.uint8]) -> bytes:
    """Encode a picture (height, width, 3) as PNG."""
    with importing("PIL", "pictures", "pictures in datasets need"):
        from PIL import Image

    with io.BytesIO() as file:
        Image.fromarray(picture).save(file, format="PNG")
        return file.getvalue()
