"""Measures of the project's structure: each finds exactly the places that it should."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import shape
from shape import LIMITS, MEASURES, main, new_places
from source_text import Checkout, Place, sentences_of
from support.processes import run_process

ROOT = Path(__file__).resolve().parents[1]
PROJECT = (
    '[project]\ndependencies = ["numpy>=2", "Lark"]\n[project.optional-dependencies]\nworld ='
    ' ["eclipse-zenoh"]\n'
)
SKIP = "# fmt: " + "skip"  # in two, since this file is measured too
OFF = "#fmt:" + "off"
LONG = " ".join(["word"] * 31)


def _checkout(folder: Path, files: dict[str, str]) -> Checkout:
    """Write a checkout with files."""
    for path, text in {"tmkit/__init__.py": "", "pyproject.toml": PROJECT, **files}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return Checkout(folder)


def _found(checkout: Checkout, measure: str) -> list[tuple[str, int]]:
    return sorted((place.path, place.line) for place in MEASURES[measure].find(checkout))


EIGHT = "a, b, c, d, e, f, g, h"
SEVEN = "a, b, c, d, e, f, g"

CASES = [
    ("parameters", f"def f({EIGHT}): ...\ndef g({SEVEN}): ...\n", [1]),
    (
        "parameters",
        f"def f({SEVEN}, **more): ...\ndef g({SEVEN}, *more): ...\ndef h(*, {EIGHT}): ...\n",
        [1, 2, 3],
    ),
    (
        "parameters",
        f"class A:\n def f(self, {SEVEN}): ...\n async def g(self, {EIGHT}): ...\n",
        [3],
    ),
    (
        "parameters",
        (
            f"class A:\n @staticmethod\n def f({EIGHT}): ...\n @classmethod\n def g(cls, {SEVEN}):"
            " ...\n"
        ),
        [3],
    ),
    (
        "parameters",
        f"def f():\n def g({EIGHT}): ...\n class A:\n  def h(self, {SEVEN}): ...\n",
        [2],
    ),
    (
        "keywords",
        (
            "def f(**more): ...\ndef _g(**more): ...\nclass _A:\n def h(self, **more): ...\ndef"
            " i(*more): ...\n"
        ),
        [1],
    ),
    (
        "any",
        (
            "def f(a: Any): ...\ndef _g(a: Any): ...\ndef h(a: list[Any]): ...\ndef i(*, a: Any ="
            " 1): ...\n"
        ),
        [1, 4],
    ),
    ("patched", "f.__signature__ = 1\nf.__doc__ = ''\n__annotations__ = {}\n", [1]),
    ("outside", "class A:\n n: int\n def f(self, a):\n  self.n = 1\n  a.n = 2\n a.m = 3\n", [5]),
    (
        "outside",
        (
            "class A:\n def __init__(me, a):\n  me.n = self.n = 1\ndef f(a):\n a.n += 1\n del a.n\n"
            " a.k = 1\n"
        ),
        [3, 5, 6],
    ),
    (
        "outside",
        (
            "class A:\n n: int\n @staticmethod\n def f(a):\n  a.n = a.n = 1\ndef g(a):\n a.n: int"
            " = 2\n"
        ),
        [5, 7],
    ),
    ("outside", "class A:\n n: int\n def f(self):\n  def g():\n   self.n = 2\n  return g\n", []),
    (
        "outside_calls",
        (
            "class A:\n n: list\n def f(self, a):\n  self.n.append(1)\n  a.n.append(1)\n "
            " a.n.index(1)\n"
        ),
        [5],
    ),
    (
        "outside_calls",
        "class A:\n n: list\ndef f(a, n):\n n.append(1)\n a.other.append(1)\n a.b.n.clear()\n",
        [6],
    ),
    (
        "setattr",
        "object.__setattr__(self, 'n', 1)\nsetattr(self, 'n', 1)\nsuper().__setattr__('n', 1)\n",
        [1],
    ),
    ("headlines", '"""How plans are made."""\n', [1]),
    ("headlines", '"""Howling wolves."""\n', []),
    ("headlines", '"""Plans.\n\nHow they are made.\n"""\ndef f():\n """What it is."""\n', [6]),
    ("sentences", f'"""{LONG}."""\ndef f():\n """{LONG[5:]}."""\n', [1]),
    (
        "sentences",
        f'def f():\n """Short. {LONG}: a. Short."""\nclass A:\n """``{LONG}`` is one word."""\n',
        [2],
    ),
    ("sentences", f'"""Words.\n\n* {LONG[:90]}\n* {LONG[:90]}\n\n    a   {LONG}\n"""\n', []),
    ("sentences", f'"""Words::\n\n    {LONG}\n\n    more\n\nEnd.\n"""\n', []),
    ("units", '"""A distance in metres."""\nA = 1  # in radians\n"""[metres]"""\n', [1, 2, 3]),
    ("units", '"""[m], parametres."""\nA = "metres"\n', []),
    ("idioms", "# One of them will do.\nA = 1  # whatever it is\n", [1, 2]),
    ("idioms", "# One of them suffices.\n", []),
    ("personification", 'def f():\n """Return a scene that knows its frames."""\n', [2]),
    ("personification", "A = 1  # noqa: says nothing\nB = 1  # knowledge\n", []),
    ("what_clauses", '"""Plans.\n\nReturn what is planned.\n"""\n# what if it is none\n', [1]),
    ("refusals", "# A wrong name is refused.\n# Another refusal.\n# Rejected.\n", [1, 2]),
    (
        "raises",
        'def f():\n """F.\n\n Raises:\n     AError: a name.\n     BError: if wrong.\n """\n',
        [2],
    ),
    ("participles", "def released(): ...\ndef _taken_off(): ...\ndef embed(): ...\n", [1, 2]),
    ("participles", "class A:\n @property\n def closed(self): ...\n def close(self): ...\n", []),
    ("participles", "def away(): ...\ndef shorten(): ...\ndef speed(): ...\n", [1]),
    ("adverbs", "found = 1\nfor way, path in (): ...\ndef f(at): ...\n", [1, 2, 3]),
    ("adverbs", "founder = 1\nx.found = 1\nprint(found)\n", []),
    ("unnamed_constants", "A, _B = 1, 2\n_SHORT = 0.5\n_LOW = -1\n", [1, 2, 3]),
    ("unnamed_constants", "A = 1\n_SHORT_EDGE = 0.5\n_NAMES = ()\na, b = 1, 2\n", []),
    (
        "function_factories",
        "def f() -> Callable[[], int]: ...\ndef g(a: Callable[[int], Callable[[], int]]): ...\n",
        [1, 2],
    ),
    ("function_factories", "def f(a: Callable[[int], int]) -> int:\n def g(): ...\n", []),
    ("function_factories", "def f():\n def g():\n  def h(): ...\n", [1]),
    ("packed_values", "a, b, c, d = 1, 2, 3, 4\na, b, c = 1, 2, 3\na, b, c, d = f()\n", [1]),
    ("formatter_off", f"a = 1  {SKIP}\nb = 2  # fmt: on\n{OFF}\nfmt = 'skip'\n", [1, 3]),
    (
        "search_settings",
        "class MySearchSettings:\n n: int = 1\n M = 2\nclass Settings:\n n: int = 1\n",
        [2],
    ),
]


@pytest.mark.parametrize(
    ("measure", "text", "lines"), CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)]
)
def test_a_measure_finds_its_places(
    tmp_path: Path, measure: str, text: str, lines: list[int]
) -> None:
    """By path and line, in their order."""
    checkout = _checkout(tmp_path, {"tmkit/pddl/text.py": text})
    assert _found(checkout, measure) == [("tmkit/pddl/text.py", line) for line in lines]


def test_every_measure_of_one_file_has_a_case() -> None:
    """Those of several files are tested below."""
    apart = {
        "exports",
        "exports_nested",
        "libraries",
        "extras",
        "parameters_core",
        "parameters_cli",
    }
    assert {case[0] for case in CASES} == MEASURES.keys() - apart - {"constants_twice", "literals"}


def test_private_modules_have_no_public_functions(tmp_path: Path) -> None:
    """Nor have packages whose names begin with an underscore; a package's own file is public."""
    text = "def f(a: Any, **more): ...\n"
    names = ["tmkit/_a.py", "tmkit/_b/c.py", "tmkit/d/__init__.py"]
    checkout = _checkout(tmp_path, dict.fromkeys(names, text))
    assert _found(checkout, "any") == _found(checkout, "keywords") == [("tmkit/d/__init__.py", 1)]


