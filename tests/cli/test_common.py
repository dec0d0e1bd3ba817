"""Shared parts of commands: packages, error messages, and outputs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer

from tmkit.cli import ExitCode
from tmkit.cli.common import (
    SceneFileOptions,
    errors_about,
    load,
    load_goal,
    make_folder,
    note,
    package_folders,
    write_json,
    xacro_values,
)
from tmkit.cli.reporting import fail, print_json, say
from tmkit.errors import MissingExtraError, OutputError, SceneError, TmkitError
from tmkit.formats import ReadingOptions


def test_packages_by_name(tmp_path: Path) -> None:
    """Each text is a name and a folder, which may contain equality signs, or a folder."""
    named = {"a": Path("x"), "b": Path("/y=z")}
    assert package_folders(["a=x", "b=/y=z", str(tmp_path)]) == (named, (tmp_path,))
    assert package_folders(None) == package_folders([]) == ({}, ())


def test_arguments_of_xacro_by_name() -> None:
    """A value may be empty or contain the separator; other forms and repetitions are rejected."""
    assert xacro_values(["dof:=7", "prefix:=", "a:=b:=c"]) == {
        "dof": "7",
        "prefix": "",
        "a": "b:=c",
    }
    assert xacro_values(None) == {}
    for text in ("dof=7", ":=7", "dof"):
        with pytest.raises(typer.BadParameter, match=f"'{text}' is not of the form NAME:=VALUE"):
            xacro_values([text])
    with pytest.raises(typer.BadParameter, match="'dof' is given twice"):
        xacro_values(["dof:=7", "dof:=6"])


def test_arguments_of_xacro_imply_the_permission() -> None:
    """``--xacro`` alone expands files; neither option does not."""
    assert SceneFileOptions().reading_options().allow_xacro is False
    assert SceneFileOptions(allow_xacro=True).reading_options().allow_xacro is True
    assert SceneFileOptions(xacro=["dof:=7"]).reading_options().allow_xacro == {"dof": "7"}


@pytest.mark.parametrize("text", ["a", "=x", "a=", "a/b=x", ""])
def test_a_package_of_another_form_is_rejected(text: str) -> None:
    """A text without name or folder, a name with a slash and a repeated name are rejected."""
    with pytest.raises(
        typer.BadParameter, match=re.escape(f"'{text}' is not of the form NAME=DIR")
    ) as caught:
        package_folders(["b=x", text])
    assert caught.value.param_hint == "--package"
    with pytest.raises(typer.BadParameter, match="package 'b' is given twice"):
        package_folders(["b=x", "c=x", "b=y"])


def test_errors_begin_with_their_file() -> None:
    """The file comes first unless the message contains it or the error is about an output."""

    def message(path: object, error: TmkitError) -> str:
        with pytest.raises(type(error)) as caught, errors_about(path):
            raise error
        assert caught.value is error
        return error.message

    assert message("goal.pddl", SceneError("unknown frame")) == "goal.pddl: unknown frame"
    assert message("goal.pddl", SceneError("line 1 of goal.pddl")) == "line 1 of goal.pddl"
    assert message(None, SceneError("unknown frame")) == "unknown frame"
    assert (
        message("goal.pddl", OutputError("cannot write", path="x", reason="full")) == "cannot write"
    )
    missing = MissingExtraError("needs numbers", extra="pictures")
    assert message("goal.pddl", missing) == "needs numbers"
    with errors_about("goal.pddl"):
        pass


def test_folders_of_outputs(tmp_path: Path) -> None:
    """A folder is created with its parents, or kept; a file of its name is an error."""
    folder = tmp_path / "a" / "b"
    assert make_folder(folder) == make_folder(folder) == folder
    assert folder.is_dir()
    (folder / "file").touch()
    with pytest.raises(OutputError, match="file: cannot be made: File exists") as caught:
        make_folder(folder / "file")
    assert (caught.value.path, caught.value.reason) == (str(folder / "file"), "File exists")
    (folder / "plan.json").mkdir()
    with pytest.raises(OutputError, match=r"plan.json: cannot be written: it is a folder"):
        make_folder(folder)


def test_documents_are_written_and_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Files have sorted keys and one final newline; printed names are made safe."""
    path, document = tmp_path / "x.json", {"b": [1], "a": None}
    write_json(path, document)
    assert path.read_text(encoding="utf-8") == '{\n "a": null,\n "b": [\n  1\n ]\n}\n'
    write_json(path, "[1]\n\n")
    assert path.read_text(encoding="utf-8") == "[1]\n"
    print_json(document)
    printed = capsys.readouterr().out
    assert printed == json.dumps(document, indent=1) + "\n"
    say("red \x1b[31m")
    assert "\x1b" not in capsys.readouterr().out
    with pytest.raises(typer.Exit) as caught:
        fail("no plan")
    assert (caught.value.exit_code, capsys.readouterr().out) == (ExitCode.NO, "no plan\n")
    note("beside %s the answer")
    assert caplog.messages == ["beside %s the answer"]


def test_scenes_are_loaded_in_order() -> None:
    """Scenes are merged; an unknown value of ``--meshes`` is rejected for scenes and goals."""
    scene = load(["panda_table", "blocks1"])
    assert {"panda_link0", "a"} <= set(scene.frame_names)
    with pytest.raises(TmkitError, match="'some'"):
        load(["panda_table"], reading=ReadingOptions(meshes="some"))
    with pytest.raises(TmkitError, match="'some'"):
        load_goal(scene, ["blocks1"], reading=ReadingOptions(meshes="some"))
