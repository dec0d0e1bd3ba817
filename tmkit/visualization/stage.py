"""What panels may do with the viewer that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.graph import SceneGraph
from tmkit.plans import Plan
from tmkit.tamp import PlanningProblem, PlanResult
from tmkit.visualization.plan_timeline import PlanTimeline
from tmkit.visualization.scene_model import Color

Shown = SceneGraph | Plan | PlanResult | PlanningProblem
"""What a viewer can show."""


class Panel(Protocol):
    """A part of the viewer's control panel."""

    def update(self) -> None:
        """Show the viewer's state."""
        ...

    def receive(self, word: str, rest: str) -> None:
        """Act on a line of the page that the viewer does not understand.

        Args:
            word: its first word.
            rest: what follows.
        """
        ...


class Stage(Protocol):
    """The viewer as panels see it; :class:`tmkit.visualization.Viewer` says what the members are."""

    problem: PlanningProblem | None

    @property
    def scene(self) -> SceneGraph:
        """The version that is shown."""
        ...

    @property
    def q(self) -> NDArray[np.float64]:
        """(n_joints,) its configuration."""
        ...

    @property
    def picked(self) -> str | None:
        """The frame that was clicked last."""
        ...

    @property
    def timeline(self) -> PlanTimeline | None:
        """The plan that is shown, if it is one."""
        ...

    @property
    def server(self) -> Any:
        """The server of viser."""
        ...

    def set_state(self, scene: SceneGraph, q: NDArray[np.float64], *, sends: bool = True) -> None:
        """Show another state with the same frames."""
        ...

    def show(self, shown: Shown, *, q: ArrayLike | None = None, problem: PlanningProblem | None = None) -> None:
        """Show something else."""
        ...

    def compare(self, before: SceneGraph, after: SceneGraph, *, q: ArrayLike | None = None) -> None:
        """Show two versions side by side."""
        ...

    def draw(
        self, scene: SceneGraph, q: NDArray[np.float64], *, panels: Sequence[PanelMaker],
        timeline: PlanTimeline | None = None, paint: Mapping[str, Color] | None = None, caption: str = "",
    ) -> None:  # fmt: skip
        """Draw a state anew, with its panels."""
        ...

    def paint(self, colors: Mapping[str, Color]) -> None:
        """Colour frames."""
        ...

    def notify(self, title: str, text: str, *, is_error: bool = False) -> None:
        """Show a message in the page."""
        ...


PanelMaker = Callable[[Stage, Any], Panel]
"""Makes a panel of a viewer in viser's tab group."""
