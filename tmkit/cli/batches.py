"""Commands for sets of problems: ``tmkit batch`` and ``tmkit dataset``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from tmkit.cli.common import AsJson, DomainOptions, SceneFileOptions
from tmkit.cli.reporting import print_json, progress, say


@dataclass(frozen=True)
class WorkerOptions:
    """Processes or scheduler that solve the problems of a batch."""

    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Problems solved at a time here; by default one a core."),
    ] = None
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="A scheduler of dask, as tcp://host:8786, in place of this."
        ),
    ] = None


@dataclass(frozen=True)
class DatasetContent:
    """Layout of a dataset, and the observations that it contains."""

    layout: Annotated[
        Literal["parquet", "lerobot"],
        typer.Option(help="Tables in Parquet, or an episode for each plan in LeRobot's layout."),
    ] = "parquet"
    rate: Annotated[float, typer.Option(help="Frames a second of episodes.")] = 30.0
    pictures: Annotated[
        str | None,
        typer.Option(metavar="WIDTHxHEIGHT", help="Add pictures of this size, in pixels."),
    ] = None
    points: Annotated[
        int, typer.Option(min=0, help="Add point clouds of at most so many points.")
    ] = 0


def batch(
    file: Annotated[
        Path, typer.Argument(metavar="BATCH.toml", help="The problems, seeds and options.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Folder of the results; a batch goes on in its own.",
        ),
    ],
    *,
    workers: WorkerOptions,
    domain: DomainOptions,
    allow_source: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-source",
            metavar="MODULE:NAME",
            help="A problem source that the file may name, whose code is run; repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
    scene_files: SceneFileOptions,
) -> None:
    """Solve many problems, each in its own process, and write one table of results.

    An interrupted batch continues when it is run again.
    """
    from tmkit.batch import load_batch, open_results, run_batch

    with progress("reading the batch"):
        problems = load_batch(
            file,
            domain=domain.domain,
            semantics=domain.semantics,
            reading=scene_files.reading_options(),
            allow_sources=allow_source or (),
        )
    with progress("planning") as work:
        summary = run_batch(
            problems, output, scheduler=workers.scheduler, workers=workers.workers, on_progress=work
        )
    if as_json:
        print_json(summary.to_dict())
        return
    table = open_results(output).table("entry", "parameters", "status", "seconds")
    _print_groups(zip(*(column.to_pylist() for column in table.columns), strict=True))
    resumed = f", {summary.resumed} of them before" if summary.resumed else ""
    counts = ", ".join(f"{count} {status}" for status, count in summary.statuses.items())
    say(f"{summary.problems} problems{resumed}: {counts}; {summary.seconds:.1f} s")
    say(f"Written to {output}")


def _print_groups(rows: Iterable[tuple[str, str, str, float | None]]) -> None:
    """Print the success rate and the median time of each entry of a batch with its parameters.

    Args:
        rows: entry, parameters, status and planning time [s] of each problem.
    """
    groups: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for entry, parameters, status, seconds in rows:
        groups.setdefault((entry, parameters), []).append((status, seconds or 0.0))
    for (entry, parameters), runs in groups.items():
        solved = sum(status == "solved" for status, _ in runs)
        times = sorted(seconds for _, seconds in runs)
        median = times[len(times) // 2]
        name = entry if parameters == "{}" else f"{entry} {parameters}"
        say(f"{name}: {solved} of {len(runs)} solved, median {median:.2f} s")


def dataset(
    results: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of the results of a batch.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder to make.")],
    *,
    content: DatasetContent,
    domain: DomainOptions,
) -> None:
    """Write a dataset for learning from the results of a batch.

    It contains states, actions, grasps, motions, failures, pictures and point clouds.
    """
    from tmkit.batch.dataset import DatasetOptions, write_dataset

    size = None
    if content.pictures is not None:
        match = re.fullmatch(r"(\d{1,4})x(\d{1,4})", content.pictures)
        if match is None:
            raise typer.BadParameter(
                f"expected WIDTHxHEIGHT, as 160x120, not '{content.pictures}'",
                param_hint="--pictures",
            )
        size = int(match[1]), int(match[2])
    options = DatasetOptions(
        layout=content.layout, rate=content.rate, picture_size=size, points=content.points
    )
    with progress("writing the dataset") as work:
        write_dataset(
            results,
            output,
            domain=domain.domain,
            semantics=domain.semantics,
            on_progress=work,
            options=options,
        )
    say(f"Written to {output}")
