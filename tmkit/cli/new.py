"""The commands ``tmkit new``: templates of scenes and domains, and descriptions of arms.

A new scene or domain has comments and can be planned with as it is. A new description of an arm has
passed a trial pick of a cube.
"""

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
from tmkit.cli.common import SceneFileOptions, Scenes, Seed, load, require_writable
from tmkit.cli.inputs import parse_joint_values
from tmkit.cli.option_groups import add_command
from tmkit.cli.reporting import fail, progress, say
from tmkit.cli.robots import (
    ArmChoice,
    GroupOption,
    find_configuration,
    infer_robot_arm,
    name_of,
    pick_cube,
)
from tmkit.cli.viewing import wait_for_browser
from tmkit.errors import OutputError, TmkitError, UnknownNameError
from tmkit.formats.robray.format import ROBRAY

if TYPE_CHECKING:
    from tmkit.formats.moveit.configuration import MoveItConfiguration
    from tmkit.graph import SceneGraph
    from tmkit.robots import Manipulator
    from tmkit.robots.infer_arm import InferredArm

app = typer.Typer(help="Write a scene, a domain or a robot description.", no_args_is_help=True)

_COLLISION_SAMPLES = 500
"""Number of random configurations that are tested for collisions."""

_AS_INFERRED = "as inferred"
"""Answer that keeps the inferred ready configuration."""

_NO_HAND = "none"
"""Hand of an arm without a gripper."""

_DOMAIN_NAME = re.compile(r"[a-z][a-z0-9_-]*")
"""Valid names of a PDDL domain."""


@dataclass(frozen=True)
class ArmHints:
    """Frames, hand and ready configuration of an arm, each inferred if omitted."""

    base: Annotated[
        str | None, typer.Option(metavar="FRAME", help="The frame that the arm stands on.")
    ] = None
    tip: Annotated[str | None, typer.Option(metavar="FRAME", help="The frame of the hand.")] = None
    tool: Annotated[
        str | None, typer.Option(metavar="FRAME", help="The frame between the fingertips.")
    ] = None
    hand: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|parallel_gripper|suction_cup|none",
            help="A hand to mount at the end of the arm, z away from it; 'none': no gripper.",
        ),
    ] = None
    ready: Annotated[
        str | None, typer.Option(metavar="k=v,...", help="Joint values where plans start.")
    ] = None
    group: GroupOption = None


@dataclass(frozen=True)
class DisplayOptions:
    """Browser view and picture of the result."""

    view: Annotated[
        bool, typer.Option("--view", help="Show the result in the browser; Ctrl-C ends it.")
    ] = False
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw the robot with the cube.")
    ] = None


def robot(
    scenes: Scenes,
    *,
    output: Annotated[
        Path | None, typer.Option("--out", metavar="FILE.toml", help="The file to write.")
    ] = None,
    hints: ArmHints,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Take what is inferred without a question.")
    ] = False,
    display: DisplayOptions,
    seed: Seed = 0,
    files: SceneFileOptions,
) -> None:
    """Infer a robot's arm and hand, try to pick a cube, and write the description of the arm.

    A terminal prompts for uncertain properties. An added tool frame or hand is written to a scene
    beside the description. An arm without a gripper picks no cube; its joints are checked.
    """
    from tmkit.formats import write_json_scene
    from tmkit.robots import check_robot
    from tmkit.robots.robot_files import write_manipulator

    target = output if output is not None else Path(f"{name_of(scenes[0])}.toml")
    if target.suffix != ".toml":
        raise typer.BadParameter(f"'{target}' does not end in .toml", param_hint="--out")
    _require_new(target)
    if display.picture is not None:
        require_writable(display.picture)

    # Infer the arm, with questions on a terminal.
    notes: list[object] = []  # 'tmkit robot check' prints them
    loaded = load(scenes, reading=files.reading_options(), on_note=notes.append)
    configuration = find_configuration(scenes, loaded, hints.group, files)
    assistant = _Assistant(loaded, target.stem, hints, seed, files, configuration)
    is_interactive = (
        not yes and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    )
    overlap_lines = assistant.allow_overlaps(is_interactive=is_interactive)
    inferred = assistant.ask() if is_interactive else assistant.infer()
    if is_interactive and hints.ready is None and not inferred.missing:
        arm = _ask(
            "Ready configuration: joint=value,...",
            _AS_INFERRED,
            lambda text: _set_ready(inferred, text),
        )
    else:
        arm = _set_ready(inferred, _AS_INFERRED if hints.ready is None else hints.ready)

    # Try to pick a cube, and write the description with the result.
    missing, trial_result = inferred.missing, None
    if not missing:
        new_scene = target.with_suffix(".json") if inferred.scene != loaded else None
        if new_scene is not None:
            _require_new(new_scene)
        trial_lines, missing, trial = pick_cube(
            inferred.scene, arm, seed=seed, picture=display.picture
        )
        trial_result = trial.result
        if missing or arm.gripper_kind == "none":
            with progress("checking the robot"):
                report = check_robot(inferred.scene, arm, samples=_COLLISION_SAMPLES, seed=seed)
            missing = next(iter(report.problems), missing)
        heading = (
            f"The arm of {Path(scenes[0]).resolve().name}, inferred by 'tmkit new robot'; correct"
            " what is wrong:"
        )
        comments = [heading, *overlap_lines, *inferred.inferred, *trial_lines]
        if missing:
            comments.append(f"missing: {missing}")
        write_manipulator(arm, target, notes=tuple(comments))
        if new_scene is not None:
            write_json_scene(inferred.scene, new_scene)
        for line in (*trial_lines, f"Written to {target}"):
            say(line)
        if new_scene is not None:
            say(
                f"Written to {new_scene}: the robot with what was added to it; use it with the"
                " description"
            )
    if display.view:
        from tmkit.visualization import Viewer

        content = inferred.scene if trial_result is None else trial_result
        q = arm.ready_configuration(inferred.scene) if trial_result is None else None
        with Viewer(content, q=q) as viewer:
            wait_for_browser(viewer, opens=True)
    if missing:
        fail(f"missing: {missing}")


