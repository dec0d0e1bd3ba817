"""Datasets for learning: Parquet tables or LeRobot episodes of the results of a batch.

A dataset of tables is a folder with a Parquet file for each of :data:`TABLES`, whose rows are in
the order of the problems. A card, ``card.json``, has counts and digests. Each scene at the start is
stored once, as JSON. Poses are ``[x, y, z, qx, qy, qz, qw]`` [m], relative to the root frame of the
scene, except for those of grasps.

Invariants: the same results give the same rows, bit for bit. Rows are read and written in parts, so
the memory does not grow with the number of problems.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tmkit._support.output import fill_new_folder
from tmkit._support.progress import Progress
from tmkit.batch.results import BatchRow, BatchTable, arrow, open_results
from tmkit.errors import ConfigurationError, FileFormatError, MissingFileError, UnknownNameError
from tmkit.formats import scene_to_dict
from tmkit.graph import SceneGraph
from tmkit.plans import Plan, PlanStep, SegmentKind
from tmkit.plans.export import motion_table
from tmkit.plans.lerobot import LeRobotWriter, png_bytes
from tmkit.robots import movable_frames
from tmkit.tamp.domains.loading import DomainSource, load_plan_domain

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Dataset as ArrowDataset

TABLES: Mapping[str, str] = {
    "problems": "problems with their goals, robots and results, one a row",
    "failures": "causes of failed attempts at actions, most frequent first",
    "scenes": "scenes at the start, as JSON of tmkit",
    "states": "facts, configuration and poses before each action and at the end",
    "actions": "actions of plans, their effects, and the description of the grasp or place",
    "grasps": "pose of the tool relative to the object and finger values of each grasp",
    "motions": "segments of the motion: paths in joint space",
    "pictures": "PNG of each state",
    "clouds": "points of a depth camera in each state, in the root frame",
}
"""Contents of the tables of a dataset, by name; ``pictures`` and ``clouds`` are optional."""

_CARD = "card.json"
"""Name of the file with counts and digests."""

_ROWS_PER_PART = 256
"""Number of rows that are read or written at a time."""

_MAX_PICTURE_SIZE = 4096
"""Largest width or height of a picture [pixels]."""


@dataclass(frozen=True, kw_only=True)
class DatasetOptions:
    """Layout and contents of a dataset.

    Args:
        layout: ``parquet`` for tables, or ``lerobot`` for one episode a plan. All episodes have the
            same joints.
        rate: frame rate of episodes, a whole number [1/s].
        picture_size: width and height of the picture of each state, or of each frame of an episode
            [pixels]. Defaults to no pictures.
        points: largest number of points in the cloud of each state. Only tables have clouds.
            Defaults to no clouds.

    Raises:
        UnknownNameError: if the layout is unknown.
        ConfigurationError: if ``points`` is negative, or positive for episodes.
    """

    layout: Literal["parquet", "lerobot"] = "parquet"
    rate: float = 30.0
    picture_size: tuple[int, int] | None = None
    points: int = 0

    def __post_init__(self) -> None:
        if self.layout not in ("parquet", "lerobot"):
            raise UnknownNameError.of("layout", self.layout, ("lerobot", "parquet"))
        if self.points < 0 or (self.points and self.layout == "lerobot"):
            raise ConfigurationError(
                f"points must be at least 0, and 0 for 'lerobot', not {self.points}"
            )


def write_dataset(
    results: str | Path,
    folder: str | Path,
    *,
    options: DatasetOptions | None = None,
    domain: DomainSource | None = None,
    semantics: str | Path | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> None:
    """Write a dataset of the results of a batch. O(rows) time.

    Args:
        results: folder of the results.
        folder: new folder for the dataset.
        options: layout, pictures and point clouds.
        domain, semantics: as for :func:`tmkit.tamp.validate_plan`. Required if those of the plans
            are not built in.
        on_progress: called after each problem.

    Raises:
        MissingFileError: if the batch has not ended, or a domain is neither built in nor passed.
        ConfigurationError: if an argument is invalid, or episodes have different joints.
        OutputError: if the folder exists, or cannot be written.
    """
    options = DatasetOptions() if options is None else options
    table = open_results(results)
    camera = _StateCamera(options.picture_size, options.points)
    rows = _report_rows(table, on_progress)
    if options.layout == "parquet":
        fill_new_folder(
            Path(folder),
            lambda path: _TableWriter(path, camera, domain, semantics).write(table, rows),
        )
    else:
        fill_new_folder(
            Path(folder), lambda path: _write_episodes(rows, path, options.rate, camera)
        )


def _report_rows(
    table: BatchTable, on_progress: Callable[[Progress], None] | None
) -> Iterator[BatchRow]:
    """Yield the rows of a table, and report progress after the use of each."""
    for number, row in enumerate(table, start=1):
        yield row
        if on_progress is not None:
            on_progress(Progress("writing the dataset", number, len(table), 0.0))


class Dataset:
    """Reader of a dataset of tables, which reads rows on request.

    Args:
        folder: folder written by :func:`write_dataset`.

    Attributes:
        card: counts and digests of the tables, and the digest of the results.

    Raises:
        MissingFileError: if the folder has no dataset.
        FileFormatError: if the card is invalid.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self.card: Mapping[str, Any] = json.loads(
                (self.folder / _CARD).read_text(encoding="utf-8")
            )
        except FileNotFoundError as error:
            raise MissingFileError(
                f"there is no dataset in '{folder}'", path=str(folder), nearest=None
            ) from error
        except ValueError as error:
            raise FileFormatError.at(
                self.folder / _CARD, f"the card cannot be read: {error}"
            ) from error

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables of this dataset."""
        return tuple(self.card["tables"])

    def table(self, name: str) -> ArrowDataset:
        """Return a table as an Arrow dataset, which reads columns and rows on request.

        Args:
            name: name of the table, one of :data:`TABLES`.

        Raises:
            UnknownNameError: if there is no such table; the message has the nearest name.
            FileFormatError: if the file of the table is invalid.
        """
        if name not in self.tables:
            raise UnknownNameError.of("table", name, self.tables)
        pa = arrow()
        import pyarrow.dataset

        try:
            return pyarrow.dataset.dataset(self.folder / f"{name}.parquet", format="parquet")
        except (pa.ArrowException, OSError) as error:
            raise FileFormatError.at(
                self.folder / f"{name}.parquet", f"the table cannot be read: {error}"
            ) from error

    def rows(self, name: str, *columns: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table, in order.

        Args:
            name: name of the table.
            columns: names of columns. Defaults to all.
        """
        table = self.table(name)
        for part in table.to_batches(columns=list(columns) or None, batch_size=_ROWS_PER_PART):
            yield from part.to_pylist()

    def check(self) -> None:
        """Compare the rows with the digests of the card. O(rows).

        Raises:
            FileFormatError: if a table differs from its digest in the card.
        """
        for name, contents in self.card["tables"].items():
            digest, count = hashlib.sha256(), 0
            for row in self.rows(name):
                digest.update(_digest_text(row))
                count += 1
            if (count, digest.hexdigest()) != (contents["rows"], contents["digest"]):
                raise FileFormatError.at(
                    self.folder / f"{name}.parquet", "the table differs from its digest in the card"
                )

    def __repr__(self) -> str:
        tables = self.card["tables"].items()
        counts = ", ".join(f"{contents['rows']} {name}" for name, contents in tables)
        return f"Dataset({counts})"


