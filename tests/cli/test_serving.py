"""``tmkit serve``: a world for other processes, restarts, and rejected options."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from support import service_kills
from support.served_worlds import free_address, serving

from tmkit.cli import main
from tmkit.errors import SceneError, ServiceError, TimeLimitError
from tmkit.formats import load_scene
from tmkit.graph import SceneGraph, tree_text
from tmkit.spatial import Pose
from tmkit.world import connect
from tmkit.world.service import messages as m

pytest.importorskip("zenoh")


def test_a_world_continues_from_its_log(tmp_path: Path) -> None:
    """After a signal or a kill the next server has all acknowledged edits."""
    address, log = free_address(), tmp_path / "world.log"
    tokens = tmp_path / "tokens"
    tokens.write_text("write " + "w" * 16 + "\nread " + "r" * 16)
    arguments = ["--listen", address, "--log", log, "--tokens", tokens, "--world", "cell"]
    with serving("panda_table", "blocks3", *arguments) as (process, line):
        scene = load_scene("panda_table", "blocks3")
        assert line == f"serving 'cell' at {address}: {len(scene)} frames, version 0"
        with connect(address, token="w" * 16, world="cell") as world:
            assert world.scene() == scene
            for k in range(10):
                world.set_pose("a", Pose([k, 0, 0]))
            with connect(address, token="r" * 16, world="cell") as reader:
                with pytest.raises(ServiceError, match="this token has the role read"):
                    reader.set_pose("a", Pose())
                assert reader.scene().fingerprint == world.server_status().fingerprint
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 143
    with serving("panda_table", *arguments) as (process, line):
        assert line == f"serving 'cell' at {address}: {len(scene)} frames, version 10"
        with connect(address, token="w" * 16, world="cell") as world:
            assert world.scene() == scene.set_pose("a", Pose([9, 0, 0]))
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stderr is not None
        assert (
            "the world goes on from version 10 of the log; the scene files are not used"
            in process.stderr.read()
        )


def test_garbage_does_not_slow_clients() -> None:
    """Garbage at the port of the server is dropped while clients are served."""
    address = free_address()
    host, port = address.removeprefix("tcp/").split(":")
    with serving("--listen", address) as (_, line), connect(address) as world:
        assert line.endswith("1 frames, version 0")
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(70_000), b"\xff\xff" + bytes(65_535)):
            with socket.create_connection((host, int(port))) as raw:
                raw.sendall(garbage)
                world.set_attribute("world", "k", len(garbage))
        assert world.server_status().version == 3
        flood = connect(address, timeout=1.0)
        for size, error, reason in [
            (20_000_000, ServiceError, "more than the limit of 16000000"),
            (40_000_000, TimeLimitError, "has not answered"),
        ]:
            with pytest.raises(error, match=reason):
                flood.set_attribute("world", "k", "x" * size)
        world.set_attribute("world", "k", 0)
        flood.close()
        assert world.server_status().counts == {"edits": 4, "messages": 6, "refused: size": 1}


def test_rejected_edits_do_not_affect_others(tmp_path: Path) -> None:
    """Client and server reject too deep an attribute; later edits survive a kill."""
    address, log = free_address(), tmp_path / "world.log"
    arguments = ["--listen", address, "--log", log]
    with (
        serving("panda_table", "blocks3", *arguments) as (process, _),
        connect(address) as first,
        connect(address) as second,
    ):
        for number, depth in enumerate((65, 400, 450, 985, 5_000)):
            deep: list[object] = []
            for _ in range(depth - 1):
                deep = [deep]
            with pytest.raises(
                SceneError, match=f"attribute 'k' is nested {depth:,} deep; expected at most 64"
            ):
                first.set_attribute("b", "k", deep)
            message = b"\x91" * depth + b"\xc0"
            with pytest.raises(
                ServiceError, match=f"nested {depth} deep; expected at most 64|recursion"
            ):
                first._request(m.Edit([m.SetAttribute("b", "k", msgspec.Raw(message))]), m.Done)
            second.set_attribute("b", "after", number + 1)
            assert first.look("attributes", "b") == {"after": number + 1}
            assert first.server_status().version == number + 1
        process.kill()
    with serving(*arguments) as (_, line), connect(address) as world:
        assert line.endswith("version 5")
        assert world.look("attributes", "b") == {"after": 5}


_BLOCKS = """
from __future__ import annotations
from dataclasses import dataclass, field
from tmkit.graph.patterns import Part, Pattern
from tmkit.graph import SceneGraph, tree_text
from tmkit.spatial import Pose
from tmkit.world import FunctionBlock, OutputFrame

@dataclass(frozen=True)
class Above(FunctionBlock):
    height: float = field(default=0.1, kw_only=True)

    @property
    def inputs(self):
        return {"object": Pattern([Part("object", ["movable"])])}

    @property
    def outputs(self):
        return {"points": Pattern([Part("point", ["point"])])}

    def execute(self, scene, matches):
        names = [match["object"] for match in matches["object"]]
        above = Pose([0, 0, self.height])
        return self.output(
            OutputFrame(f"{self.name} {name}", name, above, classes=["point"]) for name in names
        )

class Failing(Above):
    def execute(self, scene, matches):
        raise ValueError("no light")
