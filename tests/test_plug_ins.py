"""Faulty plug-ins: one error names the distribution, and all others work; imports are lazy."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.commands import tmkit
from support.plug_ins import install_folder, write_distribution

import tmkit as tk
from tmkit.errors import FileFormatError, PlugInError, SceneError, UnknownNameError
from tmkit.formats.format import Format
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.registry import FORMATS, built_in_formats
from tmkit.graph import SceneGraph
from tmkit.motion.registry import MOTION_PLANNERS
from tmkit.plug_ins import PlugInGroup
from tmkit.simulation.engines.registry import ENGINES
from tmkit.task_planning.registry import TASK_PLANNERS, find_task_planner
from tmkit.world.service.transport_registry import TRANSPORTS

PACKAGE = Path(tk.__file__).parent
GROUPS: dict[str, tuple[PlugInGroup[Any], str]] = {
    "formats": (FORMATS, "urdf"),
    "planners": (TASK_PLANNERS, "smt"),
    "motion planners": (MOTION_PLANNERS, "ompl"),
    "engines": (ENGINES, "mujoco"),
    "transports": (TRANSPORTS, "zenoh"),
}
"""The groups, each with a built-in name."""
PLUG_IN = "from tmkit.plug_ins import PlugIn\n"
FORMAT = "from tmkit.formats.format import Format\nfrom tmkit.graph import SceneGraph\n"


def good(group: str, name: str) -> str:
    """Return the text of a registration value."""
    if group == "formats":
        return f"{FORMAT}VALUE = Format('x', ('.{name}',), lambda path, reading: SceneGraph())\n"
    return f"{PLUG_IN}VALUE = PlugIn('{name}', lambda *_, **__: None)\n"


def other_kind(group: str) -> str:
    """Return the text of a registration value of another kind."""
    return good("engines" if group == "formats" else "formats", "toy")


FAULTS = {
    "module is missing": (None, "cannot be loaded: ModuleNotFoundError: No module named"),
    "syntax": ("VALUE = (", "cannot be loaded: SyntaxError"),
    "name is missing": ("OTHER = 1", "cannot be loaded: AttributeError"),
    "import fails": ("1 / 0", "cannot be loaded: ZeroDivisionError"),
    "import ends the program": ("raise SystemExit(0)", "cannot be loaded: SystemExit"),
    "no registration": ("VALUE = 3", "is 3, expected a tmkit.*(PlugIn|Format)"),
    "class": (f"{PLUG_IN}VALUE = PlugIn", "expected a tmkit.*(PlugIn|Format)"),
    "other kind": (other_kind, "expected a tmkit.*(PlugIn|Format)"),
    "other name": ("other", "registers 'other'; its entry point must have this name"),
    "no suffix": (
        f"{FORMAT}VALUE = Format('x', ('toy',), None)",
        "cannot be loaded: ConfigurationError.*'.abc'",
    ),
}
CASES = [
    (group, fault)
    for group in GROUPS
    for fault in FAULTS
    if fault != "no suffix" or group == "formats"
]


def install(
    folder: Path,
    group: str,
    module: str,
    text: str | None,
    *,
    key: str = "toy",
    name: str = "bad-toys",
) -> None:
    """Write a distribution with one entry point."""
    entry_points = f"[{GROUPS[group][0].name}]\n{key} = {module}:VALUE\n"
    write_distribution(
        folder, name, modules={} if text is None else {module: text}, entry_points=entry_points
    )


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder that is searched for distributions."""
    folder = tmp_path / "site"
    folder.mkdir()
    with install_folder(folder):
        yield folder


def faulty_text(group: str, fault: str) -> str | None:
    """Return the text of the module of a faulty plug-in."""
    text = FAULTS[fault][0]
    if fault == "other name":
        return good(group, "other")
    return text(group) if callable(text) else text


@pytest.mark.parametrize(("group", "fault"), CASES)
def test_a_faulty_plug_in_affects_itself_alone(group: str, fault: str, site: Path) -> None:
    """Use of it is an error with the distribution; its list has an error, others are found."""
    registry, built_in = GROUPS[group]
    before, errors = registry.load_all()
    assert errors == []
    install(site, group, "faulty", faulty_text(group, fault))
    install(site, group, "fine", good(group, "fine"), key="fine", name="fine-toys")
    with pytest.raises(
        PlugInError, match=rf"(?s)plug-in 'toy' of the distribution 'bad-toys' .*{FAULTS[fault][1]}"
    ):
        registry.find("toy")
    plug_ins, errors = registry.load_all()
    assert [(error.name, error.distribution) for error in errors] == [("toy", "bad-toys")]
    assert [entry.distribution for entry in plug_ins[len(before) :]] == ["fine-toys"]
    assert plug_ins[: len(before)] == before
    assert registry.find("fine").distribution == "fine-toys"
    assert registry.find(built_in).distribution == ""


