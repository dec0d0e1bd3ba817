"""Domain folders: one's own, wrong ones, and semantics that contradict their PDDL."""

from __future__ import annotations

import json
import pickle
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from support.blocks import blocks_scene
from support.gantry import GANTRY
from support.planning import solve_with

import tmkit as tk
from tmkit.errors import (
    FileFormatError,
    MissingFileError,
    PlanFileError,
    SemanticsMismatchError,
    TaskError,
)
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.spatial import Pose
from tmkit.tamp import DomainSemantics, PlanResult, PlanStatus, load_planning_domain
from tmkit.tamp.domains.loading import check_plan_domain

DOMAINS = Path(__file__).parents[2] / "data" / "domains"

SEMANTICS = (DOMAINS / "spots" / "semantics.py").read_text(encoding="utf-8")


def shelf_scene() -> SceneGraph:
    """Return a block on the table and a shelf beside."""
    shelf = [AttachedShape(Box([0.2, 0.2, 0.1]))]
    scene = blocks_scene({"a": (0, 0)}, table=0.4)
    return scene.add_frame(
        "shelf", "world", pose=Pose([0.35, 0.0, 0.0]), classes=["surface"], shapes=shelf
    )


def solve(domain: str | Path, goal: str = "(at a shelf)", **options: Any) -> PlanResult:
    """Plan in a domain of the tests."""
    return solve_with(shelf_scene(), goal, domain=domain, robot=GANTRY, **options)


def folder(path: Path, *, semantics: str | None = SEMANTICS, pddl: str | None = None) -> Path:
    """Make a domain folder, the parts as in the domain spots or as given."""
    path.mkdir(parents=True, exist_ok=True)
    shutil.copy(DOMAINS / "spots" / "domain.pddl", path)
    if pddl is not None:
        (path / "domain.pddl").write_text(pddl, encoding="utf-8")
    if semantics is not None:
        (path / "semantics.py").write_text(semantics, encoding="utf-8")
    return path


def test_a_domain_of_ones_own() -> None:
    """Any folder with the two files is a domain; its plans are checked with it."""
    result = solve(DOMAINS / "spots")
    assert result.plan is not None, result.explanation
    assert result.plan.final_scene.parent("a") == "shelf"
    assert result.plan.domain == "spots"
    assert tk.validate_plan(result.plan, domain=DOMAINS / "spots").is_valid


def test_a_check_needs_the_folder_of_ones_own_domain(tmp_path: Path) -> None:
    """A plan names its domain without folders, so the checker needs the path of the domain."""
    plan = solve(DOMAINS / "spots").plan
    assert plan is not None
    with pytest.raises(
        MissingFileError,
        match="the plan's domain 'spots' is not built-in: give the folder in which",
    ):
        tk.validate_plan(plan)
    changed = folder(tmp_path / "spots", semantics=SEMANTICS + "\n# changed\n")
    report = tk.validate_plan(plan, domain=changed)
    assert report.problems == ("domain 'spots' differs from the plan's domain",)


DERIVED = "from tmkit.tamp import DomainSemantics\nclass Semantics(DomainSemantics):\n"
COMPLETE = DERIVED + "".join(
    f"    def {name}(self, *given): ...\n" for name in ("objects", "state", "candidates")
)
EVIL = (
    "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\nclass Semantics:\n    pass\n"
)