class _StateCamera:
    """Camera that renders the states of plans.

    Args:
        size: width and height of pictures [pixels]. None for no pictures.
        points: largest number of points in a cloud. 0 for no clouds.
    """

    def __init__(self, size: tuple[int, int] | None, points: int) -> None:
        if size is not None and not all(1 <= pixels <= _MAX_PICTURE_SIZE for pixels in size):
            raise ConfigurationError(
                f"pictures are 1 to {_MAX_PICTURE_SIZE} pixels wide and high, not {size}"
            )
        self.size, self.points = size, points

    def render_states(
        self, states: Sequence[tuple[SceneGraph, NDArray[np.float64]]]
    ) -> Iterator[tuple[NDArray[np.uint8] | None, NDArray[np.float32] | None]]:
        """Yield the picture and the cloud (n, 3) of each state of a plan, from one camera pose.

        Args:
            states: scenes with their configurations (n_joints,).
        """
        from tmkit.simulation import Simulation, depth_points, fit_camera, render
        from tmkit.simulation.rendering.studio import StillScene

        width, height = self.size or (160, 120)
        with Simulation.from_scene(*states[0]) as simulation:
            camera = fit_camera(simulation, width=width, height=height)
            for scene, q in states:
                still = StillScene(scene, q)
                simulation.set_configuration(q)
                for name in simulation.objects:
                    simulation.set_object_pose(name, still.pose(name))
                picture = cloud = None
                if self.size is not None:
                    picture = render(simulation, camera, supersampling=1.0, renderer="tiny")
                if self.points:
                    points = depth_points(simulation, camera)
                    count = min(len(points), self.points)
                    sample = points[np.linspace(0, len(points) - 1, count).astype(int)]
                    cloud = sample @ camera.axes().T + np.array(camera.position)
                    cloud = cloud.astype(np.float32)
                yield picture, cloud


