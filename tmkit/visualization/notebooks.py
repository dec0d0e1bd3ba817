"""Showing values: in a browser from a program, in the cell of a notebook."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from tmkit.errors import ConfigurationError
from tmkit.graph import SceneGraph
from tmkit.plans import Plan
from tmkit.tamp import PlanningProblem, PlanResult
from tmkit.visualization.page import page_html
from tmkit.visualization.stage import Shown

if TYPE_CHECKING:
    from tmkit.visualization.viewer import Viewer

_FRAME = '<iframe srcdoc="{}" width="100%" height="{}" style="border:1px solid #ddd"></iframe>'


def show(
    shown: Shown, *, q: ArrayLike | None = None, problem: PlanningProblem | None = None, port: int = 0,
    opens: bool = True,
) -> Viewer:  # fmt: skip
    """Show a scene, a problem, a plan or the result of planning in the browser, and go on.

    Args:
        shown: what to show; a result without a plan opens on the likely cause.
        q: (n_joints,) configuration of a scene, radians or metres; zero by default.
        problem: the problem that a result belongs to: it gives the facts, and is planned again.
        port: the port of the page; any free one by default.
        opens: whether a browser is opened.

    Returns:
        The viewer; ``viewer.wait()`` keeps a script alive, ``viewer.close()`` ends it.

    Raises:
        MissingExtraError: viser is not installed.
        OutputError: the port is in use.
        ArgumentError: something else is to be shown.
    """
    import webbrowser

    from tmkit.visualization.viewer import Viewer

    viewer = Viewer(shown, q=q, problem=problem, port=port)
    if opens:
        webbrowser.open(viewer.url)
    return viewer


def enable_notebook(*, height: int = 480) -> None:
    """Show scenes, plans and solved results in three dimensions where a notebook displays them.

    Each display is a page of its own of one to three megabytes in the notebook. Results without a plan keep their text.

    Args:
        height: pixels of a display.

    Raises:
        ConfigurationError: there is no notebook: IPython does not run this code.
    """
    import sys

    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        raise ConfigurationError("enable_notebook: this is not a notebook; use tmkit.show(...) or tmkit.save_html(...)")
    formatter = shell.display_formatter.formatters["text/html"]

    def framed(shown: Plan | SceneGraph) -> str:
        return _FRAME.format(html.escape(page_html(shown, autoplay=False)), height)

    def of_result(result: PlanResult) -> str:
        return framed(result.plan) if result.plan is not None else result._repr_html_()

    formatter.for_type(SceneGraph, framed)
    formatter.for_type(Plan, framed)
    formatter.for_type(PlanResult, of_result)
