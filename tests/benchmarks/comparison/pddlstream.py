"""PDDLStream as a planner of the arena, with grasps, placements and motions of tmkit.

`PDDLStream <https://github.com/caelan/pddlstream>`_ (Garrett et al., ICAPS 2020) is not on PyPI and
under the GPL: it is loaded from a checkout that the user names. A domain of tmkit becomes a
PDDLStream problem in one of two declarations: *fair* follows PDDLStream's own examples, *stock* has
the fewest streams. Actions that pick or place get a grasp, a place and a motion as further
parameters, which streams sample from the domain's candidates. The plan that PDDLStream returns is
carried out with its grasps, places, motions and poses of the base, in the whole scene.

Invariants: nothing of PDDLStream is imported before a planner is called.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.comparison.pddlstream_fair import FairDeclaration
from benchmarks.comparison.pddlstream_stock import StockDeclaration
from support.processor_time import processor_seconds

from tmkit._support.signals import temporary_folder
from tmkit.errors import ConfigurationError
from tmkit.plans import Plan
from tmkit.plans.continuous_goals import ArmAt
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import PlanningProblem

ALGORITHMS = ("adaptive", "binding", "focused", "incremental")
DECLARATIONS: Mapping[str, type[StockDeclaration]] = {
    "fair": FairDeclaration,
    "stock": StockDeclaration,
}
"""How a problem is declared: as in PDDLStream's examples, or with the fewest streams."""
DOMAINS = ("blocks", "hanoi", "kitchen", "mobile_manipulation", "rearrangement")
"""Readable domains: one hand picks and places, and other actions change facts or drive a base."""

_STOCK_PLANS = 3
"""Plans of PDDLStream with few streams, where those before cannot be carried out."""
# which heuristics of Fast Downward have no more
_TRANSFORM = re.compile(r"\(transform=\w+\((?:[^()]*)\)\)")
_SECONDS = 600.0  # of a search without a time limit


@dataclass(frozen=True)
class PddlStream:
    """PDDLStream from a checkout as a planner of the arena, with Fast Downward of up-fast-downward.

    Args:
        folder: the checkout, with the submodule ``downward``, whose translator is used.
        algorithm: one of :data:`ALGORITHMS`.
        declaration: one of :data:`DECLARATIONS`.
        is_clock_processor: whether time limits, and PDDLStream's balance of search and sampling,
            count processor time of this process and its children, not the clock.

    Raises:
        ConfigurationError: if the algorithm or declaration is unknown, or there is no checkout; on
            a call, if the domain is unsupported.
    """

    folder: str
    algorithm: str = "adaptive"
    declaration: str = "fair"
    is_clock_processor: bool = False

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise ConfigurationError(
                f"PDDLStream has no algorithm '{self.algorithm}': {', '.join(ALGORITHMS)}"
            )
        if self.declaration not in DECLARATIONS:
            raise ConfigurationError(
                f"unknown declaration '{self.declaration}': {', '.join(DECLARATIONS)}"
            )
        for file in ("pddlstream/algorithms/meta.py", "downward/src/translate/translate.py"):
            if not (Path(self.folder) / file).is_file():
                raise ConfigurationError(
                    f"'{self.folder}' is no checkout of PDDLStream with submodules: it has no"
                    f" {file}"
                )

    def __call__(self, problem: PlanningProblem, options: PlanningOptions) -> Plan | None:
        """Return the plan of a problem, or None.

        Args:
            problem: the problem, of a domain in :data:`DOMAINS`.
            options: the seed, the time limit, and how motions are planned.
        """
        if problem.domain not in DOMAINS:
            raise ConfigurationError(
                f"domain '{problem.domain}' is not read for PDDLStream: {', '.join(DOMAINS)}"
            )
        if any(isinstance(goal, ArmAt) for goal in problem.goals):
            raise ConfigurationError("goals of the arm are not read for PDDLStream")
        clock = processor_seconds if self.is_clock_processor else time.monotonic
        ends = clock() + min(options.seconds, _SECONDS)
        checkout = Path(self.folder).resolve()
        attempts = range(_STOCK_PLANS) if self.declaration == "stock" else itertools.count()
        for attempt in attempts:
            declared = DECLARATIONS[self.declaration](problem, options, attempt)
            with contextlib.ExitStack() as stack:
                folder = stack.enter_context(temporary_folder("pddlstream"))
                # it writes below the working directory
                stack.enter_context(contextlib.chdir(folder))
                nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
                stack.enter_context(contextlib.redirect_stdout(nowhere))
                library = _library(checkout, folder, clock)
                try:
                    actions = declared.solve(library, self.algorithm, ends - clock())
                except AssertionError:  # of PDDLStream, where bindings of one output differ
                    continue
            if actions is None or (plan := declared.carried_out(actions)) is not None:
                return None if actions is None else plan
        return None


def _library(checkout: Path, folder: Path, clock: Callable[[], float]) -> dict[str, Any]:
    """Import PDDLStream, with Fast Downward in its build layout, in a folder without blanks."""
    from tmkit.task_planning.fast_downward_process import search_program

    builds = folder / "checkout" / "downward" / "builds" / "release" / "bin"
    builds.mkdir(parents=True)
    (builds / "translate").symlink_to(checkout.resolve() / "downward" / "src" / "translate")
    (builds / "downward").symlink_to(search_program())
    # it looks for builds beside itself
    shutil.copytree(checkout / "pddlstream", folder / "checkout" / "pddlstream")
    own = [str(folder / "checkout"), str(builds / "translate")]
    sys.path[:0] = own
    # its modules are called tools, pddl, ...: others are in their way
    for path in (builds / "translate").iterdir():
        if "translate" not in str(getattr(sys.modules.get(path.stem), "__file__", "")):
            sys.modules.pop(path.stem, None)
    try:
        downward: Any = import_module("pddlstream.algorithms.downward")
        algorithm, meta = (
            import_module(f"pddlstream.algorithms.{name}") for name in ("algorithm", "meta")
        )
        constants, generator, stream = (
            import_module(f"pddlstream.language.{name}")
            for name in ("constants", "generator", "stream")
        )
    finally:
        for entry in own:
            sys.path.remove(entry)
    for name, module in sys.modules.items():
        own: Any = getattr(module, "time", None) if name.startswith("pddlstream.") else None
        if own is not None:
            module.time = clock if callable(own) else SimpleNamespace(time=clock)  # type: ignore[attr-defined]
    downward.FD_BIN = str(builds)  # of this call, where the package was imported before
    # of the translator, whose folder PDDLStream has put on the path
    tasks = import_module("sas_tasks").SASTask
    # the class is PDDLStream's, which offers no other place for this
    if not hasattr(tasks, "plain_output"):
        tasks.plain_output, tasks.output = tasks.output, _output
    options = downward.SEARCH_OPTIONS
    options.update({name: _TRANSFORM.sub("()", text) for name, text in options.items()})
    return {
        "solve": meta.solve,
        "reset": algorithm.reset_globals,
        "problem": constants.PDDLProblem,
        "from_gen_fn": generator.from_gen_fn,
        "stream_info": stream.StreamInfo,
        "from_test": generator.from_test,
    }


def _output(task: Any, stream: Any) -> None:
    """Write a task for Fast Downward without the default-value rules of derived variables."""
    task.axioms = [
        axiom for axiom in task.axioms if task.init.values[axiom.effect[0]] != axiom.effect[1]
    ]
    task.plain_output(stream)