def test_exported_names(tmp_path: Path) -> None:
    """A stub beside a package lists its names; otherwise imports and ``__all__`` do."""
    checkout = _checkout(
        tmp_path,
        {
            "tmkit/__init__.py": (
                "from tmkit.a import b as b, c, d as e\nfrom numpy import f as f\n__all__ = ['g']\n"
            ),
            "tmkit/pddl/__init__.py": "from tmkit.pddl.a import ignored as ignored\n",
            "tmkit/pddl/__init__.pyi": (
                "from .a import b, _c\nfrom tmkit.a import d as d\nfrom numpy import e\n"
            ),
            "tmkit/pddl/parsing/__init__.py": "from tmkit.a import b as b\n",
            "tmkit/cli/__init__.py": "from tmkit.cli.a import main as main\n",
        },
    )
    names = [f"{place.path} {place.text}" for place in MEASURES["exports"].find(checkout)]
    stub = "tmkit/pddl/__init__.pyi"
    assert names == ["tmkit/__init__.py b", "tmkit/__init__.py g", f"{stub} b", f"{stub} d"]
    nested = [(place.path, place.text) for place in MEASURES["exports_nested"].find(checkout)]
    assert nested == [("tmkit/cli/__init__.py", "main"), ("tmkit/pddl/parsing/__init__.py", "b")]


