"""Comparison of all descriptions of two robot packages with pinocchio, as a page.

Run by hand: ``python tests/benchmarks/urdf_table.py [--out docs/results/tables/urdf.md]
[--configurations 100] [--wheels DIR]``. The packages are pybullet_data and example_robot_data.
Every link of every robot is compared at random configurations. ``DIR`` has one folder for each
package more, in which its wheel is unpacked; of these, the files that pinocchio reads are counted,
and those that do not load are listed.
"""

from __future__ import annotations

import logging
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import deliver, markdown_head, table_parser
from support.urdf_comparison import Difference, example_robot_data, pybullet_data, worst_difference

from tmkit._support.source_location import ImportNote
from tmkit.errors import TmkitError
from tmkit.formats import load_scene

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Outcome:
    """Result of one file; ``difference`` is ``None`` if either reader rejects it."""

    name: str
    reason: str
    joints: int
    frames: int
    shapes: int
    seconds: float
    notes: tuple[ImportNote, ...]
    difference: Difference | None

    @property
    def agrees(self) -> bool:
        """Return whether pinocchio puts every link in the same place."""
        return self.difference is not None and self.difference.entry <= TOLERANCE


def run(path: Path, base: Path, configurations: int, *, package: str) -> Outcome:
    """Load one file and compare it."""
    name = f"{package} / {path.relative_to(base).as_posix()}"
    notes: list[ImportNote] = []
    began = time.perf_counter()
    try:
        scene = load_scene(path, on_note=notes.append)
    except TmkitError as error:
        line = error.data.get("line")
        reason = f"line {line}: {error.data.get('reason', error)}" if line else str(error)
        return Outcome(name, reason, 0, 0, 0, time.perf_counter() - began, tuple(notes), None)
    seconds = time.perf_counter() - began
    shapes = sum(len(scene.shapes(frame)) for frame in scene.frame_names)
    difference = worst_difference(path, scene, configurations=configurations)
    return Outcome(
        name,
        "",
        len(scene.joint_names),
        len(scene.frame_names),
        shapes,
        seconds,
        tuple(notes),
        difference,
    )


def pinocchio_reads(path: Path) -> bool:
    """Return whether pinocchio makes a model, without meshes, of the unchanged file."""
    import pinocchio

    try:
        pinocchio.buildModelFromUrdf(str(path))
    except (ValueError, RuntimeError):
        return False
    return True


def wheels_of(folder: Path, configurations: int) -> tuple[list[str], bool]:
    """Return the lines about unpacked wheels, and whether pinocchio agrees about all that loads."""
    lines, reasons, total, agrees = [], [], [0, 0, 0, 0], True
    for base in sorted(entry for entry in folder.iterdir() if entry.is_dir()):
        paths = [path for path in sorted(base.rglob("*.urdf")) if pinocchio_reads(path)]
        outcomes = [run(path, base, configurations, package=base.name) for path in paths]
        loaded = [outcome for outcome in outcomes if not outcome.reason]
        counts = [
            len(paths),
            len(loaded),
            sum(outcome.agrees for outcome in loaded),
            sum(bool(outcome.notes) for outcome in loaded),
        ]
        if paths:
            lines.append(f"| {base.name} | {' | '.join(map(str, counts))} |")
        total = [a + b for a, b in zip(total, counts, strict=True)]
        agrees &= counts[1] == counts[2]
        reasons += [
            f"* {outcome.name}, {plain(outcome.reason.replace(str(folder), ''))}"
            for outcome in outcomes
            if outcome.reason
        ]
    head = [
        "",
        "## Robots in other wheels",
        "",
        (
            f"**{total[1]} of the {total[0]} files load that pinocchio reads as they are, without"
            " meshes, in the wheels"
        ),
        (
            f"below; in {total[2]} of these it puts every link where tmkit does.** Files that do"
            " not load are listed."
        ),
        "",
        *markdown_head("wheel | files | loaded | agree | with notes"),
    ]
    return [*head, *lines, "", *reasons], agrees


