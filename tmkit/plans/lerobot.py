"""Datasets in the layout of LeRobot, version 3.0 (https://github.com/huggingface/lerobot): an episode for each plan.

State and action are positions of joints; the action is the state of the next frame. Pictures, where
there are some, are PNG in the table itself. Episodes are written as they come: none is held in
memory.
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
_PATTERN = "chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_FIRST = _PATTERN.format(chunk_index=0, file_index=0)


class LeRobotWriter:
    """Writes a dataset; :meth:`close` completes it.

    Args:
        folder: an empty folder.
        robot: name of the robot.
        rate: frames a second.

    Raises:
        ConfigurationError: the rate is no whole number.
        MissingExtraError: ``pyarrow`` is needed.
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
            positions: (m, n) radians or metres, a row for each frame; likewise ``velocities``,
                ``accelerations``.
            joint_names: the n joints.
            task: what is done, in words or PDDL.
            pictures: (height, width, 3) for each frame; all episodes have some or none has.

        Raises:
            ConfigurationError: it moves other joints than the first episode, or its pictures have
                another size.
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
        found = {
            name: _Statistics.of(values.reshape(count, -1)) for name, values in columns.items()
        }
        arrays = {name: self._array(values) for name, values in columns.items()}
        if pictures is not None:
            found[PICTURES] = _Statistics.of(
                np.concatenate([one.reshape(-1, 3) for one in pictures]) / 255.0
            )
            rows = [{"bytes": png_bytes(one), "path": None} for one in pictures]
            kind = self._arrow.struct(
                [("bytes", self._arrow.binary()), ("path", self._arrow.string())]
            )
            arrays[PICTURES] = self._arrow.array(rows, kind)
        table = self._arrow.table(arrays)
        if self._data is None:
            path = self._folder / "data" / _FIRST
            path.parent.mkdir(parents=True)
            self._data = self._arrow.parquet.ParquetWriter(path, table.schema)
        self._data.write_table(table)
        for name, one in found.items():
            self._totals[name] = self._totals[name].with_other(one) if name in self._totals else one
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
                **{
                    f"stats/{name}/{what}": value
                    for name, one in found.items()
                    for what, value in self._said(name, one).items()
                },
            }
        )
        self._frames += count

    def close(self) -> None:
        """Write what describes the dataset.

        Raises:
            ConfigurationError: it has no episodes.
        """
        if self._data is None:
            raise ConfigurationError(
                "a dataset of LeRobot has at least one episode: there is no plan"
            )
        self._data.close()
        width = len(self._names)
        numbers = {"dtype": "float32", "shape": [width], "names": [*self._names]}
        counters = ("frame_index", "episode_index", "index", "task_index")
        moving = ("observation.state", "action", "observation.velocity", "observation.acceleration")
        features: dict[str, Any] = {
            **dict.fromkeys(moving, numbers),
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
            "data_path": f"data/{_PATTERN}",
            "video_path": None,
            "features": features,
        }
        pa = self._arrow
        episodes = self._folder / "meta" / "episodes" / _FIRST
        episodes.parent.mkdir(parents=True)
        pa.parquet.write_table(pa.Table.from_pylist(self._episodes), episodes)
        # the task is the index of a table of pandas, which says so in the metadata of the schema
        kinds = {"task_index": ("int64", "int64"), "task": ("unicode", "object")}
        known = [
            {
                "name": name,
                "field_name": name,
                "pandas_type": kind,
                "numpy_type": numpy_kind,
                "metadata": None,
            }
            for name, (kind, numpy_kind) in kinds.items()
        ]
        index = {
            "index_columns": ["task"],
            "column_indexes": [],
            "columns": known,
            "pandas_version": "2.2.0",
        }
        tasks = pa.table(
            {"task_index": pa.array([*self._tasks.values()]), "task": pa.array([*self._tasks])}
        )
        pa.parquet.write_table(
            tasks.replace_schema_metadata({"pandas": json.dumps(index)}),
            self._folder / "meta" / "tasks.parquet",
        )
        stats = {name: self._said(name, one) for name, one in self._totals.items()}
        for name, content in (("info", information), ("stats", stats)):
            (self._folder / "meta" / f"{name}.json").write_text(
                json.dumps(content, indent=4) + "\n", encoding="utf-8"
            )

    def _array(self, values: NDArray[Any]) -> Any:
        if values.ndim == 1:
            return self._arrow.array(values)
        return self._arrow.FixedSizeListArray.from_arrays(
            self._arrow.array(values.reshape(-1)), values.shape[1]
        )

    def _said(self, name: str, one: _Statistics) -> dict[str, Any]:
        """Return statistics as LeRobot has them: of pictures for each channel, (3, 1, 1)."""
        said = one.to_dict()
        if name != PICTURES:
            return said
        return {
            what: value if what == "count" else [[[number]] for number in value]
            for what, value in said.items()
        }


class _Statistics:
    """Least, greatest, mean and variance of the columns of an array, which can be added up."""

    def __init__(self, count: int, bounds: tuple[Any, Any], mean: Any, squares: Any) -> None:
        self.count, self.bounds, self.mean, self.squares = count, bounds, mean, squares

    @classmethod
    def of(cls, values: NDArray[Any]) -> _Statistics:
        numbers = values.astype(float)
        mean = numbers.mean(axis=0)
        bounds = (numbers.min(axis=0), numbers.max(axis=0))
        return cls(len(numbers), bounds, mean, np.sum((numbers - mean) ** 2, axis=0))

    def with_other(self, other: _Statistics) -> _Statistics:
        """Return the statistics of both, by the formula of Chan, Golub and LeVeque (1983)."""
        count, change = self.count + other.count, other.mean - self.mean
        bounds = (
            np.minimum(self.bounds[0], other.bounds[0]),
            np.maximum(self.bounds[1], other.bounds[1]),
        )
        squares = self.squares + other.squares + change**2 * (self.count * other.count / count)
        return _Statistics(count, bounds, self.mean + change * (other.count / count), squares)

    def to_dict(self) -> dict[str, Any]:
        return {
            "min": self.bounds[0].tolist(),
            "max": self.bounds[1].tolist(),
            "mean": self.mean.tolist(),
            "std": np.sqrt(self.squares / self.count).tolist(),
            "count": [self.count],
        }


def png_bytes(picture: NDArray[np.uint8]) -> bytes:
    """Return a picture (height, width, 3) as PNG."""
    with importing("PIL", "pictures", "pictures in datasets need"):
        from PIL import Image

    with io.BytesIO() as file:
        Image.fromarray(picture).save(file, format="PNG")
        return file.getvalue()