@dataclass
class _Assistant:
    """Inference of an arm from a robot, hints and the user's answers.

    Attributes:
        scene: scene of the robot, with the allowed overlaps.
        name: name of the arm.
        hints: options of the command, and answers so far.
        seed: seed of the inference.
        files: options for reading the scene of a hand.
        configuration: SRDF file among the scenes, with its package if any.
    """

    scene: SceneGraph
    name: str
    hints: ArmHints
    seed: int
    files: SceneFileOptions
    configuration: MoveItConfiguration | None = None

    def allow_overlaps(self, *, is_interactive: bool) -> tuple[str, ...]:
        """Allow collisions of pairs whose shapes overlap in most configurations.

        Args:
            is_interactive: whether the user may reject the overlaps.

        Returns:
            A line for each allowed pair.
        """
        from tmkit.robots.robot_check import overlapping_pairs

        with progress("looking for shapes that overlap"):
            pairs = overlapping_pairs(self.scene, samples=_COLLISION_SAMPLES, seed=self.seed)
        lines = tuple(
            f"collisions: '{a}' and '{b}' overlap in most configurations: allowed" for a, b in pairs
        )
        for line in lines:
            say(f"inferred: {line}")
        if pairs and is_interactive:
            is_accepted = typer.confirm("May these overlap?", default=True, err=True)
            if not is_accepted:
                return ()
        for a, b in pairs:
            self.scene = self.scene.allow_collision(a, b, reason="always")
        return lines

    def infer(self) -> InferredArm:
        """Infer the arm, and print the properties with the reasons."""
        from tmkit.robots.hands import mount_hand

        scene, hints = self.scene, self.hints
        hand = None if hints.hand in (None, _NO_HAND) else self._load_hand(str(hints.hand))
        tip = hints.tip
        with progress("looking for the arm"):
            if hand is not None:
                choice = ArmChoice(hints.base, tip, None, hints.group, self.configuration)
                bare = infer_robot_arm(scene, choice, name=self.name, seed=self.seed)
                arm, frames = bare.robot, set(scene.frame_names)
                scene = mount_hand(scene, hand, tip=arm.tip, joints=arm.joints)
                if not bare.missing:
                    # The mounted hand is meant, not the hand of the robot beside it.
                    tip = next(frame for frame in scene.frame_names if frame not in frames)
            choice = ArmChoice(hints.base, tip, hints.tool, hints.group, self.configuration)
            inferred = infer_robot_arm(scene, choice, name=self.name, seed=self.seed)
        if hints.hand == _NO_HAND:
            if not inferred.missing:
                raise typer.BadParameter(
                    f"'{inferred.robot.tip}' has a {inferred.robot.gripper_kind} gripper; leave the"
                    " option out",
                    param_hint="--hand",
                )
            inferred = inferred.without_gripper()
        for line in inferred.inferred:
            say(f"inferred: {line}")
        return inferred

    def ask(self) -> InferredArm:
        """Infer the arm, and ask the user where the result is uncertain."""
        inferred = self.infer()
        if self.hints.tip is None and inferred.other_tips:
            tip = _choose(
                "Which arm, by the frame of its hand?", (inferred.robot.tip, *inferred.other_tips)
            )
            self.hints = replace(self.hints, tip=tip)
            inferred = inferred if tip == inferred.robot.tip else self.infer()
        if inferred.missing and self.hints.hand is None:
            say(f"missing: {inferred.missing}")
            hand = _ask(
                "A hand to mount: a file, parallel_gripper, suction_cup, or none for no gripper",
                _NO_HAND,
                self._parse_hand,
            )
            self.hints = replace(self.hints, hand=hand)
            inferred = self.infer()
        if inferred.confidence in ("low", "medium"):
            is_accepted = typer.confirm("Is this the hand?", default=True, err=True)
            if not is_accepted:
                fail(
                    "Nothing is written: name the frame of the hand by --tip, or mount a hand by"
                    " --hand."
                )
        if self.hints.tool is None and inferred.other_tools:
            tool = _choose("Which frame is the tool?", (inferred.added_tool, *inferred.other_tools))
            if tool != inferred.added_tool:
                self.hints = replace(self.hints, tool=tool)
                inferred = self.infer()
        return inferred

    def _load_hand(self, name: str) -> SceneGraph:
        """Load the scene of a hand."""
        return load([name], reading=self.files.reading_options())

    def _parse_hand(self, name: str) -> str:
        """Return the name of a hand whose scene can be loaded, or of none."""
        if name != _NO_HAND:
            self._load_hand(name)
        return name


