"""Plan files: equal bytes for equal plans, and errors with their place."""

from __future__ import annotations

import copy
import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from support.blocks import SUSSMAN, blocks_scene
from support.gantry import GANTRY
from support.processes import Process

import tmkit as tk
from tmkit.errors import ArgumentError, MissingFileError, OutputError, PlanFileError
from tmkit.plans import Plan
from tmkit.plans.plan_file import plan_from_dict, plan_to_dict
from tmkit.tamp import PlanStatus


@pytest.fixture(scope="module")
def plan() -> Plan:
    """A plan of six actions of the gantry."""
    result = tk.plan(
        blocks_scene({"a": (1, 1), "b": (-1, 1), "c": "a"}), goal=SUSSMAN, robot=GANTRY
    )
    assert result.plan is not None
    return result.plan


@pytest.fixture(scope="module")
def panda_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a plan of the Panda, whose scene has meshes."""
    path = tmp_path_factory.mktemp("panda") / "plan.json"
    result = tk.plan(tk.load_scene("panda_table", "blocks2"), goal="(on a b)")
    assert result.plan is not None
    tk.save_plan(result.plan, path)
    return path


def document(plan: Plan) -> Any:
    """Return the JSON values of a plan, as a copy."""
    return copy.deepcopy(plan_to_dict(plan))


# --- there and back


def test_a_loaded_plan_equals_the_saved_one(plan: Plan, tmp_path: Path) -> None:
    """Scenes, configurations, arm, texts and segments are restored bit by bit."""
    tk.save_plan(plan, tmp_path / "plan.json")
    loaded = tk.load_plan(tmp_path / "plan.json")
    assert loaded.scene == plan.scene
    assert loaded.robots == plan.robots
    assert loaded.actions == plan.actions
    assert (loaded.domain, loaded.domain_pddl, loaded.domain_digest) == (
        plan.domain,
        plan.domain_pddl,
        plan.domain_digest,
    )
    assert (loaded.goal, loaded.seed) == (plan.goal, plan.seed)
    assert loaded.q.tobytes() == plan.q.tobytes()
    for step, other in zip(loaded.steps, plan.steps, strict=True):
        assert step.scene == other.scene
        assert step.q.tobytes() == other.q.tobytes()
        assert step.choice == other.choice
        for a, b in zip(step.segments, other.segments, strict=True):
            assert a.path.tobytes() == b.path.tobytes()
            assert (a.kind, a.joint_names, dict(a.gripper), a.held) == (
                b.kind,
                b.joint_names,
                dict(b.gripper),
                b.held,
            )
            assert a.allowed_contacts == b.allowed_contacts
            assert a.reparenting == b.reparenting
    assert tk.validate_plan(loaded).is_valid


def test_saving_a_loaded_plan_gives_the_same_bytes(
    plan: Plan, panda_file: Path, tmp_path: Path
) -> None:
    """With and without meshes."""
    tk.save_plan(plan, tmp_path / "step.json")
    for path in (tmp_path / "step.json", panda_file):
        tk.save_plan(tk.load_plan(path), tmp_path / "two.json")
        assert (tmp_path / "two.json").read_bytes() == path.read_bytes()


def test_a_file_without_timing_is_read_and_gets_it_when_saved(plan: Plan, tmp_path: Path) -> None:
    """Files of version 3 had none."""
    old = plan_to_dict(plan, with_timing=False)
    assert old["version"] == 3
    assert "timing" not in old
    tk.save_plan(plan_from_dict(old), tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text()) == plan_to_dict(plan)
    assert plan_to_dict(plan)["version"] == 4


def test_an_empty_plan_has_a_file_too(tmp_path: Path) -> None:
    """A plan without steps is restored and valid."""
    result = tk.plan(blocks_scene({"a": (0, 0)}, table=0.2), goal="(handempty)", robot=GANTRY)
    assert result.plan is not None
    tk.save_plan(result.plan, tmp_path / "plan.json")
    loaded = tk.load_plan(tmp_path / "plan.json")
    assert loaded.steps == ()
    assert loaded.final_scene == loaded.scene
    assert tk.validate_plan(loaded).is_valid


def test_loaded_arrays_are_read_only(plan: Plan) -> None:
    """The arrays of a loaded plan cannot be changed."""
    loaded = plan_from_dict(document(plan))
    arrays = [loaded.q, *(segment.path for step in loaded.steps for segment in step.segments)]
    assert not any(array.flags.writeable for array in arrays)


def test_a_file_is_independent_of_the_machine(panda_file: Path, tmp_path: Path) -> None:
    """It contains no absolute path, home directory or time."""
    vertices = "v 0 0 0\nv 0.05 0 0\nv 0 0.05 0\nv 0 0 0.05\n"
    (tmp_path / "thing.obj").write_text(
        vertices + "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n", encoding="utf-8"
    )
    robray = 'frame thing { translation [0.6, 0.3, 0.2]; geometry { mesh "thing.obj"; } }\n'
    (tmp_path / "own.robray").write_text(robray, encoding="utf-8")
    scene = tk.load_scene("panda_table", "blocks1", tmp_path / "own.robray")
    result = tk.plan(scene, goal="(ontable a table__0__0)")
    assert result.plan is not None
    tk.save_plan(result.plan, tmp_path / "plan.json")
    for path in (panda_file, tmp_path / "plan.json"):
        text = path.read_text(encoding="utf-8")
        for trace in (
            str(tmp_path),
            str(Path.home()),
            str(Path(tk.__file__).parent.parent),
            "site-packages",
            "/tmp",
        ):
            assert trace not in text
        texts = _texts(json.loads(text))
        assert not [word for word in texts if word.startswith(("/", "file:"))]
    assert tk.validate_plan(tk.load_plan(tmp_path / "plan.json")).is_valid


def _texts(value: Any) -> list[str]:
    """Return all texts of a document."""
    if isinstance(value, dict):
        return [text for key, object in value.items() for text in [key, *_texts(object)]]
    if isinstance(value, list):
        return [text for object in value for text in _texts(object)]
    return [value] if isinstance(value, str) else []


def test_bytes_do_not_depend_on_process_folder_or_hash_seed(tmp_path: Path) -> None:
    """Three processes with other folders and hash seeds write the same bytes."""
    command = [
        sys.executable,
        "-m",
        "tmkit.cli",
        "plan",
        "panda_table",
        "blocks2",
        "--goal",
        "(on a b)",
        "--seed",
        "5",
    ]
    running = []
    for number, hash_seed in enumerate(["0", "1", "random"]):
        folder = tmp_path / f"folder{number}"
        folder.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        running.append(Process([*command, "-o", "plan.json"], cwd=folder, env=environment))
    assert [process.wait(600) for process in running] == [0, 0, 0]
    first, *rest = [
        (tmp_path / f"folder{number}" / "plan.json").read_bytes() for number in range(3)
    ]
    assert rest == [first, first]
    result = tk.plan(tk.load_scene("panda_table", "blocks2"), goal="(on a b)", seed=5)
    assert result.status is PlanStatus.SOLVED
    assert result.plan is not None
    tk.save_plan(result.plan, tmp_path / "here.json")
    assert (tmp_path / "here.json").read_bytes() == first


# --- writing


def test_an_output_that_cannot_be_written_leaves_nothing(plan: Plan, tmp_path: Path) -> None:
    """A missing folder and a path of a folder are errors without a file."""
    with pytest.raises(OutputError, match="No such file or directory"):
        tk.save_plan(plan, tmp_path / "nowhere" / "plan.json")
    (tmp_path / "taken").mkdir()
    with pytest.raises(OutputError, match="Is a directory"):
        tk.save_plan(plan, tmp_path / "taken")
    assert [path.name for path in tmp_path.rglob("*")] == ["taken"]


def test_an_interruption_leaves_the_old_file(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an error the old file is complete, without a temporary file."""
    path = tmp_path / "plan.json"
    path.write_text("old", encoding="utf-8")

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        tk.save_plan(plan, path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


# --- damaged files


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"plan.json:1:1: is not JSON: Expecting value"),
        (b'{"format": "tmkit-plan",\n "version": 2,', r"plan.json:2:15: is not JSON: "),
        (b"\xff{", "plan.json:1: is not JSON: not UTF-8 text: invalid start byte"),
        (b"[]", "plan.json: is not a plan: its 'format' is not 'tmkit-plan'"),
        (b"{}", "is not a plan: its 'format' is not 'tmkit-plan'"),
        (b'{"format": "tmkit-plan", "version": 1}', "has plan version 1, this tmkit reads 2"),
        (b'{"format": "tmkit-plan", "version": "2"}', "has plan version '2', this tmkit reads 2"),
        (
            b'{"format": "tmkit-plan", "version": 2}',
            "plan.json: the document: needs the key 'scene'",
        ),
        (b"[" * 100_000, "nested too deeply|not JSON"),
        (b'{"format": ' + b"9" * 5000 + b"}", "is not JSON: a number has more digits"),
    ],
)
def test_a_file_that_is_no_plan(tmp_path: Path, content: bytes, message: str) -> None:
    """Invalid JSON, other documents and other versions are rejected with the place."""
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(PlanFileError, match=message):
        tk.load_plan(path)


