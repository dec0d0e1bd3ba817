"""``tmkit store``: versions of scenes in a folder, from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tmkit.cli import main
from tmkit.errors import StoreError
from tmkit.formats import load_scene
from tmkit.spatial import Pose
from tmkit.store import Store


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """Run a command; return its exit code and outputs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["tmkit", *map(str, arguments)])
        patch.setenv("COLUMNS", "300")
        with pytest.raises(SystemExit) as ended:
            main()
    output, err = capsys.readouterr()
    return int(ended.value.code or 0), output or err


def test_a_store_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Put, list, compare, merge, write and collect; a negative result is exit code 1."""
    folder = tmp_path / "worlds"
    code, version = run(
        capsys, "store", "put", folder, "panda_table", "blocks3", "-m", "three\x1b blocks"
    )
    assert (code, len(version.strip())) == (0, 64)
    with Store(folder) as store:
        scene = store.get("main")
        assert scene == load_scene("panda_table", "blocks3")
        moved = store.put(scene.set_pose("a", Pose([0, 0, 1])))
        store.set_branch("try", version.strip())
        store.put(
            scene.set_pose("b", Pose([0, 0, 2])).allow_collision("a", "b", reason="why"), "try"
        )
    assert (
        run(capsys, "store", "ls", folder)[1].splitlines()[0]
        == f"{moved[:12]} main: {len(scene)} frames"
    )
    assert json.loads(run(capsys, "store", "ls", folder, "--json")[1])["main"] == moved
    code, text = run(capsys, "store", "log", folder)
    assert [line.split(" ", 1)[-1] for line in text.splitlines()] == [
        moved[:12],
        "three\\x1b blocks",
    ]
    assert (
        json.loads(run(capsys, "store", "log", folder, "--json")[1])[1]["message"]
        == "three\x1b blocks"
    )
    code, text = run(capsys, "store", "diff", folder, "main", "try")
    assert (code, text.splitlines()) == (
        1,
        ["'a': pose", "'b': pose", "pair 'a' and 'b': checked -> why"],
    )
    assert run(capsys, "store", "diff", folder, "main", "main") == (0, "")
    code, merged = run(capsys, "store", "merge", folder, "try")
    assert code == 0
    assert (
        f"(merges {Store(folder).branches['try'][:12]})"
        in run(capsys, "store", "log", folder)[1].splitlines()[0]
    )
    assert "a" in run(capsys, "store", "show", folder)[1]
    assert run(capsys, "store", "get", folder, "-o", tmp_path / "output.json")[0] == 0
    assert load_scene(tmp_path / "output.json") == Store(folder).get(merged.strip())
    with Store(folder) as store:
        store.put(store.get("main").set_pose("a", Pose([0, 0, 5])))
        store.put(store.get("try").set_pose("a", Pose([0, 0, 6])), "try")
    code, text = run(capsys, "store", "merge", folder, "try")
    assert (code, text.splitlines()[1]) == (1, "frame 'a': ours 'a': pose; theirs 'a': pose")
    with Store(folder) as store:
        store.delete_branch("try")
    assert run(capsys, "store", "gc", folder) == (0, "Removed 1 versions and 0 blobs of 0 bytes\n")


def test_invalid_use_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing store and an unknown version are exit code 2 and a line; damage is named."""
    code, text = run(capsys, "store", "ls", tmp_path)
    assert (code, "there is no store in it" in text, "Traceback" in text) == (2, True, False)
    with Store(tmp_path / "s") as store:
        store.put(load_scene("panda_table", "blocks3"))
    code, text = run(capsys, "store", "show", tmp_path / "s", "mian")
    assert (code, "unknown version 'mian'; did you mean 'main'?" in text) == (2, True)
    (tmp_path / "s" / "versions.sqlite").write_bytes(b"garbage" * 1000)
    for end in ("-wal", "-shm"):
        (tmp_path / "s" / f"versions.sqlite{end}").unlink(missing_ok=True)
    code, text = run(capsys, "store", "log", tmp_path / "s")
    assert (code, "file is not a database" in text) == (2, True)
    with pytest.raises(StoreError, match="file is not a database"):
        Store(tmp_path / "s")
