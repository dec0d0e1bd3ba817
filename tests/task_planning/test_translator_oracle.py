"""Our reader against the parser of Fast Downward's translator: the same actions, axioms, facts, objects and meanings.

Both read the same files; then conditions and effects, which they keep in different shapes, are
judged in random states.
"""

from __future__ import annotations

import pytest
from support.task_problems import BEYOND_THE_TRANSLATOR, DATA, FEATURES, samples
from support.translator_oracle import OracleRefusalError, compare

OWN = ("places", "gripper", "rooms", "lamps")


@pytest.mark.parametrize("name", OWN)
def test_own_files_mean_the_same_to_both(name: str) -> None:
    """Our own files are read alike, and every condition and effect means the same in random states."""
    assert compare(
        DATA / name / "domain.pddl", DATA / name / "problem.pddl", states=60
    ).domain.actions


@pytest.mark.parametrize("name", sorted(FEATURES.keys() - BEYOND_THE_TRANSLATOR))
def test_every_feature_means_the_same_to_both(name: str) -> None:
    """Small files, each with one feature of published domains, are read alike and mean the same in random states."""
    folder = DATA / "features" / name
    assert compare(folder / "domain.pddl", folder / "problem.pddl", states=30).domain.actions


@pytest.mark.parametrize("name", sorted(BEYOND_THE_TRANSLATOR))
def test_the_translator_refuses_what_is_said_to_be_beyond_it(name: str) -> None:
    """The list of what only our reader reads is right."""
    folder = DATA / "features" / name
    with pytest.raises(OracleRefusalError):
        compare(folder / "domain.pddl", folder / "problem.pddl", states=1)


def test_samples_mean_the_same_to_both() -> None:
    """The published samples are read alike, and every condition and effect means the same in random states."""
    for domain_path, problem_path in samples():
        assert compare(domain_path, problem_path, states=3).domain.actions