def table_of(outcomes: list[Outcome], configurations: int) -> str:
    """Return the results as a Markdown page."""
    loaded = [outcome for outcome in outcomes if not outcome.reason]
    agreeing = sum(outcome.agrees for outcome in loaded)
    slowest = max(loaded, key=lambda outcome: outcome.seconds)
    lines = [
        "# Robot descriptions: loaded, and compared with pinocchio",
        "",
        (
            f"**{len(loaded)} of {len(outcomes)} files load; in {agreeing} of these pinocchio puts"
            " every link where tmkit"
        ),
        (
            f"does**, at {configurations} random configurations each, to {TOLERANCE:g} in every"
            " entry of its rotation"
        ),
        (
            f"matrix and, in metres, of its translation. The slowest took {slowest.seconds:.1f} s"
            f" ({slowest.name})."
        ),
        "",
        (
            "Every file of the packages pybullet_data and example_robot_data, without the thousand"
            " objects of"
        ),
        (
            "`random_urdfs`. A file that does not load is no complete robot description: the reason"
            " is given. Of files marked *"
        ),
        (
            "pinocchio reads a copy in which the errors noted below are corrected, since it does"
            " not read the original."
        ),
        "Written by `python tests/benchmarks/urdf_table.py --out docs/results/tables/urdf.md`, on"
        " two shared cores.",
        "",
        *markdown_head("file | joints | frames | shapes | notes | seconds | worst difference"),
    ]
    for member in outcomes:
        if member.reason or member.difference is None:
            lines.append(f"| {member.name} | not loaded | | | | {member.seconds:.2f} | |")
            continue
        mark = "*" if member.difference.mended else ""
        counts = f"{member.joints} | {member.frames} | {member.shapes} | {len(member.notes)}"
        lines.append(
            f"| {member.name} | {counts} | {member.seconds:.2f} |"
            f" {member.difference.entry:.1e}{mark} |"
        )
    lines += ["", "## Not loaded", ""]
    lines += [f"* {member.name}, {plain(member.reason)}" for member in outcomes if member.reason]
    lines += ["", "## Corrected or omitted", ""]
    for member in loaded:
        shown = [f"line {note.line}: {plain(note.text)}" for note in member.notes[:2]]
        more = [f"and {len(member.notes) - 2} more"] if len(member.notes) > 2 else []
        lines += [f"* {member.name}: {'; '.join([*shown, *more])}"] if member.notes else []
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Return a message for the page, without local folders and with Markdown escaped."""
    for base in (pybullet_data(), example_robot_data()):
        text = text.replace(f"{base}/", "")
    for character in "<>*_$":
        text = text.replace(character, f"\\{character}")
    return text


def main() -> int:
    """Run the table."""
    parser = table_parser(__doc__)
    parser.add_argument("--configurations", type=int, default=100)
    parser.add_argument(
        "--wheels", type=Path, default=None, help="folder of unpacked wheels, one folder each"
    )
    arguments = parser.parse_args()
    logging.getLogger("tmkit").setLevel(logging.ERROR)
    outcomes: list[Outcome] = []
    for package, base in (
        ("pybullet_data", pybullet_data()),
        ("example_robot_data", example_robot_data()),
    ):
        paths = [path for path in sorted(base.rglob("*.urdf")) if "random_urdfs" not in path.parts]
        outcomes += [run(path, base, arguments.configurations, package=package) for path in paths]
    text, agrees = table_of(outcomes, arguments.configurations), True
    if arguments.wheels is not None:
        lines, agrees = wheels_of(arguments.wheels, arguments.configurations)
        text += "\n".join(lines) + "\n"
    deliver(text, arguments.out)
    return 0 if agrees and all(outcome.agrees for outcome in outcomes if not outcome.reason) else 1


if __name__ == "__main__":
    sys.exit(main())
