"""The reader of tmkit, compared with the parser of Fast Downward's translator.

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
    """The example files are read alike, and formulas agree in random states."""
    assert compare(
        DATA / name / "domain.pddl", DATA / name / "problem.pddl", states=60
    ).domain.actions


@pytest.mark.parametrize("name", sorted(FEATURES.keys() - BEYOND_THE_TRANSLATOR))
def test_every_feature_means_the_same_to_both(name: str) -> None:
    """Small files with one feature of published domains are read alike and mean the same."""
    folder = DATA / "features" / name
    assert compare(folder / "domain.pddl", folder / "problem.pddl", states=30).domain.actions


@pytest.mark.parametrize("name", sorted(BEYOND_THE_TRANSLATOR))
def test_the_translator_rejects_the_listed_files(name: str) -> None:
    """The list of files that only the reader of tmkit accepts is right."""
    folder = DATA / "features" / name
    with pytest.raises(OracleRefusalError):
        compare(folder / "domain.pddl", folder / "problem.pddl", states=1)


def test_samples_mean_the_same_to_both() -> None:
    """The published samples are read alike, and formulas agree in random states."""
    for domain_path, problem_path in samples():
        assert compare(domain_path, problem_path, states=3).domain.actions
