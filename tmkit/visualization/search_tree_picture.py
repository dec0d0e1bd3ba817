"""The trees of a search drawn into a file.

A drawn search tree has one line for each version of the scene, indented below the version before
it. The line has the action that led to it, the attempts made from it and, if it was in the queue,
the number of actions expected from there. Large trees are cut: the way to the plan is always drawn,
then the branches with the most attempts, until the lines are used up. A line in the place of
omitted versions has their number.
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

_PLAN, _OTHER, _TRANSFER, _FAILED, _EDGE = "#1f5fa8", "#4a525a", "#e07b00", "#c2262e", "#b4bac0"
_ROW, _INDENT = 0.2, 0.3  # inches between lines, and from a version to the next
_LETTER = 0.07  # inches that a letter takes
_LONGEST = 140  # letters of a line
_MOST_FAILURES = 2  # actions that failed, of a version
_LARGEST = 11.0  # diameter of a dot in points


def search_tree_drawing(trees: Sequence[SearchTree], *, rows: int = 80, title: str = "") -> Drawing:
    """Draw the search trees of a run, one below the other.

    Args:
        trees: the trees (:attr:`tmkit.tamp.PlanResult.search_trees`).
        rows: lines at most, unless the way to the plan alone has more.
        title: above the drawing.
    """
    board = _Board()
    for tree in trees:
        _TreePicture(tree, board, rows // len(trees)).draw()
    caption = (
        (
            "Each line is a version of the scene, below the version from which its action led to"
            " it. Blue: the way to the plan."
        ),
        (
            "Dots grow with the attempts: orange after transfers, grey after actions refined as the"
            " domain proposes them."
        ),
        "Crosses: actions that failed there.",
    )
    right = max(
        (float(label.at[0]) + _LETTER * len(label.text) for label in board.labels), default=1.0
    )
    edge = Label("edge", np.array([right, 0.0]), "")
    marks = (*board.lines, *board.dots, *board.labels, edge)
    return Drawing(marks, title=title, caption=caption, largest_unit=1.0)


def draw_search_tree(
    trees: Sequence[SearchTree], path: str | Path, *, rows: int = 80, title: str = ""
) -> Path:
    """Draw the search trees of a run into a PNG or SVG file, and return its path.

    Args:
        trees: the trees (:attr:`tmkit.tamp.PlanResult.search_trees`).
        path: the file.
        rows: lines at most, unless the way to the plan alone has more.
        title: above the drawing.

    Raises:
        OutputError: the file cannot be written, or its name ends neither in ``.png`` nor in
            ``.svg``.
        MissingExtraError: the extra ``pictures`` is not installed.
    """
    drawing = search_tree_drawing(trees, rows=rows, title=title)
    low, high = drawing.bounds
    return save_drawings([drawing], path, width=max(6.0, float(high[0] - low[0]) + 2 * MARGIN))


@dataclass(eq=False)
class _Board:
    """What was drawn so far; ``row`` is the number of the next line."""

    lines: list[Mark] = field(default_factory=list)
    dots: list[Mark] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    row: int = 0

    def write(self, depth: int, text: str, color: str, *, meaning: str) -> np.ndarray:
        """Write a line; return where its mark is."""
        at = np.array([_INDENT * depth, -_ROW * self.row])
        shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        self.labels.append(Label(meaning, at + np.array([0.13, 0.0]), shown, color))
        self.row += 1
        return at

    def add_dot(self, mark: Mark) -> None:
        """Draw the mark of a node or failure."""
        self.dots.append(mark)

    def add_line(self, line: Line, *, is_behind: bool) -> None:
        """Draw an edge, behind or before the others."""
        self.lines.insert(0 if is_behind else len(self.lines), line)

    def end_tree(self) -> None:
        """Leave a line empty."""
        self.row += 1


class _TreePicture:
    """The picture of one tree, of at most ``rows`` lines."""

    def __init__(self, tree: SearchTree, board: _Board, rows: int) -> None:
        self.tree, self.nodes, self.board = tree, tree.nodes, board
        self.children: list[list[int]] = [[] for _ in self.nodes]
        self.tries, self.sizes = [node.tries for node in self.nodes], [1] * len(self.nodes)
        for index in range(len(self.nodes) - 1, 0, -1):  # children come after their parents
            parent = self.nodes[index].parent
            if parent is not None:
                self.children[parent].insert(0, index)
                self.tries[parent] += self.tries[index]
                self.sizes[parent] += self.sizes[index]
        self.shown = self._chosen(rows)

    def _chosen(self, rows: int) -> set[int]:
        """Return the nodes that are drawn: those of the plan, then those below which most was tried."""
        shown = {0, *(index for index, node in enumerate(self.nodes) if node.is_in_plan)}
        rows -= sum(map(self._rows, shown))
        waiting = [(-self.tries[child], child) for index in shown for child in self.children[index]]
        waiting = [entry for entry in waiting if entry[1] not in shown]
        heapq.heapify(waiting)
        while waiting:
            _, index = heapq.heappop(waiting)
            rows -= self._rows(index)
            if rows < 0:
                break
            shown.add(index)
            for child in self.children[index]:
                heapq.heappush(waiting, (-self.tries[child], child))
        return shown

    def _rows(self, index: int) -> int:
        """Return how many lines a node takes, with one for children that are omitted."""
        return 1 + len(_failures(self.nodes[index])) + bool(self.children[index])

    def draw(self) -> None:
        waiting: list[tuple[int, int, np.ndarray | None]] = [(0, 0, None)] if self.nodes else []
        while waiting:
            index, depth, before = waiting.pop()
            if index < 0:
                self._rest(-index - 1, depth, before)
                continue
            at = self._node(index, depth, before)
            children = [child for child in self.children[index] if child in self.shown]
            if len(children) < len(self.children[index]):
                children.append(-index - 1)
            waiting += [(child, depth + 1, at) for child in reversed(children)]
        self.board.end_tree()

    def _node(self, index: int, depth: int, before: np.ndarray | None) -> np.ndarray:
        node, board = self.nodes[index], self.board
        color = _PLAN if node.is_in_plan else _OTHER
        if before is None:
            text = f"search with {self.tree.search}: {count_of('version', len(self.nodes))}, "
            text += count_of("attempt", self.tries[index])
        else:
            text = " ".join(node.actions)
            text += f" · {count_of('attempt', node.tries)}" if node.tries else ""
            text += "" if node.estimate is None else f" · {node.estimate:g} expected"
        at = board.write(depth, text, color, meaning=f"node {index}")
        dot = _TRANSFER if node.is_transfer else _OTHER
        board.add_dot(Dot(f"node {index}", at, dot, size=min(_LARGEST, 4.0 + node.tries**0.5)))
        self._edge(
            before, at, _PLAN if node.is_in_plan else _EDGE, width=2.4 if node.is_in_plan else 1.2
        )
        for text in _failures(node):
            failed = board.write(depth + 1, text, _FAILED, meaning=f"failure of node {index}")
            board.add_dot(Cross(f"failure of node {index}", failed, _FAILED))
            self._edge(at, failed, _EDGE, width=1.2)
        return at

    def _rest(self, index: int, depth: int, before: np.ndarray | None) -> None:
        hidden = [child for child in self.children[index] if child not in self.shown]
        size, tries = (
            sum(self.sizes[child] for child in hidden),
            sum(self.tries[child] for child in hidden),
        )
        text = f"… {count_of('more version', size)}, {count_of('attempt', tries)}"
        self._edge(
            before,
            self.board.write(depth, text, _OTHER, meaning=f"rest of node {index}"),
            _EDGE,
            width=1.2,
        )

    def _edge(self, before: np.ndarray | None, at: np.ndarray, color: str, *, width: float) -> None:
        if before is not None:
            corner = [before[0], at[1]]
            self.board.add_line(
                Line("edge", np.array([before, corner, at]), color, width), is_behind=color == _EDGE
            )


def _failures(node: SearchTreeNode) -> list[str]:
    """Return the lines of the actions that failed in a version, each with its most frequent cause."""
    counts: Counter[str] = Counter()
    causes: dict[str, list[str]] = {}
    for failure in node.failures:
        counts[failure.action] += failure.count
        causes.setdefault(failure.action, []).append(failure.cause)
    lines = [
        f"{action}  {count} ×{', often' if len(causes[action]) > 1 else ''}: {causes[action][0]}"
        for action, count in counts.most_common(_MOST_FAILURES)
    ]
    rest = len(counts) - len(lines)
    return [*lines, f"… {count_of('more action', rest)} failed"] if rest else lines
