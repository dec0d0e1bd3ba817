"""What is found in texts of an editor: mistakes, what may stand at a place, what a name is."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit.formats.mesh.package_uris import real_path
from tmkit.lsp.project import Project, all_findings, meaning_of, syntax_findings
from tmkit.lsp.text_index import LANGUAGES, TextIndex

ROOT = Path(__file__).parents[2]
_FILES = ("tests/data/kitchen_table.rsg", "scenes/classes.robray", "domains/kitchen/domain.pddl")
TEXTS = [ROOT / name for name in _FILES]
DESK = """include "lengths.robray"
class wood { color [0.7, 0.5, 0.3]; }
frame desk {
    translation [0, 0, 60*cm];
    frame drawer { type prismatic; axis [-1, 0, 0]; variable slide; lower 0; upper 0.3; }
    geometry { isa wood; shape box; dimension [0.8, 1.2, 2*cm]; }
}
frame cup { parent desk; }
"""
ROOM = """root room
Group room { child desk_pose }
Transform desk_pose { child desk }
GeometricNode desk { geometry top }
Box top { sizeX 1.2 m sizeY 80 cm sizeZ 20 mm }
"""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


class Editor:
    """Texts of files that are not on the disk, in a folder."""

    def __init__(self, folder: Path, **texts: str) -> None:
        self.project, self.folder = Project(), folder
        for name, text in texts.items():
            self.open(name.replace("_", "."), text)

    def open(self, name: str, text: str) -> TextIndex:
        """Put a text in the place of a file."""
        index = TextIndex(self.folder / name, text)
        self.project.open[real_path(index.path)] = index
        return index

    def check(self, name: str) -> list[str]:
        """Return line, column and message of each finding, and keep the frames."""
        index = self.project.open[real_path(self.folder / name)]
        texts = {path: one.text for path, one in self.project.open.items()}
        domain = self.project.domain_of(index) if index.path.suffix == ".pddl" else None
        found, frames = all_findings(index, texts, domain)
        if frames is not None:
            self.project.frames[real_path(index.path)] = frames
        return [f"{one.path.name}:{one.line}:{one.column}: {one.text}" for one in found]

    def complete(self, name: str, text: str) -> set[str]:
        """Return what may stand at the mark ``|`` of a text."""
        index = self.open(name, text.replace("|", ""))
        return set(self.project.completions(index, text.index("|")))

    def hover(self, name: str, text: str) -> tuple[str, str]:
        """Return the description and the declaration (FILE:LINE:COLUMN) of the word at ``|``."""
        index = self.open(name, text.replace("|", ""))
        token = index.token_at(text.index("|"))
        assert token is not None
        definition = self.project.definitions_of(index, token)[0]
        return (
            definition.describe(),
            f"{definition.path.name}:{definition.line + 1}:{definition.column + 1}",
        )


def test_the_text_in_the_editor_overrides_the_disk(tmp_path: Path) -> None:
    """For the file itself and an included file, with another text on the disk, or none."""
    (tmp_path / "lengths.robray").write_text("def cm = wrong")
    editor = Editor(tmp_path, desk_robray=DESK, lengths_robray="def cm 1e-2;")
    assert editor.check("desk.robray") == []
    editor.open("lengths.robray", "def mm 1e-3;")
    assert editor.check("desk.robray") == [
        "desk.robray:4:27: unknown constant 'cm'; did you mean 'mm'?"
    ]
    editor.open("lengths.robray", "def cm 1e-2")
    assert editor.check("desk.robray")[0].startswith("lengths.robray:1:12: the file ends too early")


def test_all_errors_of_rsg_are_found_and_notes_are_warnings(tmp_path: Path) -> None:
    """Syntax errors need no reading of the scene; all errors of names and notes follow."""
    editor = Editor(tmp_path, room_rsg=ROOM + "Group a { chidl b }\nGroup c { child d e }\n")
    index = editor.project.open[real_path(tmp_path / "room.rsg")]
    assert [(one.line, one.column) for one in syntax_findings(index) or ()] == [(6, 11), (7, 19)]
    editor.open("room.rsg", ROOM + "Group a { child b }\nGroup c { child d }\n")
    assert editor.check("room.rsg") == [
        "room.rsg:6:17: the child 'b' is declared nowhere",
        "room.rsg:7:17: the child 'd' is declared nowhere",
    ]
    editor.open("room.rsg", ROOM + "Node late { }\n")
    assert editor.check("room.rsg") == [
        "room.rsg:6:6: 'late' is below no root, and is not part of the scene"
    ]


def test_frames_of_other_files_are_warnings_and_duplicates_are_errors(tmp_path: Path) -> None:
    """A part of a scene is valid; a frame that no scene can contain is an error."""
    editor = Editor(
        tmp_path, a_robray="frame cup { parent table; }\n", b_robray="frame a { }\nframe a { }\n"
    )
    (found,) = editor.check("a.robray")
    assert found.startswith("a.robray:1:20: 'table', the parent of 'cup', is declared by no file")
    (found,) = editor.check("b.robray")
    assert found.startswith("b.robray:2:7: the frame 'a' is already declared")


def test_problems_are_read_with_the_domain_beside_them(tmp_path: Path) -> None:
    """The domain lies in the folder or its parent; without one there is a finding."""
    domain = "(define (domain trays)\n (:predicates (on ?a ?b))\n)"
    problem = (
        "(define (problem p) (:domain trays) (:objects a b) (:init (on a c)) (:goal (on a b)))"
    )
    editor = Editor(tmp_path, domain_pddl=domain, p_pddl=problem)
    assert editor.check("domain.pddl") == []
    (found,) = editor.check("p.pddl")
    assert found.startswith("p.pddl:1:65: unknown object")
    editor = Editor(tmp_path, p_pddl=problem)
    assert editor.check("p.pddl") == [
        "p.pddl:None:None: no domain 'trays' in this folder or the one above"
    ]
    editor = Editor(tmp_path, d_pddl="(define (domain x) (:predicates (p ?a - nothing)))")
    (found,) = editor.check("d.pddl")
    assert "nothing" in found


@pytest.mark.parametrize(
    ("text", "there", "not_there"),
    [
        ("|", {"frame", "include", "def"}, {"parent"}),
        ("frame a { | }", {"parent", "geometry", "frame", "isa", "type"}, {"class", "shape"}),
        ("frame a { } frame b { parent | }", {"a", "b"}, {"parent", "wood"}),
        ("frame a { } frame b { parent a; ty| }", {"type"}, set()),
        ("frame a { type | }", {"revolute", "fixed"}, {"a"}),
        ("class wood {} frame a { isa | }", {"wood", "movable"}, {"a"}),
        ("class wood {} frame a { geometry { sh| ", {"shape", "dimension"}, {"parent"}),
        ("def cm 1e-2;\nframe a { translation [0, 0, 2*|", {"cm"}, {"a"}),
        ("frame a { translation [0, 0, 0]\n pa|\n}", {"parent"}, set()),
        ("frame |", set(), {"frame"}),
        ("frame a { /* { */ | }", {"parent"}, set()),
    ],
)
def test_completions_in_robray(
    tmp_path: Path, text: str, there: set[str], not_there: set[str]
) -> None:
    """Keywords of the block, words and names that fit, also where a text is half-written."""
    found = Editor(tmp_path).complete("a.robray", text)
    assert there <= found
    assert not not_there & found


@pytest.mark.parametrize(
    ("text", "there", "not_there"),
    [
        ("|", {"Group", "root", "import"}, {"child"}),
        ("Group a { | }", {"child", "Attribute"}, {"Group", "sizeX"}),
        ("Box top { } Group a { child | }", {"a"}, {"child", "top"}),
        ("Box top { } GeometricNode a { geometry | }", {"top"}, {"a"}),
        ("Box top { sizeX 1 | }", {"m", "cm"}, set()),
        ("Box top { sizeX 1 m | }", {"sizeY"}, {"child"}),
        (
            "Transform a { transforms { RigidTransform t { stamp TimeStamp ( 1 s ) | ",
            {"value", "covariance"},
            {"child"},
        ),
        ("Transform a { unplaced | }", {"child"}, set()),
        ("Group a { }\nInstance b of |", {"a"}, set()),
        ("FunctionBlock f { trigger | }", {"after", "onChange"}, set()),
        ("FunctionBlock f { trigger after | }", {"f"}, set()),
        ("root |\nGroup room { }", {"room"}, {"Group"}),
    ],
)
def test_completions_in_rsg(
    tmp_path: Path, text: str, there: set[str], not_there: set[str]
) -> None:
    """Keywords of the block, units and names of the kind that fits."""
    found = Editor(tmp_path).complete("a.rsg", text)
    assert there <= found
    assert not not_there & found


DOMAIN = """(define (domain trays)
 (:types tray item - object)
 (:predicates (on ?a - item ?b - tray) (full ?b - tray))
 (:action put :parameters (?a - item ?b - tray)
  :precondition (and (not (full ?b)))
  :effect (on ?a ?b)))