def _write_episodes(
    rows: Iterator[BatchRow], folder: Path, rate: float, camera: _StateCamera
) -> None:
    """Write an episode for each plan, in the layout of LeRobot.

    Raises:
        ConfigurationError: if no problem has a plan, or episodes have different joints.
    """
    writer: LeRobotWriter | None = None
    for row in rows:
        plan = row.plan
        if plan is None:
            continue
        if writer is None:
            writer = LeRobotWriter(folder, robot=plan.robots[0].name, rate=rate)
        motion = motion_table(plan, rate=rate)
        pictures = None
        if camera.size is not None:
            states = [
                (scene, _full_configuration(scene, motion.joint_names, values, plan))
                for scene, values in zip(motion.scenes, motion.positions, strict=True)
            ]
            images = camera.render_states(states)
            pictures = [picture for picture, _ in images if picture is not None]
        try:
            goal = [] if plan.goal == "(and)" else plan.goal.split()
            task = " ".join([*goal, *map(str, plan.continuous_goals)])
            writer.add(
                motion.positions,
                velocities=motion.velocities,
                accelerations=motion.accelerations,
                joint_names=motion.joint_names,
                task=task,
                pictures=pictures,
            )
        except ConfigurationError as error:
            raise ConfigurationError(f"{row['key']}: {error}") from error
    if writer is None:
        raise ConfigurationError("no problem of the batch has a plan: there are no episodes")
    writer.close()


def _full_configuration(
    scene: SceneGraph, joint_names: Sequence[str], values: NDArray[np.float64], plan: Plan
) -> NDArray[np.float64]:
    """Return the configuration (n_joints,) with values of some joints, and those of the start."""
    return scene.configuration(dict(zip(joint_names, values, strict=True)), base=plan.q)


