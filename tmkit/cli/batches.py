"""The commands for many problems: ``tmkit batch`` and ``tmkit dataset``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from tmkit.cli.common import (
    AllowFolders,
    AsJson,
    DomainOption,
    Meshes,
    Packages,
    SemanticsOption,
    reading_of,
)
from tmkit.cli.reporting import print_json, progress, say


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
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Problems solved at a time here; by default one a core."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="A scheduler of dask, as tcp://host:8786, in place of this."
        ),
    ] = None,
    domain: DomainOption = None,
    semantics: SemanticsOption = None,
    allow_source: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-source",
            metavar="MODULE:NAME",
            help="A problem source that the file may name, whose code is run; repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
    allow: AllowFolders = None,
    package: Packages = None,
    meshes: Meshes = "load",
) -> None:
    """Solve many problems, each in a process of its own, and write one table of results.

    A batch that was stopped, by Ctrl-C or a crash, goes on when it is run again.
    """
    from tmkit.batch import load_batch, open_results, run_batch

    with progress("reading the batch"):
        problems = load_batch(
            file,
            domain=domain,
            semantics=semantics,
            reading=reading_of(allow, package, meshes),
            allow_sources=allow_source or (),
        )
    with progress("planning") as work:
        summary = run_batch(
            problems, output, scheduler=scheduler, workers=workers, on_progress=work
        )
    if as_json:
        print_json(summary.to_dict())
        return
    table = open_results(output).table("entry", "parameters", "status", "seconds")
    groups: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for entry, parameters, status, seconds in zip(
        *(column.to_pylist() for column in table.columns), strict=True
    ):
        groups.setdefault((entry, parameters), []).append((status, seconds or 0.0))
    for (entry, parameters), rows in groups.items():
        solved = sum(status == "solved" for status, _ in rows)
        times = sorted(seconds for _, seconds in rows)
        shown = "" if parameters == "{}" else f" {parameters}"
        say(
            f"{entry}{shown}: {solved} of {len(rows)} solved, median {times[len(times) // 2]:.2f} s"
        )
    resumed = f", {summary.resumed} of them before" if summary.resumed else ""
    said = ", ".join(f"{count} {status}" for status, count in summary.statuses.items())
    say(f"{summary.problems} problems{resumed}: {said}; {summary.seconds:.1f} s")
    say(f"Written to {output}")


def dataset(
    results: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of the results of a batch.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder to make.")],
    layout: Annotated[
        Literal["parquet", "lerobot"],
        typer.Option(help="Tables in Parquet, or an episode for each plan in LeRobot's layout."),
    ] = "parquet",
    rate: Annotated[float, typer.Option(help="Frames a second of episodes.")] = 30.0,
    pictures: Annotated[
        str | None,
        typer.Option(metavar="WIDTHxHEIGHT", help="Add pictures of this size, in pixels."),
    ] = None,
    points: Annotated[
        int, typer.Option(min=0, help="Add point clouds of at most so many points.")
    ] = 0,
    domain: DomainOption = None,
    semantics: SemanticsOption = None,
) -> None:
    """Write a dataset for learning: states, actions, grasps, motions, failures, pictures and point clouds."""
    from tmkit.batch import write_dataset
    from tmkit.batch.dataset import DatasetOptions

    size = None
    if pictures is not None:
        found = re.fullmatch(r"(\d{1,4})x(\d{1,4})", pictures)
        if found is None:
            raise typer.BadParameter(
                f"expected WIDTHxHEIGHT, as 160x120, not '{pictures}'", param_hint="--pictures"
            )
        size = int(found[1]), int(found[2])
    with progress("writing the dataset") as work:
        write_dataset(
            results,
            output,
            domain=domain,
            semantics=semantics,
            on_progress=work,
            options=DatasetOptions(layout=layout, rate=rate, picture_size=size, points=points),
        )
    say(f"Written to {output}")
