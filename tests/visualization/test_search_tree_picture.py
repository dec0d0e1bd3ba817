"""Pictures of search trees: marks, omissions, and legibility."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit.errors import OutputError
from tmkit.tamp import SearchTree
from tmkit.tamp.diagnosis.diagnosis import LearnedConstraint
from tmkit.tamp.search_tree import BranchFailure, SearchTreeNode
from tmkit.visualization import draw_search_tree
from tmkit.visualization.drawing import Cross, Dot, Label
from tmkit.visualization.search_tree_picture import has_backtracked, search_tree_drawing


def tree_of(size: int, *, seed: int = 0, is_solved: bool = True) -> SearchTree:
    """Return a random tree, in which the way to the last node is the plan."""
    rng = random.Random(seed)
    parents = [None, *(rng.randrange(max(0, index - 30), index) for index in range(1, size))]
    path, version = set(), size - 1 if is_solved else None
    while version is not None:
        path.add(version)
        version = parents[version]
    nodes = [
        SearchTreeNode(
            parent,
            () if parent is None else (f"(pick b{index} table)", f"(place b{index} table)"),
            tries=rng.randrange(40),
            estimate=float(rng.randrange(9)),
            is_in_plan=index in path,
            is_transfer=parent is not None and rng.random() < 0.5,
            failures=tuple(
                BranchFailure(
                    f"(pick b{other} table)", "approach: 'panda_hand' collides with 'n0'", count
                )
                for other, count in enumerate(rng.choices(range(1, 9), k=rng.randrange(4)))
            ),
        )
        for index, parent in enumerate(parents)
    ]
    return SearchTree("7 objects", tuple(nodes))


@settings(max_examples=scaled_examples(0.4), deadline=None)
@given(size=st.integers(1, 400), seed=st.integers(0, 99), rows=st.integers(1, 120))
def test_the_plan_is_drawn_and_all_else_is_drawn_or_counted(
    size: int, seed: int, rows: int
) -> None:
    """Each version is a dot or counted in a rest; every way to a dot is a line without overlap."""
    tree = tree_of(size, seed=seed)
    drawing = search_tree_drawing([tree], rows=rows)
    drawn = {int(mark.meaning.split()[-1]) for mark in drawing.marks if isinstance(mark, Dot)}
    plan = {index for index, node in enumerate(tree.nodes) if node.is_in_plan}
    assert plan <= drawn
    assert all(tree.nodes[index].parent in drawn for index in drawn if index)
    labels = [mark for mark in drawing.marks if isinstance(mark, Label) and mark.meaning != "edge"]
    rests = [label.text for label in labels if label.meaning.startswith("rest of node")]
    assert len(drawn) + sum(int(text.split()[1]) for text in rests) == size
    heights = [round(float(label.point[1]), 6) for label in labels]
    assert len(set(heights)) == len(heights)
    assert np.allclose(np.diff(sorted(heights)), 0.2)
    needed = sum(2 + min(3, len({f.action for f in tree.nodes[index].failures})) for index in plan)
    assert len(labels) <= max(rows, needed)


@pytest.mark.parametrize("seed", range(5))
def test_colours_are_outcomes_and_transfers_are_named(seed: int) -> None:
    """Each outcome has one colour: in the plan, expanded, a dead end, not tried."""
    tree = tree_of(60, seed=seed)
    parents = {node.parent for node in tree.nodes}
    colors: dict[str, set[str]] = {}
    marks = search_tree_drawing([tree], rows=400).marks
    for mark in marks:
        if isinstance(mark, Dot):
            index = int(mark.meaning.split()[-1])
            node = tree.nodes[index]
            outcome = "expanded" if index in parents else "dead" if node.failures else "untried"
            colors.setdefault("plan" if node.is_in_plan else outcome, set()).add(mark.color)
    assert sorted(colors) == ["dead", "expanded", "plan", "untried"]
    assert len(set.union(*colors.values())) == len(colors)
    for mark in marks:
        if isinstance(mark, Label) and mark.meaning.startswith("node "):
            node = tree.nodes[int(mark.meaning.split()[-1])]
            assert (" by transfer" in mark.text) == node.is_transfer


def test_learned_constraints_are_listed_with_their_reason() -> None:
    """The first eight are listed below the trees, and the others counted."""
    learned = [
        LearnedConstraint(f"(stack b{number} c)", ("(clear d)",), is_proved=number == 0)
        for number in range(10)
    ]
    drawing = search_tree_drawing([tree_of(3)], learned=learned)
    texts = [
        mark.text for mark in drawing.marks if isinstance(mark, Label) and mark.meaning == "learned"
    ]
    assert texts[0] == "learned: no task plan has"
    assert texts[1] == "(stack b0 c) while (clear d) (proved)"
    assert texts[2] == "(stack b1 c) while (clear d) (no motion within the budget)"
    assert texts[9:] == ["… 2 more actions"]


def test_a_plan_without_failures_has_not_backtracked() -> None:
    """Versions outside the plan and failures are backtracking."""
    start = SearchTreeNode(None, tries=1, is_in_plan=True)
    end = SearchTreeNode(0, ("(pick a)",), is_in_plan=True)
    failure = BranchFailure("(pick a)", "too far", 1)
    assert not has_backtracked([SearchTree("2 objects", (start, end))])
    for nodes in ((start, replace(end, is_in_plan=False)), (replace(start, failures=(failure,)),)):
        assert has_backtracked([SearchTree("2 objects", nodes)])


def test_failures_are_crosses_with_their_most_frequent_cause() -> None:
    """Two actions at most, the causes of one action together, the rest counted."""
    failures = (
        BranchFailure("(pick a)", "too far", 5),
        BranchFailure("(pick b)", "blocked", 4),
        BranchFailure("(pick a)", "no grip", 1),
        BranchFailure("(pick c)", "blocked", 1),
    )
    tree = SearchTree("7 objects", (SearchTreeNode(None, tries=11, failures=failures),))
    drawing = search_tree_drawing([tree])
    texts = [mark.text for mark in drawing.marks if isinstance(mark, Label)]
    assert texts[:4] == [
        "search with 7 objects: 1 version, 11 attempts",
        "(pick a)  6 ×, often: too far",
        "(pick b)  4 ×: blocked",
        "… 1 more action failed",
    ]
    assert len(drawing.meanings(Cross)) == 3


def test_pictures_are_files_of_the_same_bytes(tmp_path: Path) -> None:
    """Formats are PNG and SVG; another is rejected; without trees the picture is empty."""
    trees = [tree_of(300, seed=1), tree_of(40, seed=2, is_solved=False)]
    for suffix, begin in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        first, second = (
            draw_search_tree(trees, tmp_path / f"{name}{suffix}").read_bytes() for name in "ab"
        )
        assert first == second
        assert first.startswith(begin)
    with pytest.raises(
        OutputError, match=r"tree.gif: cannot be written: a plot must end in .png or .svg"
    ):
        draw_search_tree(trees, tmp_path / "tree.gif")
    assert draw_search_tree([], tmp_path / "none.png").exists()