@pytest.mark.parametrize("key", ["name", "semantics"])
@pytest.mark.parametrize(
    "path", ["./trap", "trap", "trap/semantics.py", "{}", "{}/semantics.py", "../{here}/trap", "."]
)
def test_a_plan_file_runs_no_code_that_it_names(
    key: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Domain and semantics of a plan file are built-in names, never paths."""
    folder(tmp_path / "trap", semantics=EVIL)
    for name in ("domain.pddl", "semantics.py"):
        shutil.copy(tmp_path / "trap" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    plan = solve(DOMAINS / "spots").plan
    assert plan is not None
    tk.save_plan(plan, "plan.json")
    document = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    document["domain"][key] = path.format(tmp_path / "trap", here=tmp_path.name)
    Path("plan.json").write_text(json.dumps(document), encoding="utf-8")
    read = tk.load_plan("plan.json")
    option = "--semantics" if key == "semantics" else "--domain"
    with pytest.raises(
        MissingFileError, match=rf"not built-in: give the folder in which.*{option}"
    ):
        tk.validate_plan(read)
    with pytest.raises(MissingFileError if key == "semantics" else PlanFileError):
        check_plan_domain(read, "plan.json", "blocks", None)
    assert not list(tmp_path.rglob("ran"))


def test_a_plan_of_ones_own_domain_is_read_with_it(tmp_path: Path) -> None:
    """The digest in the plan identifies the given folder."""
    plan = solve(DOMAINS / "spots").plan
    assert plan is not None
    tk.save_plan(plan, tmp_path / "plan.json")
    read = tk.load_plan(tmp_path / "plan.json")
    check_plan_domain(read, tmp_path / "plan.json", DOMAINS / "spots", None)
    assert tk.validate_plan(read, domain=DOMAINS / "spots").is_valid
    tk.save_plan(read, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "plan.json").read_bytes()
    changed = folder(tmp_path / "spots", semantics=SEMANTICS + "\n# changed\n")
    with pytest.raises(
        PlanFileError, match=r"plan.json: its domain 'spots' \(digest \w+\) is not the one"
    ):
        check_plan_domain(read, tmp_path / "plan.json", changed, None)


def test_a_domain_in_the_working_folder_has_a_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A domain that is given as ``.`` is called by its folder, and its plan can be read again."""
    monkeypatch.chdir(DOMAINS / "spots")
    plan = solve(Path(".")).plan
    assert plan is not None
    assert plan.domain == "spots"
    tk.save_plan(plan, tmp_path / "plan.json")
    assert tk.validate_plan(tk.load_plan(tmp_path / "plan.json"), domain=Path(".")).is_valid


def test_semantics_that_contradict_their_pddl_are_named() -> None:
    """The error names the action and the facts that differ, and carries them."""
    with pytest.raises(
        SemanticsMismatchError,
        match=(
            r"after \(take a table\) the state .* differs .* of domain 'liar': unexpected"
            r" \(free\)"
        ),
    ) as caught:
        solve(DOMAINS / "liar")
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.action, error.missing, error.unexpected) == ("(take a table)", (), ("(free)",))


def test_the_checker_finds_the_contradiction_too() -> None:
    """A plan of an honest domain fails the check of a lying one."""
    plan = solve(DOMAINS / "spots").plan
    assert plan is not None
    report = tk.validate_plan(plan, domain=DOMAINS / "liar")
    assert any(
        "after (take a table) the derived state differs: unexpected (free)" in p
        for p in report.problems
    )


@pytest.mark.parametrize(
    ("semantics", "message"),
    [
        ("class Semantics", r"semantics.py:1: SyntaxError: expected ':'"),
        (
            "import os\nimport nothing_of_that_name",
            "semantics.py:2: ModuleNotFoundError: No module named 'nothing_of_",
        ),
        ("x = 1\n\n1 / 0", "semantics.py:3: ZeroDivisionError: division by zero"),
        ("", "semantics.py: defines no class 'Semantics'"),
        ("Semantics = 3", "semantics.py: defines no class 'Semantics'"),
        (
            "class Semantics:\n    pass",
            r"semantics.py: class 'Semantics' does not derive from DomainSemantics; write 'from"
            r" tmkit.tamp import "
            r"DomainSemantics' and 'class Semantics\(DomainSemantics\):'",
        ),
        (
            f"{DERIVED}    def object(self, scene):\n        return {{}}",
            (
                "semantics.py: class 'Semantics' must define the methods candidates, objects,"
                " state; found 'object', did you mean 'objects'"
            ),
        ),
        (
            f"{COMPLETE}    def state(self, scene, objects):\n        pass",
            (
                r"semantics.py:6: 'Semantics.state' is called as state\(scene, objects, q\), and"
                r" cannot be: too many"
            ),
        ),
        (
            f"{COMPLETE}    def __init__(self, robot):\n        1 / 0",
            r"semantics.py: 'Semantics\(robot\)' fails: ZeroDivisionError: division by zero",
        ),
        ("\0", "semantics.py: (Value|Syntax)Error: source code string cannot contain null bytes"),
    ],
)
def test_wrong_semantics_files_are_named(tmp_path: Path, semantics: str, message: str) -> None:
    """Faults of semantics.py are tmkit errors with file and line."""
    with pytest.raises(FileFormatError, match=message):
        solve(folder(tmp_path / "own", semantics=semantics))