def test_libraries_and_extras(tmp_path: Path) -> None:
    """By their names, without versions."""
    checkout = _checkout(tmp_path, {})
    assert [place.text for place in MEASURES["libraries"].find(checkout)] == ["lark", "numpy"]
    assert [place.text for place in MEASURES["extras"].find(checkout)] == ["world"]


def test_parameters_of_commands_and_of_the_core(tmp_path: Path) -> None:
    """Commands count as all functions do; those of the core are in its stub alone."""
    many = f"class A:\n def f(self, {EIGHT}): ...\n def g(self, {SEVEN}): ...\n"
    checkout = _checkout(
        tmp_path, {"tmkit/cli/a.py": many, "tmkit/pddl/a.py": many, "tmkit/_core.pyi": many}
    )
    assert _found(checkout, "parameters") == [("tmkit/cli/a.py", 2), ("tmkit/pddl/a.py", 2)]
    assert _found(checkout, "parameters_cli") == [("tmkit/cli/a.py", 2)]
    assert _found(checkout, "parameters_core") == [("tmkit/_core.pyi", 2)]


@pytest.mark.parametrize(
    "value", ["0.2", "-0.2", "1 << 20", "(1, 2)", "2.0 * math.pi", "np.radians(3)", "1e-3"]
)
def test_constants_that_two_modules_have(tmp_path: Path, value: str) -> None:
    """The same name and value; once for both."""
    text = f"_STEP = {value}\nA, B = 1, 2\n"
    files = {
        "tmkit/a.py": text,
        "tmkit/b.py": text + "C = 3\n",
        "tmkit/c.py": "_STEP = 7\nC: int = 4\nc = 3\nD = 'd'\n",
    }
    places = list(MEASURES["constants_twice"].find(_checkout(tmp_path, files)))
    assert [(place.path, place.text.split(" ")[0]) for place in places] == [
        ("tmkit/a.py", "A"),
        ("tmkit/a.py", "B"),
        ("tmkit/a.py", "_STEP"),
    ]
    assert all(place.text.endswith("also in tmkit/b.py") for place in places)


def test_literals_of_tamp_and_manipulation(tmp_path: Path) -> None:
    """Small integers and halves are plain; constants at the top of a module count elsewhere."""
    text = (
        "STEP = 0.3\ndef f(a=0.7):\n return a[0] + 2 * 0.5 - 12\nclass A:\n n: int = 5\n m: bool ="
        " True\n"
    )
    files = dict.fromkeys(
        ["tmkit/tamp/a.py", "tmkit/manipulation/b/c.py", "tmkit/motion/d.py"], text
    )
    literals = _found(_checkout(tmp_path, files), "literals")
    assert sorted(literals) == [
        (path, line)
        for path in ("tmkit/manipulation/b/c.py", "tmkit/tamp/a.py")
        for line in (2, 3, 5)
    ]