"""


def test_a_served_world_runs_blocks(tmp_path: Path) -> None:
    """Blocks run on change, after another block and at a rate, and clients receive the results."""
    (tmp_path / "my_blocks.py").write_text(_BLOCKS)
    (tmp_path / "facts.toml").write_text(
        "name = 'facts'\ninput_hook = 'world'\ndomain = 'blocks'\n"
    )
    mine, address, log = tmp_path / "my_blocks.py", free_address(), tmp_path / "world.log"
    blocks = [
        f"{mine}:Above={{name = 'above', input_hook = 'table', height = 0.2}}",
        (
            f"{mine}:Above={{name = 'later', input_hook = 'a', output_hook = 'world', trigger ="
            " {after = 'above'}}"
        ),
        f"{mine}:Failing={{name = 'failing', input_hook = 'table', trigger = {{every = 0.001}}}}",
        f"tmkit.world:StatePublisher={tmp_path / 'facts.toml'}",
    ]
    options = [word for block in blocks for word in ("--block", block)]
    with serving("panda_table", "blocks3", "--listen", address, "--log", log, *options) as (
        process,
        line,
    ):
        assert line.endswith("version 0")
        with connect(address) as world, world.replica() as replica:

            def wait_for(what: Callable[[SceneGraph], bool]) -> SceneGraph:
                end = time.monotonic() + 60.0
                while not what(scene := replica.scene):
                    assert time.monotonic() < end, tree_text(scene)
                    replica.wait(scene, 1.0)
                return scene

            scene = wait_for(lambda scene: {"facts", "later"} <= {*scene.group_names})
            assert scene.pose("above a", relative_to="a") == Pose([0, 0, 0.2])
            assert "(handempty)" in scene.group("facts").attributes["facts"]
            assert scene.group("later").frames == ("later a",)
            world.set_attribute("world", "seen", 1)  # no input of it: it stays as it is
            world.remove_frame("c", subtree=True)
            scene = wait_for(
                lambda scene: "above c" not in scene and len(scene.group("above").frames) == 2
            )
            wait_for(
                lambda scene: (
                    not any(" c" in fact for fact in scene.group("facts").attributes["facts"])
                )
            )
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 143
        assert process.stderr is not None
        errors = process.stderr.read()
        assert (
            errors.count("warning: function block 'failing' failed: ValueError: no light") == 1
        ), errors
    with serving("--listen", address, "--log", log) as (_, line), connect(address) as world:
        assert world.look("exists", "above a"), "what blocks made is in the log"


def rejection_message(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run the command, which rejects its input, and return its message."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["tmkit", "serve", *map(str, arguments)])
        patch.setenv("COLUMNS", "300")
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_invalid_options_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other machines need tokens; an invalid transport, address, token file or log is named."""
    for address in (
        "tcp/0.0.0.0:7447",
        "tcp/192.168.0.1:7447",
        "tcp/127.0.0.1.evil.example:1",
        "tls/[::]:7447",
    ):
        assert "is open to other machines: --tokens FILE is needed" in rejection_message(
            capsys, "--listen", address
        )
    assert "unknown transport 'zeno'; did you mean 'zenoh'?" in rejection_message(
        capsys, "--transport", "zeno"
    )
    assert "zenoh rejects the setting 'no/such'" in rejection_message(
        capsys, "--setting", "no/such=1"
    )
    assert "'a b' is not a name of a world" in rejection_message(capsys, "--world", "a b")
    assert "none: No such file" in rejection_message(capsys, "--tokens", tmp_path / "none")
    (tmp_path / "log").write_bytes(b"something else")
    assert "log: not a log of a world; the file is unchanged" in rejection_message(
        capsys, "--log", tmp_path / "log", "--listen", "tcp/127.0.0.1:1"
    )
    assert "Is a directory" in rejection_message(capsys, "--log", tmp_path)
    (tmp_path / "my_blocks.py").write_text(_BLOCKS)
    tracker, mine = "tmkit.world:ObjectTracker", f"{tmp_path / 'my_blocks.py'}:Above"
    for block, reason in {
        "Above": "Above: expected MODULE:NAME or FILE.py:NAME",
        "no_such_module:A": (
            "cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"
        ),
        f"{tmp_path}/none.py:A": "cannot be imported: FileNotFoundError",
        "tmkit.world:ObjectTrack={}": (
            "unknown function block 'ObjectTrack'; did you mean 'ObjectTracker'"
        ),
        "tmkit.world:Buffer={}": "unknown function block 'Buffer'",
        tracker: "Is a directory",
        f"{tracker}=none.toml": "none.toml: cannot be read: No such file",
        f"{tracker}={{": "the configuration is not TOML",
        f"{tracker}={{}}": "the configuration needs name, input_hook",
        f"{tracker}={{nam = 'a'}}": "unknown configuration 'nam'; did you mean 'name'",
        f"{tracker}={{name = 'a', input_hook = 3}}": "input_hook: Expected `str`, got `int`",
        f"{tracker}={{name = 'a', input_hook = 'b', trigger = 3}}": (
            "trigger is one of {below = FRAME}"
        ),
        f"{tracker}={{name = 'a', input_hook = 'b', trigger = {{every = 'x'}}}}": (
            "trigger.every: Expected `float`"
        ),
        f"{mine}={{name = 'a', input_hook = 'b', trigger = {{every = 0}}}}": (
            "expected a period above 0, got 0.0"
        ),
        f"{mine}={{name = 'a', input_hook = 'b', trigger = {{after = 'c'}}}}": (
            "unknown function block 'c'"
        ),
        "tmkit.world:StatePublisher={name = 'a', input_hook = 'b', domain = './mine'}": (
            "domain is a name or"
        ),
        "tmkit.world:OutdatedRemover={name = 'a', input_hook = 'b', clock = 3}": (
            "clock: Expected `Callable`, got"
        ),
    }.items():
        assert reason in rejection_message(capsys, "--block", block), block
    with serving("--listen", address := free_address()):
        assert f"cannot listen at {address}: " in rejection_message(capsys, "--listen", address)


def test_kills_under_load(tmp_path: Path) -> None:
    """Three kills of a server with three clients lose and repeat no acknowledged edit."""
    counts = service_kills.run(3, 5, tmp_path)
    assert counts["edits"] >= 3