def test_missing_files_are_named(tmp_path: Path) -> None:
    """A folder that is not there, or lacks one of its files, is named."""
    with pytest.raises(
        MissingFileError, match=r"needs the file semantics\.py, which is not in .*own"
    ):
        solve(folder(tmp_path / "own", semantics=None))
    (tmp_path / "own" / "domain.pddl").unlink()
    with pytest.raises(MissingFileError, match=r"needs the file domain\.pddl"):
        solve(tmp_path / "own")
    with pytest.raises(MissingFileError, match=r"there is no file '.*onw'; did you mean '.*own'"):
        solve(tmp_path / "onw")


def test_wrong_pddl_is_named(tmp_path: Path) -> None:
    """An error in domain.pddl has file and line."""
    text = (DOMAINS / "spots" / "domain.pddl").read_text(encoding="utf-8")
    with pytest.raises(
        TaskError, match=r"domain.pddl:9:19: unknown predicate .hled.; did you mean .held."
    ):
        solve(
            folder(
                tmp_path / "own",
                pddl=text.replace("(and (held ?x) (not (at", "(and (hled ?x) (not (at"),
            )
        )


def test_a_type_that_the_domain_lacks_is_named(tmp_path: Path) -> None:
    """Semantics with other types than the PDDL are rejected."""
    with pytest.raises(TaskError, match="semantics of domain 'own': unknown type 'thing'"):
        solve(folder(tmp_path / "own", semantics=SEMANTICS.replace('"item"', '"thing"')))


def test_facts_that_the_domain_lacks_are_named(tmp_path: Path) -> None:
    """Semantics with facts of unknown predicates are rejected."""
    with pytest.raises(TaskError, match="helt"):
        solve(folder(tmp_path / "own", semantics=SEMANTICS.replace('of("at"', 'of("helt"')))


def test_no_candidates_are_a_failure_with_a_cause(tmp_path: Path) -> None:
    """An action without candidates fails, with this reason in the explanation."""
    silent = SEMANTICS.replace(
        'if action.name == "take":', 'if action.name == "take" and False:'
    ).replace("            yield Place(", "            return\n            yield Place(")
    result = solve(folder(tmp_path / "own", semantics=silent), max_iterations=2)
    assert result.status is PlanStatus.NO_PLAN_WITHIN_LIMITS
    assert "choosing: the domain's semantics has no candidate for it" in result.explanation


def test_two_domains_of_one_name_do_not_meet(tmp_path: Path) -> None:
    """Domains are identified by content; loading one writes nothing beside it and is repeatable."""
    first = folder(tmp_path / "one" / "own")
    second = folder(
        tmp_path / "two" / "own",
        semantics=SEMANTICS.replace("Return all objects", "Return each object"),
    )
    domains = [load_planning_domain(path, robot=GANTRY) for path in (first, second, first)]
    assert domains[0].digest == domains[2].digest != domains[1].digest
    assert {domain.name for domain in domains} == {"own"}
    assert type(domains[0].semantics).relevant_objects.__doc__ == "Return all objects."
    assert type(domains[1].semantics).relevant_objects.__doc__ == "Return each object."
    assert sorted(path.name for path in first.iterdir()) == ["domain.pddl", "semantics.py"]
    assert all(isinstance(domain.semantics, DomainSemantics) for domain in domains)


def test_a_changed_file_is_loaded_anew(tmp_path: Path) -> None:
    """A semantics file rewritten within the same second, with the same length, is the new one."""
    path = folder(tmp_path / "own")
    before = load_planning_domain(path, robot=GANTRY)
    folder(path, semantics=SEMANTICS.replace("Return all objects", "Return oll objects"))
    after = load_planning_domain(path, robot=GANTRY)
    assert type(after.semantics).relevant_objects.__doc__ == "Return oll objects."
    assert before.digest != after.digest


def test_a_broken_file_leaves_no_module_behind(tmp_path: Path) -> None:
    """After a failure the interpreter's modules are as before."""
    before = set(sys.modules)
    with pytest.raises(FileFormatError, match="ZeroDivisionError"):
        solve(folder(tmp_path / "own", semantics="1 / 0"))
    assert not {name for name in set(sys.modules) - before if name.startswith("tmkit_semantics")}