@pytest.mark.parametrize("group", GROUPS)
def test_names_that_are_taken_are_not_given_again(group: str, site: Path) -> None:
    """A built-in name keeps its meaning; two that claim one name are an error with both."""
    registry, built_in = GROUPS[group]
    value = registry.find(built_in)
    install(site, group, "thief", good(group, built_in), key=built_in, name="thief")
    install(site, group, "first", good(group, "toy"), name="first-toys")
    install(site, group, "second", good(group, "toy"), name="second-toys")
    assert registry.find(built_in) == value
    assert "thief" not in sys.modules
    with pytest.raises(
        PlugInError,
        match=r"'toy' .* is claimed by the distributions 'first-toys' and 'second-toys'",
    ):
        registry.find("toy")
    assert "toy" not in registry.plug_in_keys()
    plug_ins, errors = registry.load_all()
    assert sorted(error.distribution for error in errors) == ["first-toys", "thief"]
    assert all(not entry.distribution for entry in plug_ins)


@pytest.mark.parametrize(
    ("name", "suffixes", "claimed"),
    [("x", (".toy", ".urdf"), "urdf"), ("urdf", (".toy",), "urdf"), ("glTF", (".toy",), "glTF")],
)
def test_a_format_may_not_claim_a_built_in_suffix_or_name(
    name: str, suffixes: tuple[str, ...], claimed: str, site: Path
) -> None:
    """URDF files are still read by tmkit; the plug-in's suffix is rejected too."""
    text = f"{FORMAT}VALUE = Format('{name}', {suffixes}, lambda path, reading: SceneGraph())\n"
    install(site, "formats", "greedy", text)
    assert FORMATS.find("urdf").value is FORMATS.find_built_in("urdf")
    with pytest.raises(
        PlugInError, match=f"'bad-toys' .* claims '{claimed}', the name of a built-in scene format"
    ):
        FORMATS.find("toy")


@pytest.mark.parametrize("has_metadata", [True, False])
def test_damaged_metadata_of_others_does_no_harm(has_metadata: bool, site: Path) -> None:
    """A distribution without METADATA has its folder's name; bad entry points are skipped."""
    points = "[tmkit.formats]\ntoy = fine:VALUE\n"
    write_distribution(
        site,
        "fine-toys",
        modules={"fine": good("formats", "toy")},
        entry_points=points,
        has_metadata=has_metadata,
    )
    write_distribution(
        site,
        "damaged",
        modules={},
        entry_points="[tmkit.formats]\nnothing\n= \n[",
        has_metadata=False,
    )
    (site / "empty-1.0.dist-info").mkdir()
    assert FORMATS.find("toy").distribution in ("fine-toys", "fine_toys")
    assert FORMATS.load_all()[1] == []


def test_a_format_with_several_suffixes_is_listed_once(site: Path) -> None:
    """Each suffix is found by a separate entry point."""
    text = f"{FORMAT}VALUE = Format('x', ('.toy', '.toyb'), lambda path, reading: SceneGraph())\n"
    points = "[tmkit.formats]\ntoy = two:VALUE\ntoyb = two:VALUE\n"
    write_distribution(site, "toys", modules={"two": text}, entry_points=points)
    assert FORMATS.find("toy") == FORMATS.find("toyb")
    assert [entry.value.suffixes for entry in FORMATS.load_all()[0] if entry.distribution] == [
        (".toy", ".toyb")
    ]


def test_only_the_plug_in_of_the_suffix_is_imported(site: Path, tmp_path: Path) -> None:
    """Only files of a plug-in's format import that plug-in."""
    for name in ("one", "two"):
        install(site, "formats", f"toy_{name}", good("formats", name), key=name, name=name)
    (tmp_path / "a.robray").write_text("frame a { parent world; }")
    (tmp_path / "a.three").write_text("")
    (tmp_path / "a.one").write_text("")
    tk.load_scene(tmp_path / "a.robray")
    with pytest.raises(
        FileFormatError, match=r"unknown scene format '\.three' \(accepted: .*, \.one, \.two\)"
    ):
        tk.load_scene(tmp_path / "a.three")
    assert not {"toy_one", "toy_two"} & set(sys.modules)
    tk.load_scene(tmp_path / "a.one")
    assert {"toy_one", "toy_two"} & set(sys.modules) == {"toy_one"}
    (tmp_path / "b.robray").write_text('include "a.two"')
    (tmp_path / "a.two").write_text("")
    with pytest.raises(FileFormatError, match=r"b\.robray:1:\d+: unknown scene format '\.two'"):
        tk.load_scene(tmp_path / "b.robray")
    assert "toy_two" not in sys.modules


