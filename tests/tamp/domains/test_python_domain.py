"""Planning in a domain that was built in Python."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from support.blocks import blocks_scene
from support.built_domain import OF_OURS, Meaning
from support.gantry import GANTRY

import tmkit as tk
from tmkit._support.data import data_path
from tmkit.errors import FileFormatError, MissingFileError, TaskError
from tmkit.pddl import Domain, load_domain, make_domain, make_predicate
from tmkit.robots import Manipulator
from tmkit.tamp import PythonDomain, load_planning_domain

BLOCKS = load_domain(data_path("domains/blocks") / "domain.pddl")


def rename_words(name: str) -> Domain:
    """Return the blocks domain under another name."""
    return make_domain(
        name,
        types="block location",
        predicates=BLOCKS.predicates,
        actions=BLOCKS.actions,
        axioms=BLOCKS.axioms,
    )


def test_a_plan_in_a_domain_of_python_holds_and_is_read_again(tmp_path: Path) -> None:
    """The plan contains the PDDL; its validation requires the domain."""
    domain = PythonDomain(rename_words("built"), Meaning)
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    result = tk.plan(scene, domain=domain, goal="(on a b)", robot=GANTRY)
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan, domain=domain).is_valid
    tk.save_plan(result.plan, tmp_path / "plan.json")
    plan = tk.load_plan(tmp_path / "plan.json")
    assert plan.domain == "built"
    assert "(:action stack" in plan.domain_pddl
    assert tk.validate_plan(plan, domain=domain).is_valid
    with pytest.raises(MissingFileError, match="'built' is not built-in"):
        tk.validate_plan(plan)
    other = PythonDomain(rename_words("other"), Meaning)
    assert "differs from the plan's domain" in str(tk.validate_plan(plan, domain=other).problems)


def test_the_digest_is_that_of_words_and_meaning() -> None:
    """Equal domains have equal digests; other PDDL or semantics have others."""

    class Other(Meaning):
        """The same meaning in another class, in the same file."""

    domain = PythonDomain(rename_words("built"), Meaning)
    digest = load_planning_domain(domain, robot=GANTRY).digest
    assert digest == load_planning_domain(pickle.loads(pickle.dumps(domain)), robot=GANTRY).digest
    assert (
        digest
        == load_planning_domain(PythonDomain(rename_words("built"), Other), robot=GANTRY).digest
    )
    assert (
        digest
        != load_planning_domain(PythonDomain(rename_words("other"), Meaning), robot=GANTRY).digest
    )
    elsewhere = PythonDomain(rename_words("built"), type(OF_OURS))
    assert digest != load_planning_domain(elsewhere, robot=GANTRY).digest


def test_what_does_not_fit_is_refused() -> None:
    """Missing methods, repeated semantics and ambiguous PDDL names are errors."""

    class Empty:
        def __init__(self, robot: Manipulator) -> None:
            pass

    words = rename_words("built")
    with pytest.raises(FileFormatError, match="class 'Empty' does not derive from DomainSemantics"):
        load_planning_domain(PythonDomain(words, Empty), robot=GANTRY)  # type: ignore[arg-type]
    with pytest.raises(TaskError, match="has its own semantics"):
        load_planning_domain(PythonDomain(words, Meaning), robot=GANTRY, semantics="blocks")
    with pytest.raises(TaskError, match="predicate 'Clear' is not in lower case"):
        make_domain("d", predicates=[make_predicate("Clear", "?x")], actions=[])
