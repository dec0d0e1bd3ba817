"""Loading domains: PDDL and its semantics, from a folder of both or from two places.

Semantics are Python that is run, so a domain must come from a trusted source; see
docs/concepts/security.md. A plan file may not. So a plan gives the name of its domain and a digest
over words and meaning: the name is looked up among the built-in domains only, and whatever else it
says is no path. The caller gives any other domain, and the digest tells whether it is the one that
the plan was made with.

Invariants: what is run and what the digest speaks of are the same bytes; nothing is written beside
the files; two files of one name do not meet.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import cast

from tmkit._support.data import is_built_in, resolve_name
from tmkit._support.limits import ReadingLimits, read_bytes
from tmkit.errors import (
    FileFormatError,
    MissingExtraError,
    MissingFileError,
    PlanFileError,
    RobotError,
    TaskError,
    UnknownNameError,
    nearest_name,
)
from tmkit.pddl import Domain, domain_to_pddl, parse_domain
from tmkit.pddl.parsing.parser import read_pddl
from tmkit.plans.values import Plan
from tmkit.robots import Manipulator
from tmkit.tamp.domains.planning_domain import PlanningDomain, functions_of, innermost
from tmkit.tamp.domains.semantics import DomainSemantics

_PDDL, _SEMANTICS = "domain.pddl", "semantics.py"
_KINDS = {
    _PDDL: "a domain is a folder or a file that ends in .pddl",
    _SEMANTICS: "semantics are a domain's folder or a Python file",
}
_HOW_TO_DERIVE = (
    "write 'from tmkit.tamp import DomainSemantics' and 'class Semantics(DomainSemantics):'"
)
_REMEMBERED_TEXTS = 16  # texts that are not parsed or compiled again


@dataclass(frozen=True)
class PythonDomain:
    """A domain built in Python: for :func:`tmkit.plan` in the place of a folder.

    Plans hold its words as PDDL. To check a plan, the domain is given again, because states are
    derived anew.

    Attributes:
        domain: the words, e.g. from :func:`tmkit.pddl.make_domain`; all names in lower case.
        semantics: the class of its semantics, derived from :class:`tmkit.tamp.DomainSemantics`.
    """

    domain: Domain
    semantics: type[DomainSemantics]

    def source(self) -> bytes:
        """Return the text of the files that the semantics are written in; their names, where there are no files."""
        paths = dict.fromkeys(
            function.__code__.co_filename for function in functions_of(self.semantics)
        )
        texts = [Path(path).read_bytes() for path in paths if os.path.isfile(path)]
        return (
            b"\0".join(texts)
            or f"{self.semantics.__module__}.{self.semantics.__qualname__}".encode()
        )


def load_planning_domain(
    domain: str | Path | PythonDomain,
    *,
    manipulator: Manipulator | Sequence[Manipulator],
    semantics: str | Path | None = None,
    pddl: str | None = None,
) -> PlanningDomain:
    """Load a domain.

    Args:
        domain: a bare name is a built-in one, in ``domains/``; anything with a separator or suffix
            is a folder, or a file that ends in ``.pddl``; or a domain that was built in Python. A
            folder without ``domain.pddl`` is one whose ``Semantics`` is composed
            (:func:`tmkit.tamp.parts.compose_domain`).
        manipulator: the arm that carries out the actions, or several.
        semantics: domain semantics: a bare name means that of a built-in domain, else a folder with
            a ``semantics.py`` or a Python file. By default the ``semantics.py`` beside the PDDL.
        pddl: the text of the PDDL, when it need not be read because it is known, as from a plan.

    Raises:
        MissingFileError: no such folder or file, or one of the two parts is missing.
        TaskError: the PDDL is wrong.
        FileFormatError: the file defines no class ``Semantics`` derived from
            :class:`tmkit.tamp.DomainSemantics`, the class lacks a required method, or the file
            cannot be run.
        RobotError: the semantics take another number of arms.
    """
    arms = (manipulator,) if isinstance(manipulator, Manipulator) else tuple(manipulator)
    if isinstance(domain, PythonDomain):
        return _built(domain, arms, semantics)
    if (
        pddl is None
        and semantics is None
        and (composed := _composed(resolve_name(domain, "domains"))) is not None
    ):
        return _built(composed, arms, semantics)
    if pddl is not None and semantics is not None:
        pddl_path = Path(domain)
    else:
        pddl_path = _file(resolve_name(domain, "domains"), domain, _PDDL)
    if semantics is None:
        semantics_path = _semantics_beside(pddl_path, domain)
    else:
        semantics_path = _file(resolve_name(semantics, "domains"), semantics, _SEMANTICS)
    written, named_source = (read_pddl(pddl_path), pddl_path) if pddl is None else (pddl, domain)
    parsed = _parsed(written, str(named_source))
    source = read_bytes(semantics_path, limit=ReadingLimits().text_bytes)
    semantics_class = getattr(_run(semantics_path, source), "Semantics", None)
    if not isinstance(semantics_class, type):
        raise FileFormatError.at(semantics_path, f"defines no class 'Semantics'; {_HOW_TO_DERIVE}")
    made = _made(semantics_path, semantics_class, arms)
    text = written.replace("\r\n", "\n").replace("\r", "\n") if pddl is None else pddl
    digest = hashlib.sha256(text.encode() + b"\0" + source).hexdigest()
    name = _name(pddl_path.parent) if pddl_path.name == _PDDL else pddl_path.name
    named = "" if semantics is None else _name(semantics)
    beside = semantics_path.parent / _PDDL
    native = (
        _parsed(read_pddl(beside), str(beside))
        if semantics is not None and os.path.isfile(beside)
        else parsed
    )
    return PlanningDomain(name, parsed, text, digest, made, named, _stored(made, parsed, native))


def _composed(folder: Path) -> PythonDomain | None:
    """Return the domain of a folder of which the semantics bring the words; None for others."""
    if not os.path.isfile(folder / _SEMANTICS) or os.path.exists(folder / _PDDL):
        return None
    source = read_bytes(folder / _SEMANTICS, limit=ReadingLimits().text_bytes)
    semantics = getattr(_run(folder / _SEMANTICS, source), "Semantics", None)
    words = getattr(semantics, "domain", None)
    return (
        PythonDomain(words, cast("type[DomainSemantics]", semantics))
        if isinstance(words, Domain)
        else None
    )


def _stored(semantics: DomainSemantics, domain: Domain, native: Domain) -> frozenset[str]:
    """Return the predicates whose facts are stored: those declared so, and those that the native domain lacks."""
    names = [
        predicate.name
        for predicate in domain.predicates
        if predicate.name not in domain.derived_predicates
    ]
    for name in sorted(semantics.stored_predicates.difference(names)):
        what = UnknownNameError.of("predicate", name, names).message
        raise TaskError.at(
            domain.source or f"domain '{domain.name}'",
            f"'stored_predicates' of the semantics: {what}",
        )
    return semantics.stored_predicates.union(names).difference(
        {predicate.name for predicate in native.predicates} - semantics.stored_predicates
    )


def _name(path: str | Path) -> str:
    """Return the name of a folder or file, also of one that is given as ``.``."""
    return Path(os.path.abspath(path)).name


def _built(
    built: PythonDomain, arms: tuple[Manipulator, ...], semantics: str | Path | None
) -> PlanningDomain:
    """Return a domain built in Python as one read from a file would be."""
    name = built.domain.name
    if semantics is not None:
        raise TaskError.at(
            f"domain '{name}'",
            f"it brings its own semantics, so those of '{semantics}' are too many",
        )
    text = domain_to_pddl(built.domain)
    parsed = _parsed(text, f"domain '{name}'")
    where = Path(f"semantics of domain '{name}'")
    digest = hashlib.sha256(text.encode() + b"\0" + built.source()).hexdigest()
    made = _made(where, built.semantics, arms)
    return PlanningDomain(
        name, parsed, text, digest, made, stored_predicates=_stored(made, parsed, parsed)
    )


@functools.lru_cache(maxsize=_REMEMBERED_TEXTS)
def _parsed(text: str, source: str) -> Domain:
    """Return the domain of a text: a value, cached for the same text."""
    return parse_domain(text, source=source)


@functools.lru_cache(maxsize=_REMEMBERED_TEXTS)
def _compiled(source: bytes, path: str) -> CodeType:
    return compile(source, path, "exec")


def _file(found: Path, named: str | Path, file: str) -> Path:
    """Return a file of a domain's folder, or the file that is named in its place."""
    if os.path.isfile(found) and found.suffix == Path(file).suffix:
        return found
    if os.path.isfile(found):
        raise FileFormatError.at(found, _KINDS[file])
    if not os.path.isfile(found / file):
        what = f"domain '{named}' needs the file {file}, which is not in {found}"
        raise MissingFileError(what, path=str(found / file), nearest=None)
    return found / file