class _TableWriter:
    """Writer of the tables of a dataset.

    Args:
        folder: folder of the dataset.
        camera: camera of pictures and clouds.
        domain, semantics: as for :func:`write_dataset`.
    """

    def __init__(
        self,
        folder: Path,
        camera: _StateCamera,
        domain: DomainSource | None,
        semantics: str | Path | None,
    ) -> None:
        self._folder, self._camera = folder, camera
        self._domain, self._semantics = domain, semantics
        optional = {"pictures": camera.size is not None, "clouds": camera.points > 0}
        schemas = _schemas().items()
        self._schemas = {name: schema for name, schema in schemas if optional.get(name, True)}
        self._digests = {name: hashlib.sha256() for name in self._schemas}
        self._counts = dict.fromkeys(self._schemas, 0)
        self._buffers: dict[str, list[dict[str, Any]]] = {name: [] for name in self._schemas}
        self._scenes: set[str] = set()
        self._writers: dict[str, Any] = {}

    def write(self, results: BatchTable, rows: Iterator[BatchRow]) -> None:
        """Write all tables and the card.

        Args:
            results: results of the batch, for the card.
            rows: rows of the results.
        """
        pa = arrow()
        for name, schema in self._schemas.items():
            path = self._folder / f"{name}.parquet"
            self._writers[name] = pa.parquet.ParquetWriter(
                path, schema, compression="zstd", version="2.6"
            )
        for row in rows:
            for name, table_row in self._table_rows(row):
                self._add(name, table_row)
        for name in self._schemas:
            self._flush(name)
            self._writers[name].close()
        card = {
            "tables": {
                name: {
                    "rows": self._counts[name],
                    "digest": self._digests[name].hexdigest(),
                    "holds": TABLES[name],
                }
                for name in self._schemas
            },
            "results": {name: results.card[name] for name in ("problems", "statuses", "digest")},
        }
        (self._folder / _CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")

    def _add(self, name: str, row: dict[str, Any]) -> None:
        self._buffers[name].append(row)
        self._counts[name] += 1
        if len(self._buffers[name]) == _ROWS_PER_PART:
            self._flush(name)

    def _flush(self, name: str) -> None:
        """Write the buffered rows of a table.

        The digest covers the rows of the Arrow table, in which values may have 32 bits.
        """
        table = arrow().Table.from_pylist(self._buffers[name], schema=self._schemas[name])
        for row in table.to_pylist():
            self._digests[name].update(_digest_text(row))
        self._writers[name].write_table(table)
        self._buffers[name].clear()

    def _table_rows(self, row: BatchRow) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the names of tables and rows of a problem, with its scene if it is new."""
        number, plan, diagnosis = row["number"], row.plan, json.loads(row["diagnosis"] or "{}")
        if row["scene"] not in (None, *self._scenes) and (scene := row.scene) is not None:
            self._scenes.add(row["scene"])
            yield (
                "scenes",
                {"scene": row["scene"], "json": json.dumps(scene_to_dict(scene), sort_keys=True)},
            )
        names = (
            "key",
            "entry",
            "seed",
            "parameters",
            "status",
            "explanation",
            "scene",
            "is_valid",
            "ends_well",
        )
        yield (
            "problems",
            {
                "problem": number,
                **{name: row[name] for name in names},
                "actions": len(row["actions"]),
                "cost": row["cost"],
                "path_length": row["path_length"],
                "domain": plan and plan.domain,
                "goal": plan and " ".join(plan.goal.split()),
                "robots": plan and [arm.name for arm in plan.robots],
                "continuous_goals": plan and [*map(str, plan.continuous_goals)],
            },
        )
        for action in diagnosis.get("actions", ()):
            for cause in action["causes"]:
                yield (
                    "failures",
                    {
                        "problem": number,
                        "action": action["action"],
                        "attempts": action["failures"],
                        "cause": str(cause["cause"]),
                        "phase": str(cause["phase"]),
                        "count": cause["count"],
                        "in_the_way": [*cause["in_the_way"]],
                    },
                )
        if plan is not None:
            for name, table_row in self._plan_rows(plan):
                yield name, {"problem": number, **table_row}

    def _plan_rows(self, plan: Plan) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the names of tables and rows of a plan, without the number of its problem."""
        domain = load_plan_domain(plan, self._domain, self._semantics)
        problem = domain.problem(
            plan.scene, plan.q, plan.goal, metric=plan.metric, values=plan.values
        )
        types = {name: kinds[0] for name, kinds in problem.objects.items()}
        objects = [*movable_frames(plan.scene)]
        states = [(plan.scene, np.asarray(plan.q)), *((step.scene, step.q) for step in plan.steps)]
        facts = [frozenset(map(str, domain.state(scene, q, objects=types))) for scene, q in states]
        for index, (scene, q) in enumerate(states):
            kinematics = scene.at(q)
            yield (
                "states",
                {
                    "state": index,
                    "facts": sorted(facts[index]),
                    "joint_names": [*scene.joint_names],
                    "q": [*map(float, q)],
                    "objects": objects,
                    "poses": [kinematics.pose(name).as_array().tolist() for name in objects],
                    "parents": [scene.parent(name) for name in objects],
                },
            )
        for index, step in enumerate(plan.steps):
            before, after = facts[index], facts[index + 1]
            yield (
                "actions",
                {
                    "step": index + 1,
                    "action": step.action.name,
                    "arguments": [*step.action.arguments],
                    "choice": step.choice,
                    "adds": sorted(after - before),
                    "deletes": sorted(before - after),
                    "cost": float(step.cost),
                },
            )
            scene, q = states[index]
            for name, table_row in _segment_rows(plan, step, scene, q):
                yield name, {"step": index + 1, **table_row}
        if self._camera.size is not None or self._camera.points:
            for index, (picture, cloud) in enumerate(self._camera.render_states(states)):
                if picture is not None:
                    yield "pictures", {"state": index, "png": png_bytes(picture)}
                if cloud is not None:
                    yield "clouds", {"state": index, "points": cloud.tolist()}


def _segment_rows(
    plan: Plan, step: PlanStep, scene: SceneGraph, q: NDArray[np.float64]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the names of tables and rows of the segments of a step, without its number.

    Args:
        plan: plan with the arms.
        step: step of the plan.
        scene: scene before the step.
        q: (n_joints,) configuration before the step.
    """
    for number, segment in enumerate(step.segments, start=1):
        keys = {"segment": number, "arm": segment.arm}
        if segment.kind is SegmentKind.GRASP and segment.held is not None:
            tool = plan.arm(segment.arm).tool
            object_from_tool = scene.pose(tool, relative_to=segment.held, q=q)
            fingers = dict(segment.gripper)
            yield (
                "grasps",
                {
                    **keys,
                    "object": segment.held,
                    "pose": object_from_tool.as_array().tolist(),
                    "finger_joints": [*fingers],
                    "fingers": [*map(float, fingers.values())],
                },
            )
        yield (
            "motions",
            {
                **keys,
                "kind": segment.kind.value,
                "joint_names": [*segment.joint_names],
                "path": np.asarray(segment.path).tolist(),
                "held": segment.held,
                "into": segment.into,
            },
        )
        scene, q = segment.end(scene, np.asarray(q))


def _digest_text(row: Mapping[str, Any]) -> bytes:
    """Return the text of a row that its digest covers."""
    return json.dumps(row, sort_keys=True, default=bytes.hex).encode()


def _schemas() -> dict[str, pa.Schema]:
    """Return the Arrow schema of each table."""
    pa = arrow()
    text, number, count = pa.string(), pa.float64(), pa.int64()
    texts, numbers = pa.list_(text), pa.list_(number)
    segment_keys = {"problem": count, "step": count, "segment": count, "arm": text}
    fields: dict[str, dict[str, Any]] = {
        "problems": {
            "problem": count,
            "key": text,
            "entry": text,
            "seed": count,
            "parameters": text,
            "domain": text,
            "robots": texts,
            "goal": text,
            "continuous_goals": texts,
            "scene": text,
            "status": text,
            "explanation": text,
            "actions": count,
            "cost": number,
            "path_length": number,
            "is_valid": pa.bool_(),
            "ends_well": pa.bool_(),
        },
        "failures": {
            "problem": count,
            "action": text,
            "attempts": count,
            "phase": text,
            "cause": text,
            "count": count,
            "in_the_way": texts,
        },
        "scenes": {"scene": text, "json": text},
        "states": {
            "problem": count,
            "state": count,
            "facts": texts,
            "joint_names": texts,
            "q": numbers,
            "objects": texts,
            "poses": pa.list_(pa.list_(number, 7)),
            "parents": texts,
        },
        "actions": {
            "problem": count,
            "step": count,
            "action": text,
            "arguments": texts,
            "choice": text,
            "adds": texts,
            "deletes": texts,
            "cost": number,
        },
        "grasps": {
            **segment_keys,
            "object": text,
            "pose": pa.list_(number, 7),
            "finger_joints": texts,
            "fingers": numbers,
        },
        "motions": {
            **segment_keys,
            "kind": text,
            "joint_names": texts,
            "path": pa.list_(numbers),
            "held": text,
            "into": text,
        },
        "pictures": {"problem": count, "state": count, "png": pa.binary()},
        "clouds": {"problem": count, "state": count, "points": pa.list_(pa.list_(pa.float32(), 3))},
    }
    return {name: pa.schema(list(columns.items())) for name, columns in fields.items()}