def _ask(question: str, default: str, parse: Callable[[str], Any]) -> Any:
    """Return the parsed answer to a question, which is repeated until the answer is valid."""

    def parse_answer(text: str) -> Any:
        try:
            return parse(text)
        except TmkitError as error:
            raise typer.BadParameter(printable(str(error))) from None

    return typer.prompt(printable(question), default=default, value_proc=parse_answer, err=True)


def _choose(question: str, frames: Sequence[str]) -> str:
    """Return the frame that the user chooses, by default the first."""

    def parse_frame(text: str) -> str:
        if text not in frames:
            raise UnknownNameError.of("frame", text, frames)
        return text

    frame: str = _ask(f"{question} {', '.join(frames)}", frames[0], parse_frame)
    return frame


def _set_ready(inferred: InferredArm, text: str) -> Manipulator:
    """Return the arm with the joint values of a text in its ready configuration."""
    arm = inferred.robot
    if text == _AS_INFERRED:
        return arm
    values = parse_joint_values(text, option="--ready")
    for joint in values:
        if joint not in arm.joints:
            raise UnknownNameError.of("joint", joint, arm.joints, where="--ready")
    arm = replace(arm, ready={**arm.ready, **values})
    arm.check(inferred.scene)
    return arm


def _require_new(path: Path) -> None:
    """Check that a file does not exist and can be written, before the work is done.

    Raises:
        OutputError: if the file exists or cannot be written.
    """
    if path.exists():
        reason = "it exists; choose another name by --out, or remove it"
        raise OutputError(f"{path}: cannot be written: {reason}", path=str(path), reason=reason)
    require_writable(path)


def domain(
    target: Annotated[
        Path, typer.Argument(metavar="NAME", help="The folder to write; its name is the domain's.")
    ],
) -> None:
    """Write a folder with a PDDL domain, its semantics and a scene: objects in trays."""
    name = target.name
    if not _DOMAIN_NAME.fullmatch(name):
        raise typer.BadParameter(
            f"'{name}' is not a PDDL name: lower-case letters, digits, '_' and '-'",
            param_hint="NAME",
        )
    template = data_path("examples/trays")
    texts: dict[Path, str] = {}
    for file, source in (
        ("domain.pddl", "domain.pddl"),
        ("semantics.py", "semantics.py"),
        ("scene.robray", "trays.robray"),
    ):
        text = (template / source).read_text(encoding="utf-8")
        text = text.replace("(domain trays)", f"(domain {name})")
        texts[target / file] = text.replace("the trays domain", f"the {name} domain")
    _write_files(texts, folder=target)
    folder = target if len(target.parts) > 1 else f"./{target}"
    goal = "(forall (?i - item) (in ?i right))"
    say(
        f'Try it: tmkit plan panda_table {target}/scene.robray --domain {folder} --goal "{goal}" -o'
        " plan.json"
    )


def scene(
    target: Annotated[Path, typer.Argument(metavar="NAME", help="The file to write, NAME.robray.")],
) -> None:
    """Write a scene with a robot at a table, a wall and two blocks."""
    (suffix,) = ROBRAY.suffixes
    if target.suffix not in ("", suffix):
        raise typer.BadParameter(f"'{target}' does not end in {suffix}", param_hint="NAME")
    file = target.with_suffix(suffix)
    _write_files({file: data_path("examples/cell/cell.robray").read_text(encoding="utf-8")})
    say(f'Try it: tmkit plan {file} --robot panda --domain blocks --goal "(on a b)" -o plan.json')


def _write_files(texts: dict[Path, str], *, folder: Path | None = None) -> None:
    """Write new files, in a new folder if one is set; existing files stay as they are.

    Args:
        texts: contents by path.

    Raises:
        OutputError: if the folder or a file exists or cannot be written.
    """
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


add_command(app, robot)
add_command(app, domain)
add_command(app, scene)