def test_a_pddl_file_with_the_semantics_of_another_domain(tmp_path: Path) -> None:
    """A foreign domain file is used unchanged; the plan contains its text."""
    text = (
        (tk.data_path("domains/blocks") / "domain.pddl")
        .read_text(encoding="utf-8")
        .replace("?x - object", "?x")
    )
    (tmp_path / "words.pddl").write_text(text, encoding="utf-8")
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    result = tk.solve(
        tk.PlanningProblem(
            scene,
            domain=tmp_path / "words.pddl",
            semantics="blocks",
            goal="(on a b)",
            robots=GANTRY,
        )
    )
    assert result.plan is not None, result.explanation
    assert (result.plan.domain, result.plan.semantics) == ("words.pddl", "blocks")
    tk.save_plan(result.plan, tmp_path / "plan.json")
    (tmp_path / "words.pddl").unlink()
    assert tk.validate_plan(tk.load_plan(tmp_path / "plan.json")).is_valid


def test_semantics_may_be_a_file_or_a_folder(tmp_path: Path) -> None:
    """Custom semantics are given by folder or file, also for the validation."""
    own = folder(tmp_path / "own")
    for semantics in (own, own / "semantics.py"):
        plan = solve(DOMAINS / "spots" / "domain.pddl", semantics=semantics).plan
        assert plan is not None
        assert plan.domain == "spots"
        with pytest.raises(
            MissingFileError,
            match=r"semantics '.*' are not built-in: give the folder in which they lie",
        ):
            tk.validate_plan(plan)
        assert tk.validate_plan(plan, semantics=semantics).is_valid


@pytest.mark.parametrize(
    ("domain", "semantics", "error", "message"),
    [
        (
            "words.pddl",
            None,
            MissingFileError,
            "no semantics.py beside it.*a domain with the same predicates",
        ),
        ("words.pddl", "bloks", MissingFileError, "did you mean 'blocks'"),
        ("words.pddl", "words.txt", FileFormatError, "a domain's folder or a Python file"),
        ("words.txt", "blocks", FileFormatError, "a folder or a file that ends in .pddl"),
        ("words.pddl", "empty", MissingFileError, "needs the file semantics.py"),
    ],
)
def test_parts_that_are_missing_are_named(
    tmp_path: Path, domain: str, semantics: str | None, error: type[Exception], message: str
) -> None:
    """The error of a domain in two parts names the wrong part."""
    (tmp_path / "words.pddl").write_text("(define (domain words))", encoding="utf-8")
    (tmp_path / "words.txt").write_text("", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    named = semantics if semantics in (None, "blocks", "bloks") else tmp_path / str(semantics)
    with pytest.raises(error, match=message):
        load_planning_domain(tmp_path / domain, robot=GANTRY, semantics=named)


def test_an_action_that_the_semantics_do_not_define_is_named(tmp_path: Path) -> None:
    """Changing a derived fact is an error with a line; changing stored facts is allowed."""
    text = (tk.data_path("domains/blocks") / "domain.pddl").read_text(encoding="utf-8").rstrip()
    lamp = "(:action switch-on :parameters () :precondition (and) :effect (and (light-on){}))"
    plain = text.replace("(:predicates", "(:predicates (light-on)").removesuffix(")")
    (tmp_path / "lamp.pddl").write_text(
        f"{plain}{lamp.format(' (not (handempty))')})", encoding="utf-8"
    )
    with pytest.raises(
        TaskError,
        match=r"candidates of \(switch-on\): .*no part defines 'do_switch_on'.*domain 'lamp",
    ):
        tk.solve(
            tk.PlanningProblem(
                shelf_scene(),
                domain=tmp_path / "lamp.pddl",
                semantics="blocks",
                goal="(light-on)",
                robots=GANTRY,
            )
        )
    (tmp_path / "lamp.pddl").write_text(f"{plain}{lamp.format('')})", encoding="utf-8")
    result = tk.solve(
        tk.PlanningProblem(
            shelf_scene(),
            domain=tmp_path / "lamp.pddl",
            semantics="blocks",
            goal="(light-on)",
            robots=GANTRY,
        )
    )
    assert [str(action) for action in result.plan.actions] == ["(switch-on)"]