def test_a_truncated_file_is_rejected(plan: Plan, tmp_path: Path) -> None:
    """A file that is truncated at any place is an error."""
    tk.save_plan(plan, tmp_path / "plan.json")
    data = (tmp_path / "plan.json").read_bytes()
    for end in np.linspace(0, len(data) - 3, 25, dtype=int):
        (tmp_path / "cut.json").write_bytes(data[:end])
        with pytest.raises(PlanFileError, match=r"cut.json:\d+:\d+: is not JSON"):
            tk.load_plan(tmp_path / "cut.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A folder is no file."""
    with pytest.raises(MissingFileError, match=r"there is no plan file '.*plan\.json'"):
        tk.load_plan(tmp_path / "plan.json")
    with pytest.raises(PlanFileError, match="cannot be read: Is a directory"):
        tk.load_plan(tmp_path)


def _segment(document: Any, number: int = 0, step: int = 0) -> Any:
    return document["steps"][step]["segments"][number]


class _Set:
    """An edit of a document that replaces the value at a path of keys."""

    def __init__(self, *keys: Any, to: Any) -> None:
        self._keys, self._value = keys, to

    def __call__(self, document: Any) -> None:
        """Replace the value."""
        *parents, last = self._keys
        for key in parents:
            document = document[key]
        document[last] = self._value


class _Drop:
    """An edit of a document that removes the value at a path of keys."""

    def __init__(self, *keys: Any) -> None:
        self._keys = keys

    def __call__(self, document: Any) -> None:
        """Remove the value."""
        *parents, last = self._keys
        for key in parents:
            document = document[key]
        del document[last]


SEGMENT = ("steps", 0, "segments", 2)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (_Drop("q"), "needs the key 'q'"),
        (_Drop("goal"), "needs the key 'goal'"),
        (_Drop("robots", 0, "tip"), "key 'tip' is missing"),
        (_Drop("domain", "digest"), "domain: needs the key 'digest'"),
        (_Drop("steps", 1, "choice"), r"steps\[1\]: needs the key 'choice'"),
        (_Drop(*SEGMENT, "held"), r"steps\[0\].segments\[2\]: needs the key 'held'"),
        (
            _Drop(*SEGMENT, "reparent", "pose"),
            r"steps\[0\].segments\[2\].reparent: needs the key 'pose'",
        ),
        (_Set("color", to=1), "unknown key 'color'"),
        (_Set(*SEGMENT, "hold", to=1), r"unknown key 'hold'; did you mean 'held'"),
        (_Set("q", to=[0.0]), "q: .*5"),
        (_Set("q", to="far"), "q: expected a list, received the text 'far'"),
        (_Set("q", 0, to=math.nan), r"q\[0\]: expected a finite number, received nan"),
        (_Set("q", 0, to=None), r"q\[0\]: expected a finite number, received null"),
        (_Set("q", 0, to=True), r"q\[0\]: expected a finite number, received true"),
        (_Set("seed", to="1"), "seed: expected an integer of at least 0, received '1'"),
        (_Set("seed", to=-1), "seed: expected an integer of at least 0, received -1"),
        (_Set("goal", to=3), "goal: expected a text, received 3"),
        (_Set("domain", "name", to=""), "domain.name: expected a name, received an empty text"),
        (_Set("domain", to=[]), "domain: expected an object, received a list"),
        (
            _Set("robots", 0, "joints", to=["x"]),
            "ready names joint 'y', which is not one of its joints",
        ),
        (
            _Set("robots", 0, "tip", to="fist"),
            "tip names frame 'fist', which the scene does not have",
        ),
        (_Set("robots", 0, "grip_force", to=-1), "grip_force must be positive"),
        (_Set("scene", to={}), "needs the key 'format'"),
        (_Set("scene", "version", to=99), "99"),
        (_Set("steps", to={}), "steps: expected a list, received an object"),
        (_Set("steps", 0, "action", to=[]), r"steps\[0\].action: expected the name of an action"),
        (
            _Set("steps", 0, "action", 1, to=7),
            r"steps\[0\].action\[1\]: expected a text, received 7",
        ),
        (_Set(*SEGMENT, "kind", to="grap"), "unknown word 'grap'; did you mean 'grasp'"),
        (_Set(*SEGMENT, "path", to=[]), "path: expected at least one configuration"),
        (_Set(*SEGMENT, "path", 0, to=[0.0, 1.0]), r"path\[0\]: expected 4 numbers, received 2"),
        (
            _Set(*SEGMENT, "path", 0, 1, to=math.inf),
            r"path\[0\]\[1\]: expected a finite number, received inf",
        ),
        (_Set(*SEGMENT, "path", 0, 1, to=10**400), "beyond the largest float"),
        (
            _Set(*SEGMENT, "joints", 0, to="y"),
            r"steps\[0\].segments\[2\].joints: names the joint 'y' twice",
        ),
        (_Set(*SEGMENT, "joints", 0, to="w"), r"steps\[0\].segments\[2\]: unknown joint 'w'|w"),
        (_Set(*SEGMENT, "gripper", to={"thumb": 0.1}), "thumb"),
        (
            _Set(*SEGMENT, "gripper", "finger", to="open"),
            "gripper.finger: expected a finite number",
        ),
        (_Set(*SEGMENT, "held", to="zebra"), "held: 'zebra' is not a frame of the scene"),
        (
            _Set(*SEGMENT, "exemptions", 0, to=["a", "b"]),
            r"exemptions\[0\]: expected two frames, a depth or null, and a",
        ),
        (
            _Set(*SEGMENT, "exemptions", 0, 2, to="deep"),
            r"exemptions\[0\]\[2\]: expected a finite number",
        ),
        (_Set(*SEGMENT, "reparent", "frame", to="zebra"), "zebra"),
        (_Set(*SEGMENT, "reparent", "parent", to="a_hand"), "a_hand"),
        (_Set(*SEGMENT, "reparent", "parent", to="c"), "frame 'c' cannot have parent 'c'"),
        (_Set(*SEGMENT, "reparent", "pose", to=[0.0] * 7), "quat_xyzw is zero"),
        (_Set(*SEGMENT, "reparent", "pose", to=[0.0] * 3), "pose: expected 7 numbers, received 3"),
    ],
)
def test_a_missing_or_invalid_value_is_named(
    plan: Plan, edit: Callable[[Any], None], message: str
) -> None:
    """Each value is checked for its presence, type and names."""
    edited = document(plan)
    edit(edited)
    with pytest.raises(PlanFileError, match=message) as caught:
        plan_from_dict(edited, source="plan.json")
    assert str(caught.value).startswith("plan.json: ")