def _semantics_beside(pddl_path: Path, domain: str | Path) -> Path:
    """Return the semantics that lie beside a PDDL file."""
    path = pddl_path.parent / _SEMANTICS
    if pddl_path.name == _PDDL or os.path.isfile(path):
        return _file(pddl_path.parent, domain, _SEMANTICS)
    raise MissingFileError(
        f"{pddl_path}: there is no {_SEMANTICS} beside it, which relates its predicates to a scene;"
        " name a domain with the same predicates, as 'blocks' (semantics=, --semantics)",
        path=str(path),
        nearest=None,
    )


def _made(path: Path, semantics_class: type, arms: tuple[Manipulator, ...]) -> DomainSemantics:
    """Return the semantics for some arms, or refuse a class that does not fit."""
    _require_derived(path, semantics_class)
    _require_arms(path, semantics_class, arms)
    name = semantics_class.__name__
    try:
        semantics = semantics_class(*arms)
    except MissingExtraError:
        raise
    except Exception as error:
        what = (
            f"'{name}({', '.join(['manipulator'] * len(arms))})' fails: {type(error).__name__}:"
            f" {error}"
        )
        raise FileFormatError.at(path, what) from error
    return cast(DomainSemantics, semantics)


def _require_derived(path: Path, semantics_class: type) -> None:
    """Refuse a class that is no semantics, lacks a required method, or has one with other arguments."""
    name = semantics_class.__name__
    if not issubclass(semantics_class, DomainSemantics):
        raise FileFormatError.at(
            path, f"class '{name}' does not derive from DomainSemantics; {_HOW_TO_DERIVE}"
        )
    if missing := sorted(semantics_class.__abstractmethods__):
        known = set(dir(semantics_class)).difference(dir(DomainSemantics))
        near = {method: nearest_name(method, known) for method in missing}
        hint = "".join(
            f"; found '{match}', did you mean '{method}'?"
            for method, match in near.items()
            if match
        )
        raise FileFormatError.at(
            path, f"class '{name}' must define the methods {', '.join(missing)}{hint}"
        )
    for method, expected in vars(DomainSemantics).items():
        own = getattr(semantics_class, method)
        if (
            isinstance(expected, FunctionType)
            and isinstance(own, FunctionType)
            and not method.startswith("_")
        ):
            arguments = list(inspect.signature(expected).parameters)
            try:
                inspect.signature(own).bind(*arguments)
            except TypeError as error:
                what = (
                    f"'{name}.{method}' is called as {method}({', '.join(arguments[1:])}), and"
                    f" cannot be: {error}"
                )
                raise FileFormatError.at(path, what, line=own.__code__.co_firstlineno) from error


