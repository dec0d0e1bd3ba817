"""Recording and replay of bags in other processes (``tmkit bag``)."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.served_worlds import command, free_address, serving

from tmkit.cli import main
from tmkit.formats import convert_scene, load_scene
from tmkit.graph import Revolute, SceneGraph
from tmkit.graph.moments import joint_history
from tmkit.spatial import Pose
from tmkit.world import BagRecorder, Buffer, Header, JointState, Time, connect, play_bag
from tmkit.world.messages import transform_message

pytest.importorskip("zenoh")
pytest.importorskip("rosbags")
Run = Callable[..., tuple[Any, str, str]]
_T0 = 1_700_000_000


def arm() -> SceneGraph:
    """Return a robot with one joint."""
    return SceneGraph().add_frame(
        "arm", "world", joint=Revolute([0, 0, 1], lower=-3.0, upper=3.0, name="elbow")
    )


def record_world(path: Path, steps: int = 30) -> Buffer:
    """Record a moving cup with a covariance, a joint and a static base, and return the buffer."""
    buffer = Buffer(100.0, scene=arm())
    with BagRecorder(path) as recorder:
        buffer.on_change(recorder.record)
        buffer.set_transform_static(transform_message(Pose([1, 0, 0]), "world", "base", (0, 0)))
        for step in range(steps):
            stamp = (_T0 + step // 10, step % 10 * 100_000_000)
            buffer.set_transform(transform_message(Pose([0.1 * step, 0, 0]), "base", "cup", stamp))
            buffer.set_joint_states(JointState(Header(Time(*stamp)), ["elbow"], [0.01 * step]))
        buffer.update(lambda scene: scene.set_covariance("cup", 1e-4 * np.eye(6)))
    return buffer


def is_equal(a: SceneGraph, b: SceneGraph) -> bool:
    """Return whether the content of a bag is equal for two worlds."""
    cups = [scene.stamped_poses("cup") for scene in (a, b)]
    return (
        cups[0] is not None
        and cups[1] is not None
        and np.array_equal(cups[0].stamps, cups[1].stamps)
        and all(x.is_close(y) for x, y in zip(cups[0].poses, cups[1].poses, strict=True))
        and np.array_equal(joint_history(a, "elbow"), joint_history(b, "elbow"))
        and np.allclose(a.edge_covariance("cup"), b.edge_covariance("cup"))
        and a.local_pose("base").is_close(b.local_pose("base"))
    )


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``tmkit bag`` in this process; return exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")

    def call(*arguments: object) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["tmkit", "bag", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return (ended.value.code, *capsys.readouterr())

    return call


def test_a_bag_is_replayed_into_a_served_world_and_recorded_from_it(
    tmp_path: Path, run: Run
) -> None:
    """A client, a second bag and a file have the recorded poses while another client edits."""
    there, address = record_world(tmp_path / "run").scene, free_address()
    convert_scene(arm(), tmp_path / "arm.json")
    with serving(tmp_path / "arm.json", "--listen", address), connect(address) as world:
        world.add_frame("fork", "world")
        again = tmp_path / "again"
        with command("bag", "record", again, "--from", address) as recorder:
            assert recorder.stdout is not None
            assert recorder.stdout.readline().startswith("recording 'world' at tcp/")
            with command(
                "bag", "replay", "run", "--into", address, "--window", "100", cwd=tmp_path
            ) as player:
                while player.poll() is None:
                    world.set_attribute(
                        "fork", "n", world.look("attributes", "fork").get("n", 0) + 1
                    )
                assert player.returncode == 0, player.communicate()
                assert (
                    player.communicate()[0]
                    == "Replayed 63 messages of /joint_states, /poses/cup, /tf, /tf_static\n"
                )
            scene = world.scene()
            assert is_equal(scene, there)
            assert scene.attributes("fork")["n"] > 2
            assert world.server_status().version > scene.attributes("fork")["n"] + 5
            recorder.send_signal(signal.SIGINT)
            out, err = recorder.communicate()
            assert recorder.returncode == 130, err
            assert out.startswith("Recorded ")
        here = Buffer(100.0, scene=arm())
        assert not play_bag(again, here).rejected
        assert is_equal(here.scene, there)
    assert run("replay", "run", "arm.json", "-o", "out.json", "--window", 100)[0] == 0
    assert is_equal(load_scene(tmp_path / "out.json"), there)


def test_the_topics_of_a_bag_are_listed(tmp_path: Path, run: Run) -> None:
    """Topics, types, counts and frames, as text and as JSON."""
    record_world(tmp_path / "run")
    assert run("info", "run") == (
        0,
        (
            "63 messages in 2.900 s from 1700000000.000 s\n"
            "  /joint_states: 30 of sensor_msgs/msg/JointState\n"
            "  /poses/cup: 1 of geometry_msgs/msg/PoseWithCovarianceStamped of frame 'cup'\n"
            "  /tf: 31 of tf2_msgs/msg/TFMessage\n"
            "  /tf_static: 1 of tf2_msgs/msg/TFMessage\n"
        ),
        "",
    )
    _, out, _ = run("info", "run", "--json")
    assert json.loads(out)["topics"][0].keys() == {
        "name",
        "type",
        "messages",
        "frame",
        "is_replayed",
    }


def test_invalid_bags_are_rejected(tmp_path: Path, run: Run) -> None:
    """Messages name files and topics without a traceback; outputs stay unchanged."""
    record_world(tmp_path / "run", steps=3)
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "a.mcap").write_bytes(b"no bag")
    nobody = free_address()
    for arguments, reason in {
        ("info", "none"): "no bag at none",
        ("info", "torn"): "torn: is not a readable bag",
        ("replay", "run"): "expected either --into ADDRESS, or -o FILE",
        (
            "replay",
            "run",
            "panda_table",
            "--into",
            nobody,
        ): "expected either --into ADDRESS, or -o FILE",
        ("replay", "run", "-o", "no/where.json"): "no/where.json",
        (
            "replay",
            "run",
            "-o",
            "a.json",
            "--topic",
            "/tg",
        ): "run: unknown topic '/tg'; did you mean '/tf'",
        ("replay", "run", "-o", "a.json", "--pose", "/p"): "'/p' is not of the form TOPIC=FRAME",
        ("record", "run", "--from", nobody): f"{nobody}: the server has not answered for 10 s",
    }.items():
        code, _, err = run(*arguments)
        assert code == 2, (arguments, err)
        assert reason in err, (arguments, err)
    assert not (tmp_path / "a.json").exists()
    code, out, err = run("replay", "run", "-o", "a.json")
    assert (code, out.splitlines()[-1]) == (0, "Written to a.json")
    assert (
        "run: 3 parts of messages were rejected; the last: /joint_states: unknown joint 'elbow'"
        in err
    )
    address = free_address()
    with serving("--listen", address):
        assert "run: cannot be written: " in run("record", "run", "--from", address)[2]
        assert (
            "unknown storage 'csv'"
            in run("record", "new", "--storage", "csv", "--from", address)[2]
        )
        code, out, _ = run("record", "new", "--from", address, "--seconds", 0)
        assert (code, out.splitlines()[-1]) == (0, "Recorded 1 version to new")
