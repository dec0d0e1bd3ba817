"""Datasets of solved problems, for learning: tables in Parquet, or episodes in the layout of LeRobot.

They are made of the results of a batch. A dataset of tables has a folder with a file for each of
:data:`TABLES`, whose rows are in the order of the problems. It also has a card with counts and
digests, and the scenes at the start as JSON, each once. Poses are ``[x, y, z, qx, qy, qz, qw]``, in
metres, of frames in the root frame of the scene unless said otherwise.

Invariants: the same results give the same rows, bit for bit. Rows are read and written in parts, so
that neither the dataset nor a part of it that grows with the number of problems is held in memory.
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
from tmkit.plans import Plan, SegmentKind
from tmkit.plans.export import motion_table
from tmkit.plans.lerobot import LeRobotWriter, png_bytes
from tmkit.robots import movable_frames
from tmkit.tamp.domains.loading import PythonDomain, load_plan_domain
from tmkit.tamp.domains.problems import derive_problem

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Dataset as ArrowDataset

TABLES: Mapping[str, str] = {
    "problems": "what was asked for and how it ended, a row for each problem",
    "failures": "why attempts at actions failed, most often first, of solved problems too",
    "scenes": "the scenes at the start, as JSON of tmkit",
    "states": "facts, configuration and poses before each action and at the end",
    "actions": "the actions of plans, what they change, and the grasp or place in words",
    "grasps": "the pose of the tool in the object and the fingers, for each grasp",
    "motions": "the segments of the motion: paths in joint space",
    "pictures": "PNG of each state",
    "clouds": "points that a depth camera sees of each state, in the root frame",
}
"""What the tables of a dataset hold, by name; ``pictures`` and ``clouds`` are there on request."""

_CARD, _ROWS_AT_A_TIME = "card.json", 256


@dataclass(frozen=True, kw_only=True)
class DatasetOptions:
    """Layout and contents of a dataset.

    Args:
        layout: ``parquet``: the tables; ``lerobot``: an episode for each plan, which all move the
            same joints.
        rate: frames of an episode [1/s], a whole number.
        picture_size: width and height of pictures [pixels]: of each state, or of each frame of an
            episode; none by default.
        points: largest number of points in the cloud of each state, for the tables; none by
            default.

    Raises:
        UnknownNameError: if there is no such layout.
        ConfigurationError: if ``points`` is negative, or is not 0 for episodes.
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
    domain: str | Path | PythonDomain | None = None,
    semantics: str | Path | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> None:
    """Write a dataset of the results of a batch. O(rows) time.

    Args:
        results: the folder of the results.
        folder: the folder of the dataset, which is made.
        options: layout, and the pictures and point clouds in it; the defaults if omitted.
        domain, semantics: those of the plans where they are not built in, as for
            :func:`tmkit.tamp.validate_plan`.
        on_progress: told after each problem.

    Raises:
        MissingFileError: if the batch has not ended, or a domain is neither built in nor passed.
        ConfigurationError: if an argument is invalid, or episodes move different joints.
        OutputError: if the folder exists, or cannot be written.
    """
    options = DatasetOptions() if options is None else options
    rows = open_results(results)
    view = _View(options.picture_size, options.points)

    def told() -> Iterator[BatchRow]:
        for number, row in enumerate(rows, start=1):
            yield row
            if on_progress is not None:
                on_progress(Progress("writing the dataset", number, len(rows), 0.0))

    if options.layout == "parquet":
        fill_new_folder(
            Path(folder), lambda made: _Tables(made, view, domain, semantics).write(rows, told())
        )
    else:
        fill_new_folder(
            Path(folder), lambda made: _write_episodes(told(), made, options.rate, view)
        )


