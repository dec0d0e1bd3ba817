"""Picture of the trees of a search.

A search tree has one line for each version of the scene, indented below its parent version. The
line has the action that led to it, the attempts made from it, and the number of actions expected
from there if it was in the queue. The colour is the outcome: on the path to the plan, expanded, a
dead end, or not tried. The learned constraints are listed below the trees.

Large trees are pruned. The path to the plan is always drawn, then the branches with the most
attempts, up to a number of lines. A line with their number replaces omitted versions.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tmkit.graph.display.outline import count_of
from tmkit.tamp import SearchTree
from tmkit.tamp.diagnosis.diagnosis import LearnedConstraint
from tmkit.tamp.search_tree import SearchTreeNode
from tmkit.visualization.drawing import (
    MARGIN,
    Cross,
    Dot,
    Drawing,
    Label,
    Line,
    Mark,
    save_drawings,
)

_PLAN_COLOR = "#1f5fa8"
"""Colour of versions on the path to the plan."""

_DEFAULT_COLOR = "#4a525a"
"""Colour of expanded versions, and of other lines."""

_UNTRIED_COLOR = "#9aa3ab"
"""Colour of versions from which nothing was tried."""

_FAILURE_COLOR = "#c2262e"
"""Colour of failed actions, and of versions from which all attempts failed."""

_EDGE_COLOR = "#b4bac0"
"""Colour of edges outside the path to the plan."""

_ROW_HEIGHT = 0.2
"""Distance of two lines [inch]."""

_VERSION_INDENT = 0.3
"""Indentation of a version relative to its parent [inch]."""

_LETTER_WIDTH = 0.07
"""Width of a letter [inch]."""

_MAX_LETTERS = 140
"""Largest number of letters of a line."""

_MAX_FAILURES = 2
"""Largest number of failed actions that are drawn for a version."""

_MAX_CONSTRAINTS = 8
"""Largest number of learned constraints that are listed."""

_MAX_DOT_SIZE = 11.0
"""Largest diameter of a dot [pt]."""


def has_backtracked(trees: Sequence[SearchTree]) -> bool:
    """Return whether a search reached versions outside the plan, or an action failed."""
    return any(not node.is_in_plan or node.failures for tree in trees for node in tree.nodes)


def search_tree_drawing(
    trees: Sequence[SearchTree],
    *,
    learned: Sequence[LearnedConstraint] = (),
    rows: int = 80,
    title: str = "",
) -> Drawing:
    """Draw the search trees of a run, one below the other.

    Args:
        trees: search trees (:attr:`tmkit.tamp.PlanResult.search_trees`).
        learned: constraints to list below (:attr:`tmkit.tamp.Diagnosis.constraints`).
        rows: largest number of lines, unless the path to the plan alone has more.
        title: title of the drawing.
    """
    board = _Board()
    for tree in trees:
        _TreePicture(tree, board, rows // len(trees)).draw()
    _list_constraints(learned, board)
    caption = (
        (
            "Each line is a version of the scene, below the version from which its action led to"
            " it. Dots grow with the attempts."
        ),
        (
            "Blue: the path to the plan. Dark grey: other expanded versions. Red: dead ends. Light"
            " grey: not tried. Crosses: failed actions."
        ),
    )
    right = max(
        (float(label.point[0]) + _LETTER_WIDTH * len(label.text) for label in board.labels),
        default=1.0,
    )
    edge = Label("edge", np.array([right, 0.0]), "")
    marks = (*board.lines, *board.dots, *board.labels, edge)
    return Drawing(marks, title=title, caption=caption, largest_unit=1.0)


def _list_constraints(learned: Sequence[LearnedConstraint], board: _Board) -> None:
    """List the constraints that the search learned, if any."""
    if not learned:
        return
    board.write(0, "learned: no task plan has", _DEFAULT_COLOR, meaning="learned")
    for constraint in learned[:_MAX_CONSTRAINTS]:
        reason = "proved" if constraint.is_proved else "no motion within the budget"
        board.write(1, f"{constraint} ({reason})", _FAILURE_COLOR, meaning="learned")
    omitted = len(learned) - _MAX_CONSTRAINTS
    if omitted > 0:
        text = f"… {count_of('more action', omitted)}"
        board.write(1, text, _FAILURE_COLOR, meaning="learned")


def draw_search_tree(
    trees: Sequence[SearchTree],
    path: str | Path,
    *,
    learned: Sequence[LearnedConstraint] = (),
    rows: int = 80,
    title: str = "",
) -> Path:
    """Draw the search trees of a run into a PNG or SVG file, and return its path.

    Args:
        trees: search trees (:attr:`tmkit.tamp.PlanResult.search_trees`).
        path: path of the file.
        learned: constraints to list below (:attr:`tmkit.tamp.Diagnosis.constraints`).
        rows: largest number of lines, unless the path to the plan alone has more.
        title: title of the drawing.

    Raises:
        OutputError: if the file cannot be written, or its suffix is neither ``.png`` nor ``.svg``.
        MissingExtraError: if the extra ``pictures`` is not installed.
    """
    drawing = search_tree_drawing(trees, learned=learned, rows=rows, title=title)
    low, high = drawing.bounds
    return save_drawings([drawing], path, width=max(6.0, float(high[0] - low[0]) + 2 * MARGIN))


@dataclass(eq=False)
class _Board:
    """Marks of a drawing. ``row`` is the number of the next line."""

    lines: list[Mark] = field(default_factory=list)
    dots: list[Mark] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    row: int = 0

    def write(self, depth: int, text: str, color: str, *, meaning: str) -> np.ndarray:
        """Write a line, and return the position (2,) of its mark."""
        position = np.array([_VERSION_INDENT * depth, -_ROW_HEIGHT * self.row])
        line = text if len(text) <= _MAX_LETTERS else f"{text[: _MAX_LETTERS - 1]}…"
        self.labels.append(Label(meaning, position + np.array([0.13, 0.0]), line, color))
        self.row += 1
        return position

    def add_dot(self, mark: Mark) -> None:
        """Add the mark of a node or failure."""
        self.dots.append(mark)

    def add_line(self, line: Line, *, is_behind: bool) -> None:
        """Add an edge, behind or in front of the others."""
        self.lines.insert(0 if is_behind else len(self.lines), line)

    def end_tree(self) -> None:
        """Add an empty line."""
        self.row += 1


class _TreePicture:
    """Picture of one tree with at most ``rows`` lines."""

    def __init__(self, tree: SearchTree, board: _Board, rows: int) -> None:
        self.tree, self.nodes, self.board = tree, tree.nodes, board
        self.children: list[list[int]] = [[] for _ in self.nodes]
        self.tries, self.sizes = [node.tries for node in self.nodes], [1] * len(self.nodes)
        for index in range(len(self.nodes) - 1, 0, -1):  # Children follow their parents.
            parent = self.nodes[index].parent
            if parent is not None:
                self.children[parent].insert(0, index)
                self.tries[parent] += self.tries[index]
                self.sizes[parent] += self.sizes[index]
        self.shown = self._select_nodes(rows)

    def _select_nodes(self, rows: int) -> set[int]:
        """Return the nodes to draw: those of the plan, then those with the most attempts below."""
        selected = {0, *(index for index, node in enumerate(self.nodes) if node.is_in_plan)}
        rows -= sum(map(self._rows, selected))
        queue = [
            (-self.tries[child], child) for index in selected for child in self.children[index]
        ]
        queue = [entry for entry in queue if entry[1] not in selected]
        heapq.heapify(queue)
        while queue:
            _, index = heapq.heappop(queue)
            rows -= self._rows(index)
            if rows < 0:
                break
            selected.add(index)
            for child in self.children[index]:
                heapq.heappush(queue, (-self.tries[child], child))
        return selected

    def _rows(self, index: int) -> int:
        """Return the number of lines of a node, with one for omitted children."""
        return 1 + len(_failures(self.nodes[index])) + bool(self.children[index])

    def draw(self) -> None:
        """Draw the selected nodes in depth-first order."""
        stack: list[tuple[int, int, np.ndarray | None]] = [(0, 0, None)] if self.nodes else []
        while stack:
            index, depth, parent = stack.pop()
            if index < 0:
                self._draw_omitted(-index - 1, depth, parent)
                continue
            position = self._draw_node(index, depth, parent)
            children = [child for child in self.children[index] if child in self.shown]
            if len(children) < len(self.children[index]):
                children.append(-index - 1)
            stack += [(child, depth + 1, position) for child in reversed(children)]
        self.board.end_tree()

    def _draw_node(self, index: int, depth: int, parent: np.ndarray | None) -> np.ndarray:
        """Draw a node with its failures, and return its position (2,)."""
        node, board = self.nodes[index], self.board
        color = self._color(index)
        if parent is None:
            text = f"search with {self.tree.search}: {count_of('version', len(self.nodes))}, "
            text += count_of("attempt", self.tries[index])
        else:
            text = " ".join(node.actions) + (" by transfer" if node.is_transfer else "")
            text += f" · {count_of('attempt', node.tries)}" if node.tries else ""
            text += "" if node.estimate is None else f" · {node.estimate:g} expected"
        position = board.write(depth, text, color, meaning=f"node {index}")
        size = min(_MAX_DOT_SIZE, 4.0 + node.tries**0.5)
        board.add_dot(Dot(f"node {index}", position, color, size=size))
        if node.is_in_plan:
            self._draw_edge(parent, position, _PLAN_COLOR, width=2.4)
        else:
            self._draw_edge(parent, position, _EDGE_COLOR, width=1.2)
        for text in _failures(node):
            meaning = f"failure of node {index}"
            failure_position = board.write(depth + 1, text, _FAILURE_COLOR, meaning=meaning)
            board.add_dot(Cross(meaning, failure_position, _FAILURE_COLOR))
            self._draw_edge(position, failure_position, _EDGE_COLOR, width=1.2)
        return position

    def _color(self, index: int) -> str:
        """Return the colour of the outcome of a node."""
        node = self.nodes[index]
        if node.is_in_plan:
            return _PLAN_COLOR
        if self.children[index]:
            return _DEFAULT_COLOR
        return _FAILURE_COLOR if node.failures else _UNTRIED_COLOR

    def _draw_omitted(self, index: int, depth: int, parent: np.ndarray | None) -> None:
        """Draw one line for the omitted children of a node."""
        omitted = [child for child in self.children[index] if child not in self.shown]
        size = sum(self.sizes[child] for child in omitted)
        tries = sum(self.tries[child] for child in omitted)
        text = f"… {count_of('more version', size)}, {count_of('attempt', tries)}"
        position = self.board.write(depth, text, _DEFAULT_COLOR, meaning=f"rest of node {index}")
        self._draw_edge(parent, position, _EDGE_COLOR, width=1.2)

    def _draw_edge(
        self, parent: np.ndarray | None, position: np.ndarray, color: str, *, width: float
    ) -> None:
        """Draw the edge from a parent, if any, to a node."""
        if parent is not None:
            corner = [parent[0], position[1]]
            line = Line("edge", np.array([parent, corner, position]), color, width)
            self.board.add_line(line, is_behind=color == _EDGE_COLOR)


def _failures(node: SearchTreeNode) -> list[str]:
    """Return a line for each failed action of a version, with its most frequent cause."""
    counts: Counter[str] = Counter()
    causes: dict[str, list[str]] = {}
    for failure in node.failures:
        counts[failure.action] += failure.count
        causes.setdefault(failure.action, []).append(failure.cause)
    lines = [
        f"{action}  {count} ×{', often' if len(causes[action]) > 1 else ''}: {causes[action][0]}"
        for action, count in counts.most_common(_MAX_FAILURES)
    ]
    omitted = len(counts) - len(lines)
    return [*lines, f"… {count_of('more action', omitted)} failed"] if omitted else lines
