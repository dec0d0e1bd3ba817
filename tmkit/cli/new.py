"""``tmkit new``: a commented scene or domain that plans as it is, and the description of an arm, tried on a cube."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tmkit._support.data import data_path
from tmkit._support.terminal import printable
from tmkit.cli.common import (
    AllowFolders,
    Meshes,
    Packages,
    Scenes,
    Seed,
    load,
    reading_of,
    require_writable,
)
from tmkit.cli.inputs import joint_values
from tmkit.cli.reporting import fail, progress, say
from tmkit.cli.robots import inferred_arm, pick_a_cube
from tmkit.cli.viewing import wait_for_browser
from tmkit.errors import OutputError, TmkitError, UnknownNameError
from tmkit.formats.robray.format import ROBRAY

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph
    from tmkit.robots import Manipulator
    from tmkit.robots.infer_arm import InferredArm

_SAMPLES = 500  # random configurations that are looked at
_AS_INFERRED, _NO_HAND = "as inferred", "none"


def robot(
    scenes: Scenes,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="The file to write.")
    ] = None,
    base: Annotated[
        str | None, typer.Option(metavar="FRAME", help="The frame that the arm stands on.")
    ] = None,
    tip: Annotated[str | None, typer.Option(metavar="FRAME", help="The frame of the hand.")] = None,
    tool: Annotated[
        str | None, typer.Option(metavar="FRAME", help="The frame between the fingertips.")
    ] = None,
    hand: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|parallel_gripper|suction_cup",
            help="A hand to mount at the end of the arm, z away from it.",
        ),
    ] = None,
    ready: Annotated[
        str | None, typer.Option(metavar="k=v,...", help="Joint values where plans start.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Take what is inferred without a question.")
    ] = False,
    view: Annotated[
        bool, typer.Option("--view", help="Show the result in the browser; Ctrl-C ends it.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the robot with the cube.")
    ] = None,
    seed: Seed = 0,
    allow: AllowFolders = None,
    package: Packages = None,
    meshes: Meshes = "load",
) -> None:
    """Describe a robot's arm and hand: infer them, ask on a terminal where that is uncertain, and try to pick a cube.

    A tool frame or a hand that is added to the robot comes into a scene beside the description.
    """
    from tmkit.formats import write_json_scene
    from tmkit.robots import check_robot, write_manipulator

    target = out if out is not None else Path(f"{Path(scenes[0]).stem}.toml")
    if target.suffix != ".toml":
        raise typer.BadParameter(f"'{target}' does not end in .toml", param_hint="--out")
    _require_new(target)
    if picture is not None:
        require_writable(picture)
    notes: list[object] = []  # 'tmkit robot check' prints them
    loaded = load(scenes, reading=reading_of(allow, package, meshes), on_note=notes.append)
    assistant = _Assistant(
        loaded,
        target.stem,
        base,
        tip,
        tool,
        hand,
        seed,
        lambda name: load([name], reading=reading_of(allow, package, meshes)),
    )
    asks = not yes and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    overlaps = assistant.allow_overlaps(asks=asks)
    found = assistant.ask() if asks else assistant.infer()
    if asks and ready is None and not found.missing:
        arm = _ask(
            "Ready configuration: joint=value,...",
            _AS_INFERRED,
            lambda text: _with_ready(found, text),
        )
    else:
        arm = _with_ready(found, _AS_INFERRED if ready is None else ready)
    missing, lines, shown = found.missing, (*overlaps, *found.inferred), None
    if not missing:
        changed = target.with_suffix(".json") if found.scene != loaded else None
        if changed is not None:
            _require_new(changed)
        picked, missing, tried = pick_a_cube(found.scene, arm, seed=seed, picture=picture)
        lines, shown = (*lines, *picked), tried.result
        if missing:
            with progress("checking the robot"):
                report = check_robot(found.scene, arm, samples=_SAMPLES, seed=seed)
            missing = next(iter(report.problems), missing)
        heading = (
            f"The arm of {Path(scenes[0]).name}, inferred by 'tmkit new robot'; correct what is"
            " wrong:"
        )
        write_manipulator(
            arm, target, notes=(heading, *lines, *([f"missing: {missing}"] if missing else ()))
        )
        if changed is not None:
            write_json_scene(found.scene, changed)
        for line in (*picked, f"Written to {target}"):
            say(line)
        if changed is not None:
            say(
                f"Written to {changed}: the robot with what was added to it; use it with the"
                " description"
            )
    if view:
        from tmkit.visualization import Viewer

        q = arm.ready_configuration(found.scene) if shown is None else None
        with Viewer(found.scene if shown is None else shown, q=q) as viewer:
            wait_for_browser(viewer, opens=True)
    if missing:
        fail(f"missing: {missing}")


@dataclass
class _Assistant:
    """Infers the arm of a robot with what the user has given."""

    loaded: SceneGraph
    name: str
    base: str | None
    tip: str | None
    tool: str | None
    hand: str | None
    seed: int
    load: Callable[[str], SceneGraph]

    def allow_overlaps(self, *, asks: bool) -> tuple[str, ...]:
        """Let pairs touch whose shapes overlap by their making, unless the user says no; return what was allowed."""
        from tmkit.robots.robot_check import overlapping_pairs

        with progress("looking for shapes that overlap"):
            pairs = overlapping_pairs(self.loaded, samples=_SAMPLES, seed=self.seed)
        lines = tuple(
            f"collisions: '{a}' and '{b}' overlap in most configurations: allowed" for a, b in pairs
        )
        for line in lines:
            say(f"inferred: {line}")
        if pairs and asks and not typer.confirm("May these overlap?", default=True, err=True):
            return ()
        for a, b in pairs:
            self.loaded = self.loaded.allow_collision(a, b, reason="always")
        return lines

    def infer(self) -> InferredArm:
        """Infer the arm, and print what speaks for it."""
        from tmkit.robots.hands import mount_hand

        scene = self.loaded
        hand = None if self.hand is None else self.load(self.hand)
        with progress("looking for the arm"):
            if hand is not None:
                bare = inferred_arm(
                    scene, base=self.base, tip=self.tip, name=self.name, seed=self.seed
                ).manipulator
                scene = mount_hand(scene, hand, tip=bare.tip, joints=bare.joints)
            found = inferred_arm(
                scene, base=self.base, tip=self.tip, tool=self.tool, name=self.name, seed=self.seed
            )
        for line in found.inferred:
            say(f"inferred: {line}")
        return found

    def ask(self) -> InferredArm:
        """Infer the arm, and ask where that is uncertain."""
        found = self.infer()
        if self.tip is None and found.other_tips:
            self.tip = _choose(
                "Which arm, by the frame of its hand?", (found.manipulator.tip, *found.other_tips)
            )
            found = found if self.tip == found.manipulator.tip else self.infer()
        if found.missing and self.hand is None:
            say(f"missing: {found.missing}")
            self.hand = _ask(
                "A hand to mount: a file, parallel_gripper, suction_cup", _NO_HAND, self._known_hand
            )
            found = found if self.hand is None else self.infer()
        if found.confidence in ("low", "medium") and not typer.confirm(
            "Is this the hand?", default=True, err=True
        ):
            fail(
                "Nothing is written: name the frame of the hand by --tip, or mount a hand by"
                " --hand."
            )
        if self.tool is None and found.other_tools:
            tool = _choose("Which frame is the tool?", (found.added_tool, *found.other_tools))
            self.tool = None if tool == found.added_tool else tool
            found = found if self.tool is None else self.infer()
        return found

    def _known_hand(self, name: str) -> str | None:
        if name == _NO_HAND:
            return None
        self.load(name)
        return name


def _ask(question: str, default: str, parse: Callable[[str], Any]) -> Any:
    """Return the answer to a question, which is put again while the answer is refused."""

    def value(text: str) -> Any:
        try:
            return parse(text)
        except TmkitError as error:
            raise typer.BadParameter(printable(str(error))) from None

    return typer.prompt(printable(question), default=default, value_proc=value, err=True)


def _choose(question: str, frames: Sequence[str]) -> str:
    """Return one of some frames, by default the first."""

    def known(text: str) -> str:
        if text not in frames:
            raise UnknownNameError.of("frame", text, frames)
        return text

    chosen: str = _ask(f"{question} {', '.join(frames)}", frames[0], known)
    return chosen


def _with_ready(found: InferredArm, text: str) -> Manipulator:
    """Return the arm with joint values of the user in its ready configuration."""
    arm = found.manipulator
    if text == _AS_INFERRED:
        return arm
    values = joint_values(text, option="--ready")
    for joint in values:
        if joint not in arm.joints:
            raise UnknownNameError.of("joint", joint, arm.joints, where="--ready")
    arm = replace(arm, ready={**arm.ready, **values})
    arm.check(found.scene)
    return arm


def _require_new(path: Path) -> None:
    """Refuse a file that exists, or that could not be written, before the work is done."""
    if path.exists():
        reason = "it exists; choose another name by --out, or remove it"
        raise OutputError(f"{path}: cannot be written: {reason}", path=str(path), reason=reason)
    require_writable(path)


app = typer.Typer(help="Write a scene, a domain or a robot description.", no_args_is_help=True)
app.command()(robot)

_NAME = re.compile(r"[a-z][a-z0-9_-]*")


@app.command()
def domain(
    target: Annotated[
        Path, typer.Argument(metavar="NAME", help="The folder to write; its name is the domain's.")
    ],
) -> None:
    """Write a folder with a PDDL domain, its semantics and a scene: objects in trays."""
    name = target.name
    if not _NAME.fullmatch(name):
        raise typer.BadParameter(
            f"'{name}' is no PDDL name: lower-case letters, digits, '_' and '-'", param_hint="NAME"
        )
    template = data_path("examples/trays")
    texts = {
        target / file: (
            (template / source)
            .read_text(encoding="utf-8")
            .replace("(domain trays)", f"(domain {name})")
        )
        for file, source in (
            ("domain.pddl", "domain.pddl"),
            ("semantics.py", "semantics.py"),
            ("scene.robray", "trays.robray"),
        )
    }
    _write(
        {
            file: text.replace("the trays domain", f"the {name} domain")
            for file, text in texts.items()
        },
        folder=target,
    )
    folder = target if len(target.parts) > 1 else f"./{target}"
    goal = "(forall (?i - item) (in ?i right))"
    say(
        f'Try it: tmkit plan panda_table {target}/scene.robray --domain {folder} --goal "{goal}" -o'
        " plan.json"
    )


@app.command()
def scene(
    target: Annotated[Path, typer.Argument(metavar="NAME", help="The file to write, NAME.robray.")],
) -> None:
    """Write a scene with a robot at a table, a wall and two blocks."""
    (suffix,) = ROBRAY.suffixes
    if target.suffix not in ("", suffix):
        raise typer.BadParameter(f"'{target}' does not end in {suffix}", param_hint="NAME")
    file = target.with_suffix(suffix)
    _write({file: data_path("examples/cell/cell.robray").read_text(encoding="utf-8")})
    say(f'Try it: tmkit plan {file} --robot panda --domain blocks --goal "(on a b)" -o plan.json')


def _write(texts: dict[Path, str], *, folder: Path | None = None) -> None:
    """Write new files, in a new folder if one is given, or raise an OutputError; what exists stays as it is."""
    path = folder
    try:
        if folder is not None:
            folder.mkdir()
        for path, text in texts.items():
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            say(f"Written to {path}")
    except OSError as error:
        hint = "; choose another name, or remove it" if isinstance(error, FileExistsError) else ""
        reason = error.strerror
        raise OutputError(
            f"{path}: cannot be written: {reason}{hint}", path=str(path), reason=reason
        ) from None
