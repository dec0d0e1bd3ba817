"""The domain of a plan: built in, or the caller's own.

A plan file may come from an untrusted source, and semantics are Python that is run. So a plan gives the name of its
domain and a digest over words and meaning: the name is looked up among the built-in domains only, and whatever else it
says is no path. The caller gives any other domain, and the digest tells whether it is the one that the plan was made
with.
"""

from __future__ import annotations

from pathlib import Path

from tmkit._support.data import is_built_in
from tmkit.errors import MissingFileError, PlanFileError
from tmkit.plans.values import Plan
from tmkit.tamp.domains.loading import PlanningDomain, PythonDomain, load_planning_domain


def load_plan_domain(
    plan: Plan, domain: str | Path | PythonDomain | None = None, semantics: str | Path | None = None
) -> PlanningDomain:
    """Load the domain of a plan: what the plan itself names counts only if it is built in.

    Args:
        plan: the plan.
        domain: the caller's domain; by default the built-in one that the plan names.
        semantics: the caller's semantics, likewise.

    Raises:
        MissingFileError: the caller must say where domain or semantics lie, or they are not there.
        TaskError: the domain's PDDL is wrong.
        FileFormatError: the semantics cannot be run.
    """
    if isinstance(domain, PythonDomain):
        return load_planning_domain(domain, manipulator=plan.robots, semantics=semantics)
    if semantics is None and plan.semantics:
        semantics = _built_in(
            plan.semantics, f"semantics '{plan.semantics}' are", "they lie ('semantics', --semantics)"
        )
    if domain is not None:
        return load_planning_domain(domain, manipulator=plan.robots, semantics=semantics)
    if semantics is not None:  # the plan has the words, so only their meaning is needed
        return load_planning_domain(plan.domain, manipulator=plan.robots, semantics=semantics, pddl=plan.domain_pddl)
    named = _built_in(plan.domain, f"domain '{plan.domain}' is", "it lies ('domain', --domain)")
    return load_planning_domain(named, manipulator=plan.robots)


def check_plan_domain(
    plan: Plan, path: str | Path, domain: str | Path | PythonDomain | None, semantics: str | Path | None
) -> None:
    """Raise an error unless the caller's domain is the one that a plan was made with.

    Args:
        plan: the plan.
        path: the file it was read from, for the message.
        domain: the caller's domain; with ``semantics`` None too, nothing is checked.
        semantics: the caller's semantics.

    Raises:
        PlanFileError: the digests differ.
        MissingFileError: domain or semantics are not there.
    """
    if domain is None and semantics is None:
        return
    if load_plan_domain(plan, domain, semantics).digest != plan.domain_digest:
        reason = f"its domain '{plan.domain}' (digest {plan.domain_digest[:12]}) is not the one that was given"
        raise PlanFileError.at(path, reason)


def _built_in(name: str, what: str, where: str) -> str:
    """Return a name that a plan gives, if it is that of a built-in domain."""
    if is_built_in(name, "domains"):
        return name
    reason = f"the plan's {what} not built-in: give the folder in which {where}"
    raise MissingFileError(reason, path=name, nearest=None)