"""


@pytest.mark.parametrize(
    ("before", "after", "there", "not_there"),
    [
        ("(define (domain trays)\n ", "(:pre| ", {":predicates", ":action"}, {"and", "on"}),
        ("(full ?b - tray)", " (p ?x - |)", {"tray", "item"}, {"on"}),
        ("(and (not (full ?b))", " (|", {"on", "full", "not"}, {":action", "tray"}),
        (":effect (on ?a ?b)", " :| ", {":precondition"}, {"on"}),
        ("(and (not (full ", "|", {"?a", "?b"}, {"on"}),
    ],
)
def test_completions_in_pddl(
    tmp_path: Path, before: str, after: str, there: set[str], not_there: set[str]
) -> None:
    """Sections, connectives, predicates, types and variables, each where it belongs."""
    assert DOMAIN.count(before) == 1
    found = Editor(tmp_path).complete("domain.pddl", DOMAIN.replace(before, before + after))
    assert there <= found
    assert not not_there & found


def test_hover_and_definition_of_names(tmp_path: Path) -> None:
    """Across files, by the kind that fits the place, and with more detail of a read scene."""
    editor = Editor(tmp_path, lengths_robray="// lengths\ndef cm 1e-2;")
    (tmp_path / "lengths.robray").touch()
    text, place = editor.hover("desk.robray", DESK.replace("60*cm", "60*c|m"))
    assert "def cm 1e-2;" in text
    assert place == "lengths.robray:2:5"
    text, place = editor.hover("desk.robray", DESK.replace("parent desk", "parent de|sk"))
    assert text.startswith("frame `desk`\n")
    assert place == "desk.robray:3:7"
    editor.check("desk.robray")
    text, _ = editor.hover("desk.robray", DESK.replace("parent desk", "parent de|sk"))
    assert text.startswith("frame `desk`, child of `world`; box 0.8 x 1.2 x 0.02; is wood\n")
    text, _ = editor.hover("desk.robray", DESK.replace("frame drawer", "frame drawe|r"))
    assert text.startswith(
        "frame `drawer`, child of `desk`; prismatic joint `slide` from 0 to 0.3\n"
    )
    text, place = editor.hover("desk.robray", DESK.replace("isa wood", "isa wo|od"))
    assert text.startswith("class `wood`")
    text, place = editor.hover("room.rsg", ROOM.replace("child desk }", "child des|k }"))
    assert text.startswith("node `desk`, below `desk_pose`\n")
    assert place == "room.rsg:4:15"
    editor.check("room.rsg")
    assert (
        "box 1.2 x 0.8 x 0.02"
        in editor.hover("room.rsg", ROOM.replace("child desk }", "child des|k }"))[0]
    )
    text, place = editor.hover("domain.pddl", DOMAIN.replace(":effect (on", ":effect (o|n"))
    assert "(on ?a - item ?b - tray)" in text
    assert place == "domain.pddl:3:16"


def test_a_read_scene_defines_the_frames_of_robot_descriptions(tmp_path: Path) -> None:
    """An included URDF declares names, too."""
    (tmp_path / "arm.urdf").write_text("<robot name='r'>\n<link name='base'/>\n</robot>")
    text = 'include "arm.urdf"\nframe tool { parent bas|e; }\n'
    editor = Editor(tmp_path, a_robray=text.replace("|", ""))
    assert editor.check("a.robray") == []
    text, place = editor.hover("a.robray", text)
    assert text == "frame `base`, child of `world`"
    assert place.startswith("arm.urdf:2:")


def test_no_file_outside_of_the_sandbox_is_read(tmp_path: Path) -> None:
    """The editor reads no file that a scene may not include."""
    (tmp_path / "secret.robray").write_text("def password 42;\n")
    folder = tmp_path / "a" / "project" / "scenes"
    folder.mkdir(parents=True)
    text = 'include "../../../secret.robray"\ndef x pass|word;'
    editor = Editor(folder, a_robray=text.replace("|", ""))
    assert "outside the folders" in editor.check("a.robray")[0]
    index = editor.project.open[real_path(folder / "a.robray")]
    assert {each.name for each in editor.project.definitions(index)} == {"x"}


def test_every_keyword_has_a_meaning() -> None:
    """The table of explanations has exactly the keywords of the languages."""
    for suffix, language in LANGUAGES.items():
        index = TextIndex(Path(f"a{suffix}"), "")
        for word in {word for known in language.blocks.values() for word in known}:
            assert meaning_of(index, word), (suffix, word)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
@given(data=st.data())
@settings(max_examples=scaled_examples(5), deadline=None)
def test_every_damaged_text_has_findings_and_completions(path: Path, data: st.DataObject) -> None:
    """A text with a removed or moved piece has findings, completions and descriptions."""
    text = path.read_text()
    begin, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    more = data.draw(
        st.sampled_from(
            ["", '"', "{", "}", "(", ")", "/*", "frame", ";", "\u2028", "\x00", "child", "-"]
        )
    )
    text = text[:begin] + more + text[end:]
    index, project = TextIndex(path, text), Project()
    project.open[real_path(path)] = index
    syntax_findings(index)
    domain = project.domain_of(index) if path.suffix == ".pddl" else None
    all_findings(index, {real_path(path): text}, domain)
    at = data.draw(st.integers(max(0, begin - 20), min(len(text), begin + 20)))
    project.completions(index, at)
    token = index.token_at(at)
    if token is not None:
        for definition in project.definitions_of(index, token):
            definition.describe()