def _require_arms(path: Path, semantics_class: type, arms: tuple[Manipulator, ...]) -> None:
    """Refuse a number of arms that a semantics does not take; other faults of its constructor show when it is made."""
    try:
        parameters = inspect.signature(semantics_class).parameters.values()
    except ValueError:
        return
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    most = math.inf if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(positional)
    least = sum(p.default is p.empty for p in positional)
    if len(arms) > max(most, 1) or (len(arms) == 1 and least > 1):
        wanted = f"takes {'one arm only' if most == 1 else f'{least} arms'}"
        names = ", ".join(arm.name for arm in arms)
        raise RobotError.at(path, f"the domain {wanted}, received {len(arms)}: {names}")


def _run(path: Path, source: bytes) -> ModuleType:
    """Run a semantics file as a module whose name depends on its content: two of one name do not collide."""
    module = ModuleType(f"tmkit_semantics_{hashlib.sha256(source).hexdigest()[:16]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up there
    try:
        exec(_compiled(source, str(path)), module.__dict__)
    except Exception as error:
        del sys.modules[module.__name__]
        if isinstance(error, MissingExtraError):
            raise
        _, line = innermost(error, {str(path)}) or (path, None)
        line = error.lineno if isinstance(error, SyntaxError) else line
        raise FileFormatError.at(path, f"{type(error).__name__}: {error}", line=line) from error
    return module


def load_plan_domain(
    plan: Plan, domain: str | Path | PythonDomain | None = None, semantics: str | Path | None = None
) -> PlanningDomain:
    """Load the domain of a plan: what the plan itself names counts only if it is built in.

    Args:
        domain: the caller's domain; by default the built-in one that the plan names.
        semantics: the caller's semantics, likewise.

    Raises:
        MissingFileError: the caller must say where domain or semantics lie, or they are not there.
        TaskError: the domain's PDDL is wrong.
        FileFormatError: the semantics cannot be run.
    """
    pddl = None
    if semantics is None and plan.semantics and not isinstance(domain, PythonDomain):
        semantics = _built_in(
            plan.semantics,
            f"semantics '{plan.semantics}' are",
            "they lie ('semantics', --semantics)",
        )
    # the plan has the words, so only their meaning is needed
    if domain is None and semantics is not None:
        domain, pddl = plan.domain, plan.domain_pddl
    elif domain is None:
        domain = _built_in(
            plan.domain, f"domain '{plan.domain}' is", "it lies ('domain', --domain)"
        )
    return load_planning_domain(domain, manipulator=plan.robots, semantics=semantics, pddl=pddl)


def check_plan_domain(
    plan: Plan,
    path: str | Path,
    domain: str | Path | PythonDomain | None,
    semantics: str | Path | None,
) -> None:
    """Raise an error unless the caller's domain is the one that a plan was made with.

    Args:
        path: the file it was read from, for the message.
        domain: the caller's domain; with ``semantics`` None too, nothing is checked.

    Raises:
        PlanFileError: the digests differ.
        MissingFileError: domain or semantics are not there.
    """
    if domain is None and semantics is None:
        return
    if load_plan_domain(plan, domain, semantics).digest != plan.domain_digest:
        reason = (
            f"its domain '{plan.domain}' (digest {plan.domain_digest[:12]}) is not the one that was"
            " given"
        )
        raise PlanFileError.at(path, reason)


def _built_in(name: str, what: str, where: str) -> str:
    """Return a name that a plan gives, if it is that of a built-in domain."""
    if is_built_in(name, "domains"):
        return name
    reason = f"the plan's {what} not built-in: give the folder in which {where}"
    raise MissingFileError(reason, path=name, nearest=None)
