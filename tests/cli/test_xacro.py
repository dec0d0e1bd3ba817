"""Arguments of xacro and configuration folders on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.commands import tmkit
from support.moveit_packages import NAMESPACE, write, write_moveit_2

from tmkit.cli import ExitCode
from tmkit.cli.commands import command_line

pytest.importorskip("xacro")

BLOCK = f"""<robot name="r" {NAMESPACE}><link name="$(arg name)">
<collision><geometry><box size="0.04 0.04 $(arg height)"/></geometry></collision></link></robot>"""


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, set[str]]]:
    """Yield each command with the names of its options."""
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))
    if path and not hasattr(group, "commands"):
        yield " ".join(path), {option for item in group.params for option in item.opts}


def test_every_command_that_reads_scenes_takes_arguments_of_xacro() -> None:
    """The options are in one group, so no command lacks them."""
    options = dict(commands(command_line()))
    readers = {name for name, flags in options.items() if "--package" in flags}
    expected = {
        "plan",
        "check",
        "simulate",
        "view",
        "batch",
        "serve",
        "scene dump",
        "scene check",
        "scene convert",
        "scene compile",
        "store put",
        "robot check",
        "new robot",
        "bag replay",
    }
    assert expected <= readers
    assert all({"--xacro", "--allow-xacro"} <= options[name] for name in readers)


def test_a_scene_of_xacro_is_converted(tmp_path: Path) -> None:
    """The option gives the arguments; without it, one line names the option."""
    write(tmp_path / "block.urdf.xacro", BLOCK)
    arguments = ("scene", "convert", "block.urdf.xacro", "-o", "block.json")
    run = tmkit(tmp_path, *arguments)
    assert run.code == ExitCode.BAD_INPUT
    assert "--allow-xacro on the command line" in run.err
    run = tmkit(tmp_path, *arguments, "--allow-xacro")
    assert run.code == ExitCode.BAD_INPUT
    assert "the arguments 'name' and 'height' have no value: give --xacro name:=VALUE" in run.err
    assert len(run.err.splitlines()) == 2  # the message, and the line of the file
    run = tmkit(tmp_path, *arguments, "--xacro", "name:=cube", "--xacro", "height:=0.05")
    assert (run.code, run.err) == (ExitCode.DONE, "")
    assert '"cube"' in (tmp_path / "block.json").read_text()
    run = tmkit(tmp_path, *arguments, "--xacro", "name=cube")
    assert run.code == ExitCode.BAD_INPUT
    assert "'name=cube' is not of the form NAME:=VALUE" in run.err


def test_a_configuration_folder_is_a_scene(tmp_path: Path) -> None:
    """Also by its name alone, in the folder where it lies."""
    write_moveit_2(tmp_path)
    run = tmkit(tmp_path, "scene", "check", "six_moveit_config", "--allow-xacro")
    assert run.code == ExitCode.DONE, run.out
    assert "six_moveit_config: 11 frames, 7 joints" in run.out
    assert "max_velocity 9 exceeds 2 of the robot" in run.err
