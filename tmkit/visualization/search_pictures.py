"""A search in pictures: its trees drawn into a file, and its failures and trees in panels of the viewer.

A drawn search tree has one line for each version of the scene, indented below the version before it, with the actions
that led to it, the attempts made from it and, in the search over transfers, the estimate that orders the queue. Large
trees are cut: the way to the plan is always drawn, then the branches below which most was tried, until the lines are
used up. What is omitted is counted where it would be.

In the viewer, each failure is shown as the scene and configuration in which it happened: bodies in the way are red, the
object that was to be handled is blue, everything else is pale. Below are the grasps and placements that were rejected,
to click. The search trees are shown node by node: a click shows the version of the scene.
"""

from __future__ import annotations

import heapq
import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.graph.display.outline import count_of
from tmkit.tamp import ActionDiagnosis, FailureCause, FailureExample, PlanResult, SearchTree, SearchTreeNode
from tmkit.visualization.drawing import MARGIN, Cross, Dot, Drawing, Label, Line, Mark, save_drawings
from tmkit.visualization.stage import Panel, PanelMaker, Stage
from tmkit.visualization.viewer_panels import RED, JointsPanel, PlanPanel, TreePanel, boxed

_PLAN, _OTHER, _FAILED, _EDGE = "#1f5fa8", "#4a525a", "#c2262e", "#b4bac0"
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
        "Each line is a version of the scene, below the version from which its actions led to it.",
        "Blue: the way to the plan. Crosses: actions that failed there. Dots grow with the attempts.",
    )
    right = max((float(label.at[0]) + _LETTER * len(label.text) for label in board.labels), default=1.0)
    edge = Label("edge", np.array([right, 0.0]), "")
    marks = (*board.lines, *board.dots, *board.labels, edge)
    return Drawing(marks, title=title, caption=caption, largest_unit=1.0)