def test_sentences() -> None:
    """Arguments, items and sections begin anew; abbreviations end no sentence."""
    text = (
        "One, e.g. this. Two.\n\nArgs:\n    a: three\n        goes on.\n    b: four\n* five\n>>>"
        " six\nseven (eq. 3)"
    )
    assert [*sentences_of(text)] == [
        "One, e.g this.",
        "Two.",
        "Args:",
        "a: three goes on.",
        "b: four",
        "* five",
        "seven (eq 3)",
    ]


def test_places_that_moved_are_not_new() -> None:
    """A place is new if its text or file is; of equal ones, only the surplus is new."""
    old = [Place("a.py", 1, "x"), Place("a.py", 2, "x"), Place("b.py", 3, "y")]
    moved = [
        Place("a.py", 7, "x"),
        Place("a.py", 8, "x"),
        Place("a.py", 9, "x"),
        Place("c.py", 3, "y"),
    ]
    assert new_places(moved, old) == moved[2:]
    assert new_places(old, moved) == [old[2]]


def _limits(**counts: int) -> str:
    return "".join(f"{name} = {counts.get(name, 99)}\n" for name in MEASURES)


def test_the_check_names_what_is_new_since_the_limits_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without Git it names all places; a figure at its limit passes."""
    file = tmp_path / "tmkit/a.py"
    _checkout(
        tmp_path, {"tmkit/a.py": f"def f({EIGHT}): ...\n", str(LIMITS): _limits(parameters=1)}
    )
    assert main([str(tmp_path), "--check"]) == 0
    assert "figures are within their limits" in capsys.readouterr().out

    file.write_text(f"def g({EIGHT}): ...\ndef f({EIGHT}): ...\n", encoding="utf-8")
    assert main([str(tmp_path), "--check"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("parameters: 2 of at most 1, functions with 8 or more parameters")
    assert "tmkit/a.py:1 g(" in out
    assert "tmkit/a.py:2 f(" in out

    file.write_text(f"def f({EIGHT}): ...\n", encoding="utf-8")
    if shutil.which("git") is None:
        pytest.skip("no program 'git' here")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Set limits"]):
        run_process([*git, *command], check=True, capture_output=True)
    file.write_text(f"def g({EIGHT}): ...\ndef f({EIGHT}): ...\n", encoding="utf-8")
    assert main([str(tmp_path), "--check"]) == 1
    out = capsys.readouterr().out
    assert "tmkit/a.py:1 g(" in out
    assert "f(" not in out.split("\n", 1)[1]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (
            "exports = 1\n",
            r"shape_limits\.toml: one limit for each measure expected,"
            r" wrong: adverbs, any, constants_twice",
        ),
        (_limits() + "more = 1\n", r"wrong: more$"),
        (_limits(setattr=-1), r"setattr: expected a whole number of at least 0, received -1"),
        (
            _limits().replace("any = 99", "any = '9'"),
            r"any: expected a whole number of at least 0, received '9'",
        ),
    ],
)
def test_limits_are_checked(tmp_path: Path, text: str, match: str) -> None:
    """The file has one limit for each measure, and no other."""
    with pytest.raises(ValueError, match=match):
        shape.read_limits(_checkout(tmp_path, {str(LIMITS): text}))


def test_the_places_of_a_measure_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output has one line a measure; another folder is rejected."""
    _checkout(tmp_path, {"tmkit/a.py": f"def f({EIGHT}): ...\n"})
    assert main([str(tmp_path), "--list", "parameters"]) == 0
    assert capsys.readouterr().out == f"tmkit/a.py:1 f({EIGHT})\n"
    assert main([str(tmp_path)]) == 0
    assert "parameters           1" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([str(tmp_path / "tmkit")])
    assert "there is no file" in capsys.readouterr().err


def test_the_project_has_a_limit_for_each_measure() -> None:
    """The check itself is a step of CI."""
    assert shape.read_limits(Checkout(ROOT)).keys() == MEASURES.keys()