def test_nan_and_infinity_are_rejected(plan: Plan, tmp_path: Path) -> None:
    """JSON does not have them, but Python reads them."""
    tk.save_plan(plan, tmp_path / "plan.json")
    text = (tmp_path / "plan.json").read_text(encoding="utf-8")
    for word in ("NaN", "Infinity", "-Infinity", "1e999"):
        changed = json.loads(text)
        changed["steps"][0]["segments"][0]["path"][0][0] = "HERE"
        (tmp_path / "odd.json").write_text(
            json.dumps(changed).replace('"HERE"', word), encoding="utf-8"
        )
        with pytest.raises(PlanFileError, match=r"path\[0\]\[0\]: expected a finite number"):
            tk.load_plan(tmp_path / "odd.json")


def test_a_changed_mesh_is_rejected(panda_file: Path) -> None:
    """The file contains the digest of the content of each mesh."""
    document = json.loads(panda_file.read_text(encoding="utf-8"))
    text = json.dumps(document)
    digest = next(
        key
        for key, shape in document["scene"]["shapes"].items()
        if "package://" in json.dumps(shape)
    )
    other = ("0" if digest[0] != "0" else "1") + digest[1:]
    with pytest.raises(PlanFileError, match=r"digest|changed"):
        plan_from_dict(json.loads(text.replace(digest, other)), source="plan.json")
    source = next(
        word
        for word in _texts(document["scene"]["shapes"][digest])
        if word.startswith("package://")
    )
    with pytest.raises(PlanFileError, match=r"nothing\.dae"):
        plan_from_dict(
            json.loads(text.replace(source, "package://pybullet_data/nothing.dae")),
            source="plan.json",
        )


def test_files_of_one_arm_are_still_read() -> None:
    """A file of version 2, whose segments do not name the arm, gives the same plan."""
    old = tk.load_plan(Path(__file__).parents[1] / "data" / "plans" / "version2.json")
    assert old.robots == (GANTRY,)
    assert {segment.arm for step in old.steps for segment in step.segments} == {"gantry"}
    assert [
        problem
        for problem in tk.validate_plan(old).problems
        if "differs from the plan's domain" not in problem
    ] == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: tk.save_plan(cast(Any, "scene"), "plan.json"),
        lambda: tk.validate_plan(cast(Any, "plan.json")),
    ],
)
def test_another_type_is_rejected(call: Callable[[], object]) -> None:
    """The message names the type of a file name or a scene."""
    with pytest.raises(ArgumentError, match=r"'plan' must be a Plan, not a str"):
        call()