def draw_search_tree(trees: Sequence[SearchTree], path: str | Path, *, rows: int = 80, title: str = "") -> Path:
    """Draw the search trees of a run into a PNG or SVG file, and return its path.

    Args:
        trees: the trees (:attr:`tmkit.tamp.PlanResult.search_trees`).
        path: the file.
        rows: lines at most, unless the way to the plan alone has more.
        title: above the drawing.

    Raises:
        OutputError: the file cannot be written, or its name ends neither in ``.png`` nor in ``.svg``.
        MissingExtraError: the extra ``viewer`` is not installed.
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
        """Return how many lines a node takes, with one for children that are left out."""
        return 1 + len(_failures(self.nodes[index])) + bool(self.children[index])

    def draw(self) -> None:
        """Draw the tree."""
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
        self.board.row += 1

    def _node(self, index: int, depth: int, before: np.ndarray | None) -> np.ndarray:
        node, board = self.nodes[index], self.board
        color = _PLAN if node.is_in_plan else _OTHER
        if before is None:
            text = f"search over {self.tree.search}: {count_of('version', len(self.nodes))}, "
            text += count_of("attempt", self.tries[index])
        else:
            text = f"{' '.join(node.actions)}  · {count_of('attempt', node.tries)}"
            text += "" if node.estimate is None else f" · estimate {node.estimate:g}"
        at = board.write(depth, text, color, meaning=f"node {index}")
        board.dots.append(Dot(f"node {index}", at, color, size=min(_LARGEST, 4.0 + node.tries**0.5)))
        self._edge(before, at, _PLAN if node.is_in_plan else _EDGE, width=2.4 if node.is_in_plan else 1.2)
        for text in _failures(node):
            failed = board.write(depth + 1, text, _FAILED, meaning=f"failure of node {index}")
            board.dots.append(Cross(f"failure of node {index}", failed, _FAILED))
            self._edge(at, failed, _EDGE, width=1.2)
        return at

    def _rest(self, index: int, depth: int, before: np.ndarray | None) -> None:
        hidden = [child for child in self.children[index] if child not in self.shown]
        size, tries = sum(self.sizes[child] for child in hidden), sum(self.tries[child] for child in hidden)
        text = f"… {count_of('more version', size)}, {count_of('attempt', tries)}"
        self._edge(before, self.board.write(depth, text, _OTHER, meaning=f"rest of node {index}"), _EDGE, width=1.2)

    def _edge(self, before: np.ndarray | None, at: np.ndarray, color: str, *, width: float) -> None:
        if before is not None:
            corner = [before[0], at[1]]
            self.board.lines.insert(0 if color == _EDGE else len(self.board.lines), Line(
                "edge", np.array([before, corner, at]), color, width
            ))  # fmt: skip


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


_BLUE, _ORANGE, _PALE = (0.12, 0.38, 0.95, 1.0), (0.98, 0.60, 0.15, 1.0), (0.88, 0.89, 0.90, 1.0)
_MOST_ROWS = 1000


def show_failure(viewer: Stage, result: PlanResult, more: Sequence[PanelMaker] = (), *, number: int = 0) -> None:
    """Draw an example of a failure by number, with the explanation and what was rejected, to click through."""
    cases = _cases(result)
    maker = partial(_WhyNotPanel, result=result, more=more, now=number)
    panels: list[PanelMaker] = [maker, TreePanel, JointsPanel, PlanPanel, *more]
    if cases:
        action, cause, example = cases[number]
        paint = dict.fromkeys(example.scene.frame_names, _PALE)
        for name in example.scene.subtree(example.manipulator.base):
            del paint[name]  # the arm keeps its colours
        paint |= dict.fromkeys((name for pair in example.pairs for name in pair), _ORANGE)
        paint |= dict.fromkeys(example.in_the_way, RED)
        paint |= {example.object: _BLUE} if example.object is not None else {}
        caption = f"{action.action}{f', {example.choice}' if example.choice else ''}: {cause}"
        viewer.draw(example.scene, example.q, paint=paint, panels=panels, caption=caption)
    elif viewer.problem is not None:
        scene, q = viewer.problem.scene, viewer.problem.q
        q = scene.at(viewer.home(scene) if q is None else q).q
        viewer.draw(scene, q, panels=panels, caption=result.explanation)


def _cases(result: PlanResult) -> list[tuple[ActionDiagnosis, FailureCause, FailureExample]]:
    return [(a, cause, example) for a in result.diagnosis.actions for cause in a.causes for example in cause.examples]


class _WhyNotPanel(Panel):
    """The explanation, and the causes to click through."""

    def __init__(self, viewer: Stage, tabs: Any, *, result: PlanResult, more: Sequence[PanelMaker], now: int) -> None:
        self._result, self._more, self._now, self._cases = result, more, now, _cases(result)
        super().__init__(viewer, tabs)

    def _build(self, gui: Any, tabs: Any) -> None:
        with tabs.add_tab("Why not"):
            self._text = gui.add_html("")
            row = gui.add_button_group("Rejected", ("Previous", "Next"))
            row.on_click(lambda event: self._step(1 if event.target.value == "Next" else -1))

    def update(self) -> None:
        """Show the explanation and the list of causes, with the one that is drawn marked."""
        rows, number = [f"<p>{html.escape(self._result.explanation)}</p>"], 0
        for action in self._result.diagnosis.actions:
            rows.append(f"<b>{html.escape(action.action)}</b>: {action.failures} failures")
            for cause in action.causes:
                met = ", ".join(body.frame for body in cause.in_the_way)
                is_open = number <= self._now < number + len(cause.examples)
                rows.append(self._row(number if cause.examples else None, f"{cause.count} x {cause}", met, depth=1))
                for index, example in enumerate(cause.examples if is_open else (), start=number):
                    text = example.choice or "the state in which it happened"
                    rows.append(self._row(index, text, ", ".join(example.in_the_way), depth=2))
                number += len(cause.examples)
        rows += [f"<p>{html.escape(text)}</p>" for text in self._result.diagnosis.causes]
        self._text.content = boxed("".join(rows), "70vh")

    def _row(self, number: int | None, text: str, met: str, *, depth: int) -> str:
        style = f"padding-left:{depth}em;" + ("background:#fed7d7;" if depth == 2 and number == self._now else "")
        click = f'data-tmkit-tell="rejected {number}"' if number is not None else ""
        style += "cursor:pointer" if number is not None else "opacity:.6"
        return f'<div {click} style="{style}">{html.escape(text + (f" [{met}]" if met else ""))}</div>'

    def receive(self, word: str, rest: str) -> None:
        if word == "rejected" and rest.isdigit() and int(rest) < len(self._cases):
            show_failure(self._viewer, self._result, self._more, number=int(rest))

    def _step(self, direction: int) -> None:
        if self._cases:
            number = (self._now + direction) % len(self._cases)
            show_failure(self._viewer, self._result, self._more, number=number)


def search_panel(trees: Sequence[SearchTree], start: SceneGraph) -> PanelMaker:
    """Return what makes the panel of some search trees."""
    return partial(_SearchPanel, trees=trees, start=start)


class _SearchPanel(Panel):
    """The search trees of a run."""

    def __init__(self, viewer: Stage, tabs: Any, *, trees: Sequence[SearchTree], start: SceneGraph) -> None:
        self._trees, self._start = trees, start
        self._now: tuple[int, int] | None = None
        super().__init__(viewer, tabs)

    def _build(self, gui: Any, tabs: Any) -> None:
        with tabs.add_tab("Search"):
            self._text = gui.add_html("")

    def update(self) -> None:
        rows = []
        for number, tree in enumerate(self._trees):
            rows.append(f"<b>{html.escape(tree.search)}: {len(tree.nodes)} versions</b>")
            depths: list[int] = []
            for index, node in enumerate(tree.nodes[:_MOST_ROWS]):
                depths.append(0 if node.parent is None else depths[node.parent] + 1)
                style = "background:#fbd38d;" if (number, index) == self._now else ""
                style += "font-weight:600;" if node.is_in_plan else ""
                failed = "".join(f"\n{f.count} x {f.action}: {f.cause}" for f in node.failures)
                count = sum(failure.count for failure in node.failures)
                text = " ".join(node.actions) or "start"
                hint = html.escape(" ".join(node.choices) + failed)
                rows.append(
                    f'<div data-tmkit-tell="node {number} {index}" title="{hint}" '
                    f'style="cursor:pointer;padding-left:{0.8 * min(depths[-1], 20)}em;{style}">{html.escape(text)}'
                    f"{f' <span style=color:#c53030>{count} failed</span>' if count else ''}</div>"
                )
        self._text.content = boxed("".join(rows), "70vh")

    def receive(self, word: str, rest: str) -> None:
        numbers = rest.split()
        if word == "node" and len(numbers) == 2 and all(number.isdigit() for number in numbers):
            number, index = int(numbers[0]), int(numbers[1])
            if number < len(self._trees) and index < len(self._trees[number].nodes):
                self._now = (number, index)
                self._viewer.set_state(*self._trees[number].version(index, self._start))