READERS = {
    "raises": ("1 / 0", "fails: ZeroDivisionError: division by zero"),
    "lacks a module": ("__import__('no_such_module')", "fails: ModuleNotFoundError"),
    "returns nothing": ("None", "returns None, expected a SceneGraph"),
    "returns another type": ("'scene'", "returns 'scene', expected a SceneGraph"),
    "raises an error of a scene": (
        "SceneGraph().add_frame('a', 'nowhere')",
        "unknown frame 'nowhere'",
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_readers_that_fail_are_errors_of_the_file(reader: str, site: Path, tmp_path: Path) -> None:
    """The command ends with one message that names the file, and no traceback."""
    text, reason = READERS[reader]
    install(
        site,
        "formats",
        "reader",
        f"{FORMAT}VALUE = Format('x', ('.toy',), lambda path, reading: {text})\n",
    )
    (tmp_path / "cell.toy").write_text("")
    outcome = tmkit(tmp_path, "scene", "check", "cell.toy")
    assert outcome.code == 2
    assert outcome.err.startswith("error: cell.toy")
    assert reason in outcome.err
    assert "Traceback" not in outcome.err
    assert ("distribution 'bad-toys'" in outcome.err) is (reader != "raises an error of a scene")


WRITERS = {
    "raises": ("1 / 0", "fails: ZeroDivisionError"),
    "returns text": ("'text'", "returns 'text', expected the contents of 'a.toy'"),
    "omits the scene": ("{'b.toy': ''}", "expected the contents of 'a.toy'"),
    "leaves the folder": ("{name: '', '../b.obj': ''}", "expected the contents of 'a.toy'"),
    "returns numbers": ("{name: 3}", "expected the contents of 'a.toy'"),
    "loses frames": (
        "{name: ''}",
        "a .toy file cannot hold this scene: its frames would read back without 'a'",
    ),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_writers_that_fail_write_nothing(writer: str, site: Path, tmp_path: Path) -> None:
    """Nothing is written unless all is."""
    text, reason = WRITERS[writer]
    value = (
        "VALUE = Format('x', ('.toy',), lambda path, reading: SceneGraph(), lambda scene, name:"
        f" {text})\n"
    )
    install(site, "formats", "writer", FORMAT + value)
    folder = tmp_path / "out"
    folder.mkdir()
    with pytest.raises(SceneError) as caught:
        tk.formats.convert_scene(SceneGraph().add_frame("a", "world"), folder / "a.toy")
    assert reason in str(caught.value)
    assert list(folder.iterdir()) == []
    assert not (tmp_path / "b.obj").exists()


def test_a_format_without_a_writer_is_not_written(site: Path, tmp_path: Path) -> None:
    """The message names the formats that are."""
    install(site, "formats", "only_read", good("formats", "toy"))
    with pytest.raises(SceneError, match=r"cannot write '\.toy' files.* \(known: .*\.json"):
        tk.formats.convert_scene(SceneGraph(), tmp_path / "a.toy")


def test_scenes_of_plug_ins_are_not_kept(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed reader is run again, though the file and its meshes are the same."""
    monkeypatch.setenv("TMKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(MeshLoader, "has_read", True)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    reader = "lambda path, reading: SceneGraph().add_frame('{}', 'world')"
    text = f"{FORMAT}VALUE = Format('x', ('.toy',), {reader})\n"
    install(site, "formats", "changing", text.format("first"))
    (tmp_path / "cell.toy").write_text("")
    monkeypatch.setattr("tmkit.formats.scene_cache._SETTLING_TIME", -(10**18))
    assert "first" in tk.load_scene(tmp_path / "cell.toy")
    (site / "changing.py").write_text(text.format("second"))
    del sys.modules["changing"]
    assert "second" in tk.load_scene(tmp_path / "cell.toy")


MAKERS = {
    "raises": ("lambda *_, **__: 1 / 0", "fails: ZeroDivisionError"),
    "takes other arguments": ("lambda *, needed: None", "fails: TypeError"),
    "makes nothing": ("lambda *_, **__: None", "makes None, expected a"),
    "makes a class": ("lambda *_, **__: int", "makes <class 'int'>, expected a"),
}


@pytest.mark.parametrize("group", [group for group in GROUPS if group != "formats"])
@pytest.mark.parametrize("maker", MAKERS)
def test_makers_that_fail_are_errors_of_the_plug_in(group: str, maker: str, site: Path) -> None:
    """The error names the distribution, and the methods that are needed."""
    text, reason = MAKERS[maker]
    install(site, group, "maker", f"{PLUG_IN}VALUE = PlugIn('toy', {text})\n")
    registry: Any = GROUPS[group][0]
    with pytest.raises(PlugInError, match=f"plug-in 'toy' of the distribution 'bad-toys' {reason}"):
        registry.make("toy")


def test_what_a_plug_in_lacks_is_installed_by_a_command(site: Path) -> None:
    """A missing module is reported with its install command, in the list and on use."""
    value = "PlugIn('toy', lambda: __import__('no_such_module'), 'Toys.', module='no_such_module')"
    install(site, "planners", "lacking", f"{PLUG_IN}VALUE = {value}\n")
    (entry,) = [entry for entry in TASK_PLANNERS.load_all()[0] if entry.distribution]
    assert (entry.is_usable, entry.install_command) == (False, "pip install no_such_module")
    with pytest.raises(ImportError, match="'toy' needs no_such_module: pip install no_such_module"):
        find_task_planner("toy")


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (("task", "d.pddl", "p.pddl", "--planner"), "planners"),
        (
            ("plan", "panda_table", "blocks1", "--goal", "(holding a)", "--motion-planner"),
            "motion planners",
        ),
        (("plan", "panda_table", "blocks1", "--goal", "(holding a)", "--task-planner"), "planners"),
        (("simulate", "plan.json", "--engine"), "engines"),
        (("serve", "--transport"), "transports"),
    ],
)
def test_commands_name_faulty_and_unknown_plug_ins(
    command: tuple[str, ...], kind: str, site: Path, tmp_path: Path
) -> None:
    """A command ends before any work with one message; an unknown name lists the known ones."""
    install(site, kind, "faulty", "1 / 0")
    outcome = tmkit(tmp_path, *command, "toy")
    assert outcome.code == 2
    assert outcome.err.count("distribution 'bad-toys'") == 1, outcome
    assert "Traceback" not in outcome.err
    unknown = tmkit(tmp_path, *command, "guess")
    assert unknown.code == 2
    assert GROUPS[kind][1] in unknown.err, unknown
    assert "toy" in unknown.err, unknown


@pytest.mark.parametrize("kind", ["formats", "planners", "engines", "transports"])
def test_lists_warn_of_faulty_plug_ins(kind: str, site: Path, tmp_path: Path) -> None:
    """The list is whole, and one line on the standard error names the distribution."""
    whole = tmkit(tmp_path, "list", kind)
    install(site, kind, "faulty", "1 / 0")
    outcome = tmkit(tmp_path, "list", kind)
    assert (outcome.code, outcome.out) == (0, whole.out)
    assert outcome.err.count("distribution 'bad-toys'") == 1
    assert whole.err == ""


def test_lists_have_what_an_extra_would_add(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its module, an entry has the command that installs it."""
    for kind, module, extra in (
        ("formats", "pxr", "formats"),
        ("formats", "xacro", "formats"),
        ("planners", "z3", "planners"),
        ("planners", "ompl", "planners"),
        ("planners", "unified_planning", "planners"),
        ("engines", "mujoco", "engines"),
        ("transports", "zenoh", "world"),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        listed = tmkit(tmp_path, "list", kind).out
        assert (
            f"(not installed: pip install -e '.[{extra}]' in the folder of tmkit's sources)"
            in listed
        ), listed


def test_an_argument_is_only_for_names_that_take_one() -> None:
    """A colon after other names is an unknown name."""
    with pytest.raises(UnknownNameError, match="unknown task planner 'smt:fast'"):
        TASK_PLANNERS.make("smt:fast")
    assert type(MOTION_PLANNERS.make("ompl:BITstar")).__name__ == "OmplPlanner"


def test_suffixes_stand_in_the_folder_of_their_format() -> None:
    """Outside ``formats`` no module names a suffix of scenes; below it, only built-in ones."""
    suffixes = {suffix for entry in built_in_formats() for suffix in entry.suffixes} - {".json"}
    occurrences = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] != "formats"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in suffixes
    }
    assert occurrences == {"_support/data.py"}


@pytest.mark.parametrize("suffixes", [(), ".abc", ("abc",), (".ABC",), (".a/b",), (".",)])
def test_suffixes_have_one_form(suffixes: Any) -> None:
    """Any suffix but lower case with a dot is rejected."""
    with pytest.raises(
        ValueError, match=r"suffixes=.* expected a tuple of suffixes in lower case with the dot"
    ):
        Format("x", suffixes, lambda _path, _reading: None)