class Dataset:
    """A dataset of tables, read as it is asked for.

    Args:
        folder: the folder that :func:`write_dataset` wrote.

    Attributes:
        card: counts and digests of the tables, and the digest of the results.

    Raises:
        MissingFileError: there is no dataset in it.
        FileFormatError: its card is damaged.
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
        """The names of the tables that are there."""
        return tuple(self.card["tables"])

    def table(self, name: str) -> ArrowDataset:
        """Return a table as a dataset of Arrow, which reads the columns and rows that are asked for.

        Args:
            name: of the table, see :data:`TABLES`.

        Raises:
            UnknownNameError: it is not there; the message names the nearest.
            FileFormatError: it is damaged.
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
            name: of the table.
            columns: all by default.
        """
        table = self.table(name)
        for part in table.to_batches(columns=list(columns) or None, batch_size=_ROWS_AT_A_TIME):
            yield from part.to_pylist()

    def check(self) -> None:
        """Compare the rows with the digests of the card. O(rows).

        Raises:
            FileFormatError: a table is not what the card says.
        """
        for name, said in self.card["tables"].items():
            digest, count = hashlib.sha256(), 0
            for row in self.rows(name):
                digest.update(_said(row))
                count += 1
            if (count, digest.hexdigest()) != (said["rows"], said["digest"]):
                raise FileFormatError.at(
                    self.folder / f"{name}.parquet", "the table is not what the card says"
                )

    def __repr__(self) -> str:
        said = ", ".join(f"{values['rows']} {name}" for name, values in self.card["tables"].items())
        return f"Dataset({said})"


class _View:
    """Draws states."""

    def __init__(self, size: tuple[int, int] | None, points: int) -> None:
        if size is not None and not all(1 <= pixels <= 4096 for pixels in size):
            raise ConfigurationError(f"pictures are 1 to 4096 pixels wide and high, not {size}")
        self.size, self.points = size, points

    def states(
        self, states: Sequence[tuple[SceneGraph, NDArray[np.float64]]]
    ) -> Iterator[tuple[NDArray[np.uint8] | None, NDArray[np.float32] | None]]:
        """Yield the picture and the cloud (n, 3) of each state of a plan, seen by one camera."""
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
                    seen = depth_points(simulation, camera)
                    chosen = seen[
                        np.linspace(0, len(seen) - 1, min(len(seen), self.points)).astype(int)
                    ]
                    cloud = (chosen @ camera.axes().T + np.array(camera.position)).astype(
                        np.float32
                    )
                yield picture, cloud


def _write_episodes(rows: Iterator[BatchRow], folder: Path, rate: float, view: _View) -> None:
    writer: LeRobotWriter | None = None
    for row in rows:
        plan = row.plan
        if plan is None:
            continue
        if writer is None:
            writer = LeRobotWriter(folder, robot=plan.robots[0].name, rate=rate)
        motion = motion_table(plan, rate=rate)
        pictures = None
        if view.size is not None:
            shown = [
                (
                    scene,
                    scene.configuration(
                        dict(zip(motion.joint_names, values, strict=True)), base=plan.q
                    ),
                )
                for scene, values in zip(motion.scenes, motion.positions, strict=True)
            ]
            pictures = [picture for picture, _ in view.states(shown) if picture is not None]
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


class _Tables:
    """Writes the tables of a dataset."""

    def __init__(
        self,
        folder: Path,
        view: _View,
        domain: str | Path | PythonDomain | None,
        semantics: str | Path | None,
    ) -> None:
        self._folder, self._view, self._domain, self._semantics = folder, view, domain, semantics
        wanted = {"pictures": view.size is not None, "clouds": view.points > 0}
        self._schemas = {name: kind for name, kind in _schemas().items() if wanted.get(name, True)}
        self._digests = {name: hashlib.sha256() for name in self._schemas}
        self._counts = dict.fromkeys(self._schemas, 0)
        self._waiting: dict[str, list[dict[str, Any]]] = {name: [] for name in self._schemas}
        self._scenes: set[str] = set()
        self._writers: dict[str, Any] = {}

    def write(self, results: BatchTable, rows: Iterator[BatchRow]) -> None:
        pa = arrow()
        for name, kind in self._schemas.items():
            path = self._folder / f"{name}.parquet"
            self._writers[name] = pa.parquet.ParquetWriter(
                path, kind, compression="zstd", version="2.6"
            )
        for row in rows:
            for name, found in self._rows(row):
                self._add(name, found)
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
        # what is read back is what is digested: Arrow may make 32 bits of 64
        self._waiting[name].append(row)
        self._counts[name] += 1
        if len(self._waiting[name]) == _ROWS_AT_A_TIME:
            self._flush(name)

    def _flush(self, name: str) -> None:
        table = arrow().Table.from_pylist(self._waiting[name], schema=self._schemas[name])
        for row in table.to_pylist():
            self._digests[name].update(_said(row))
        self._writers[name].write_table(table)
        self._waiting[name].clear()

    def _rows(self, row: BatchRow) -> Iterator[tuple[str, dict[str, Any]]]:
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
            for name, found in self._plan_rows(plan):
                yield name, {"problem": number, **found}

    def _plan_rows(self, plan: Plan) -> Iterator[tuple[str, dict[str, Any]]]:
        domain = load_plan_domain(plan, self._domain, self._semantics)
        problem = derive_problem(
            plan.scene, domain, q=plan.q, goal=plan.goal, metric=plan.metric, values=plan.values
        )
        types = {name: kinds[0] for name, kinds in problem.objects.items()}
        objects = [*movable_frames(plan.scene)]
        states = [(plan.scene, np.asarray(plan.q)), *((step.scene, step.q) for step in plan.steps)]
        facts = [frozenset(map(str, domain.state(scene, types, q))) for scene, q in states]
        for at, (scene, q) in enumerate(states):
            placed = scene.at(q)
            yield (
                "states",
                {
                    "state": at,
                    "facts": sorted(facts[at]),
                    "joint_names": [*scene.joint_names],
                    "q": [*map(float, q)],
                    "objects": objects,
                    "poses": [placed.pose(name).as_array().tolist() for name in objects],
                    "parents": [scene.parent(name) for name in objects],
                },
            )
        for at, step in enumerate(plan.steps):
            (scene, q), before, after = states[at], facts[at], facts[at + 1]
            yield (
                "actions",
                {
                    "step": at + 1,
                    "action": step.action.name,
                    "arguments": [*step.action.arguments],
                    "choice": step.choice,
                    "adds": sorted(after - before),
                    "deletes": sorted(before - after),
                    "cost": float(step.cost),
                },
            )
            for index, segment in enumerate(step.segments, start=1):
                arm = plan.arm(segment.arm)
                said = {"step": at + 1, "segment": index, "arm": segment.arm}
                if segment.kind is SegmentKind.GRASP and segment.held is not None:
                    seen = scene.pose(arm.tool, relative_to=segment.held, q=q)
                    fingers = dict(segment.gripper)
                    yield (
                        "grasps",
                        {
                            **said,
                            "object": segment.held,
                            "pose": seen.as_array().tolist(),
                            "finger_joints": [*fingers],
                            "fingers": [*map(float, fingers.values())],
                        },
                    )
                yield (
                    "motions",
                    {
                        **said,
                        "kind": segment.kind.value,
                        "joint_names": [*segment.joint_names],
                        "path": np.asarray(segment.path).tolist(),
                        "held": segment.held,
                        "into": segment.into,
                    },
                )
                scene, q = segment.end(scene, np.asarray(q))
        if self._view.size is not None or self._view.points:
            for at, (picture, cloud) in enumerate(self._view.states(states)):
                if picture is not None:
                    yield "pictures", {"state": at, "png": png_bytes(picture)}
                if cloud is not None:
                    yield "clouds", {"state": at, "points": cloud.tolist()}


def _said(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, sort_keys=True, default=bytes.hex).encode()


def _schemas() -> dict[str, pa.Schema]:
    pa = arrow()
    text, number, count = pa.string(), pa.float64(), pa.int64()
    texts, numbers = pa.list_(text), pa.list_(number)
    place = {"problem": count, "step": count, "segment": count, "arm": text}
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
            **place,
            "object": text,
            "pose": pa.list_(number, 7),
            "finger_joints": texts,
            "fingers": numbers,
        },
        "motions": {
            **place,
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
