"""Loading of domains: PDDL and its semantics, from one folder or from two places.

Semantics are Python code that is executed, so a domain must come from a trusted source; see
docs/reference/bad_input.md. A plan file need not be trusted. It contains the name of its domain
and a digest of the PDDL text and the source of the semantics. The name is looked up among the
built-in domains only and is never used as a path. The caller gives any other domain, and the digest
shows whether the plan was made with it.

Invariants: the digest covers exactly the bytes that are executed. Nothing is written beside the
files. Two files of the same name do not collide.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TypeAlias, cast

from tmkit._support.argument_errors import with_keyword_hints
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
from tmkit.robots.robot_files import Robots, resolve_robots
from tmkit.tamp.domains.planning_domain import PlanningDomain, functions_of, innermost_location
from tmkit.tamp.domains.semantics import DomainSemantics
from tmkit.tamp.domains.tmsmt_scripts import is_script

_PDDL_FILE = "domain.pddl"
"""Name of the PDDL file in the folder of a domain."""

_SEMANTICS_FILE = "semantics.py"
"""Name of the Python file in the folder of a domain."""

_EXPECTED_FILES = {
    _PDDL_FILE: "a domain is a folder or a file that ends in .pddl",
    _SEMANTICS_FILE: "semantics are a domain's folder or a Python file",
}
"""Error message for a file of another kind, by the expected file."""

_CLASS_HINT = (
    "write 'from tmkit.tamp import DomainSemantics' and 'class Semantics(DomainSemantics):'"
)
"""Hint of messages about a missing or unsuitable class."""

_CACHE_SIZE = 16
"""Number of texts whose parsed or compiled form is cached."""


@dataclass(frozen=True)
class PythonDomain:
    """A domain built in Python, accepted by :func:`tmkit.plan` in place of a folder.

    Plans store its predicates and actions as PDDL. To validate a plan, give the domain again,
    because states are derived anew.

    Attributes:
        domain: PDDL domain, e.g. from :func:`tmkit.pddl.make_domain`; all names in lower case.
        semantics: class of its semantics, derived from :class:`tmkit.tamp.DomainSemantics`.
    """

    domain: Domain
    semantics: type[DomainSemantics]

    def source(self) -> bytes:
        """Return the text of the source files of the semantics, or their name without files."""
        paths = dict.fromkeys(
            function.__code__.co_filename for function in functions_of(self.semantics)
        )
        texts = [Path(path).read_bytes() for path in paths if os.path.isfile(path)]
        return (
            b"\0".join(texts)
            or f"{self.semantics.__module__}.{self.semantics.__qualname__}".encode()
        )


DomainSource: TypeAlias = str | Path | PythonDomain | PlanningDomain
"""Built-in name, folder or PDDL file of a domain, a domain built in Python, or a loaded one."""


@with_keyword_hints
def load_planning_domain(
    domain: DomainSource,
    *,
    robot: Robots,
    semantics: str | Path | None = None,
    pddl: str | None = None,
) -> PlanningDomain:
    """Load a domain.

    Args:
        domain: name of a built-in domain in ``domains/``, path of a folder or of a file that ends
            in ``.pddl``, or domain built in Python. A string with a separator or suffix is a path.
            A folder without ``domain.pddl`` must contain a composed ``Semantics``
            (:func:`tmkit.tamp.parts.compose_domain`). A loaded domain is returned as it is.
        robot: names or descriptions of the arm, or arms, that carry out the actions.
        semantics: domain semantics: name of a built-in domain, folder with a ``semantics.py``, or
            Python file. Defaults to the ``semantics.py`` beside the PDDL file.
        pddl: PDDL text, if it is known, e.g. from a plan. Then no PDDL file is read.

    Raises:
        MissingFileError: if the folder, the file, one of the two parts, or the robot is missing.
        TaskError: if the PDDL is wrong.
        FileFormatError: if the file defines no class ``Semantics`` derived from
            :class:`tmkit.tamp.DomainSemantics`, the class lacks a required method, or the file
            cannot be run.
        RobotError: if the semantics require another number of arms, or a loaded domain has other
            arms.
    """
    arms = resolve_robots(robot, function="load_planning_domain")
    if isinstance(domain, PlanningDomain):
        return _check_loaded_domain(domain, arms, semantics)
    if isinstance(domain, PythonDomain):
        return _load_python_domain(domain, arms, semantics)
    if pddl is None and semantics is None:
        composed = _read_composed_domain(resolve_name(domain, "domains"))
        if composed is not None:
            return _load_python_domain(composed, arms, semantics)
    if pddl is not None and semantics is not None:
        pddl_path = Path(domain)
    else:
        pddl_path = _domain_file(resolve_name(domain, "domains"), domain, _PDDL_FILE)
    if semantics is None:
        semantics_path = _adjacent_semantics(pddl_path, domain)
    else:
        semantics_path = _domain_file(
            resolve_name(semantics, "domains"), semantics, _SEMANTICS_FILE
        )
    if pddl is None:
        pddl_text, text_origin = read_pddl(pddl_path), str(pddl_path)
    else:
        pddl_text, text_origin = pddl, str(domain)
    parsed = _parse(pddl_text, text_origin)
    source = read_bytes(semantics_path, limit=ReadingLimits().text_bytes)
    semantics_class: type | None
    if is_script(source):
        from tmkit.tamp.domains.tmsmt_scripts.semantics import script_semantics

        semantics_class = script_semantics(semantics_path, source, parsed)
    else:
        semantics_class = getattr(_run_module(semantics_path, source), "Semantics", None)
    if not isinstance(semantics_class, type):
        raise FileFormatError.at(semantics_path, f"defines no class 'Semantics'; {_CLASS_HINT}")
    instance = _construct_semantics(semantics_path, semantics_class, arms)
    text = pddl_text.replace("\r\n", "\n").replace("\r", "\n") if pddl is None else pddl
    digest = hashlib.sha256(text.encode() + b"\0" + source).hexdigest()
    name = _name(pddl_path.parent) if pddl_path.name == _PDDL_FILE else pddl_path.name
    semantics_name = "" if semantics is None else _name(semantics)

    # Predicates that only the given PDDL has are stored in the scene.
    native, native_path = parsed, semantics_path.parent / _PDDL_FILE
    if semantics is not None and os.path.isfile(native_path):
        native = _parse(read_pddl(native_path), str(native_path))
    stored = _collect_stored_predicates(instance, parsed, native)
    return PlanningDomain(name, parsed, text, digest, instance, arms, semantics_name, stored)


def _check_loaded_domain(
    domain: PlanningDomain, arms: tuple[Manipulator, ...], semantics: str | Path | None
) -> PlanningDomain:
    """Return a loaded domain if it has the given arms and semantics."""
    if semantics is not None:
        raise _second_semantics_error(domain.name, semantics)
    if arms != domain.robots:
        expected, received = (
            ", ".join(arm.name for arm in robots) for robots in (domain.robots, arms)
        )
        if expected == received:
            received += " with another description"
        reason = f"it was loaded for {expected}, not for {received}; pass robot=domain.robots"
        raise RobotError.at(f"domain '{domain.name}'", reason)
    return domain


def _second_semantics_error(name: str, semantics: str | Path) -> TaskError:
    reason = f"it has its own semantics, so those of '{semantics}' cannot be used"
    return TaskError.at(f"domain '{name}'", reason)


def _read_composed_domain(folder: Path) -> PythonDomain | None:
    """Return the domain of a folder whose semantics contain the PDDL domain, or None."""
    if not os.path.isfile(folder / _SEMANTICS_FILE) or os.path.exists(folder / _PDDL_FILE):
        return None
    source = read_bytes(folder / _SEMANTICS_FILE, limit=ReadingLimits().text_bytes)
    semantics = getattr(_run_module(folder / _SEMANTICS_FILE, source), "Semantics", None)
    domain = getattr(semantics, "domain", None)
    if not isinstance(domain, Domain):
        return None
    return PythonDomain(domain, cast("type[DomainSemantics]", semantics))


def _collect_stored_predicates(
    semantics: DomainSemantics, domain: Domain, native: Domain
) -> frozenset[str]:
    """Return the predicates whose facts are stored in the scene.

    They are the predicates that the semantics declare as stored, and those that the native domain
    of the semantics lacks.
    """
    names = [
        predicate.name
        for predicate in domain.predicates
        if predicate.name not in domain.derived_predicates
    ]
    for name in sorted(semantics.stored_predicates.difference(names)):
        problem = UnknownNameError.of("predicate", name, names).message
        raise TaskError.at(
            domain.source or f"domain '{domain.name}'",
            f"'stored_predicates' of the semantics: {problem}",
        )
    return semantics.stored_predicates.union(names).difference(
        {predicate.name for predicate in native.predicates} - semantics.stored_predicates
    )


def _name(path: str | Path) -> str:
    """Return the last component of a path, also for ``.``."""
    return Path(os.path.abspath(path)).name


def _load_python_domain(
    domain: PythonDomain, arms: tuple[Manipulator, ...], semantics: str | Path | None
) -> PlanningDomain:
    """Load a domain built in Python, with the same result as from files."""
    name = domain.domain.name
    if semantics is not None:
        raise _second_semantics_error(name, semantics)
    text = domain_to_pddl(domain.domain)
    parsed = _parse(text, f"domain '{name}'")
    origin = Path(f"semantics of domain '{name}'")
    digest = hashlib.sha256(text.encode() + b"\0" + domain.source()).hexdigest()
    instance = _construct_semantics(origin, domain.semantics, arms)
    return PlanningDomain(
        name,
        parsed,
        text,
        digest,
        instance,
        arms,
        stored_predicates=_collect_stored_predicates(instance, parsed, parsed),
    )


@functools.lru_cache(maxsize=_CACHE_SIZE)
def _parse(text: str, source: str) -> Domain:
    """Parse the text of a domain; results are cached."""
    return parse_domain(text, source=source)


@functools.lru_cache(maxsize=_CACHE_SIZE)
def _compile(source: bytes, path: str) -> CodeType:
    return compile(source, path, "exec")


def _domain_file(path: Path, domain_name: str | Path, file_name: str) -> Path:
    """Return a file in the folder of a domain, or the path itself if it is such a file."""
    if os.path.isfile(path) and path.suffix == Path(file_name).suffix:
        return path
    if os.path.isfile(path):
        raise FileFormatError.at(path, _EXPECTED_FILES[file_name])
    if not os.path.isfile(path / file_name):
        message = f"domain '{domain_name}' needs the file {file_name}, which is not in {path}"
        raise MissingFileError(message, path=str(path / file_name), nearest=None)
    return path / file_name


def _adjacent_semantics(pddl_path: Path, domain: str | Path) -> Path:
    """Return the semantics beside a PDDL file."""
    path = pddl_path.parent / _SEMANTICS_FILE
    if pddl_path.name == _PDDL_FILE or os.path.isfile(path):
        return _domain_file(pddl_path.parent, domain, _SEMANTICS_FILE)
    raise MissingFileError(
        f"{pddl_path}: there is no {_SEMANTICS_FILE} beside it, which relates its predicates to a"
        " scene; name a domain with the same predicates, as 'blocks' (semantics=, --semantics)",
        path=str(path),
        nearest=None,
    )


def _construct_semantics(
    path: Path, semantics_class: type, arms: tuple[Manipulator, ...]
) -> DomainSemantics:
    """Construct the semantics for given arms, or reject an unsuitable class."""
    _require_methods(path, semantics_class)
    _require_arms(path, semantics_class, arms)
    name = semantics_class.__name__
    try:
        semantics = semantics_class(*arms)
    except (MissingExtraError, RobotError):
        raise
    except Exception as error:
        call = f"{name}({', '.join(['robot'] * len(arms))})"
        reason = f"'{call}' fails: {type(error).__name__}: {error}"
        raise FileFormatError.at(path, reason) from error
    return cast(DomainSemantics, semantics)


def _require_methods(path: Path, semantics_class: type) -> None:
    """Reject a class that is not a semantics class, or lacks or misdefines a method."""
    name = semantics_class.__name__
    if not issubclass(semantics_class, DomainSemantics):
        raise FileFormatError.at(
            path, f"class '{name}' does not derive from DomainSemantics; {_CLASS_HINT}"
        )
    if missing := sorted(semantics_class.__abstractmethods__):
        candidates = set(dir(semantics_class)).difference(dir(DomainSemantics))
        matches = {method: nearest_name(method, candidates) for method in missing}
        hint = "".join(
            f"; found '{match}', did you mean '{method}'?"
            for method, match in matches.items()
            if match
        )
        raise FileFormatError.at(
            path, f"class '{name}' must define the methods {', '.join(missing)}{hint}"
        )
    for method, expected in vars(DomainSemantics).items():
        defined = getattr(semantics_class, method)
        are_functions = isinstance(expected, FunctionType) and isinstance(defined, FunctionType)
        if not are_functions or method.startswith("_"):
            continue
        arguments = list(inspect.signature(expected).parameters)
        try:
            inspect.signature(defined).bind(*arguments)
        except TypeError as error:
            call = f"{method}({', '.join(arguments[1:])})"
            reason = f"'{name}.{method}' is called as {call}, and cannot be: {error}"
            line = defined.__code__.co_firstlineno
            raise FileFormatError.at(path, reason, line=line) from error


def _require_arms(path: Path, semantics_class: type, arms: tuple[Manipulator, ...]) -> None:
    """Reject a number of arms for which the semantics are not defined.

    Other faults of the constructor are found when the semantics are constructed.
    """
    try:
        parameters = inspect.signature(semantics_class).parameters.values()
    except ValueError:
        return
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    maximum = math.inf if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(positional)
    minimum = sum(p.default is p.empty for p in positional)
    if len(arms) > max(maximum, 1) or (len(arms) == 1 and minimum > 1):
        expected = "one arm only" if maximum == 1 else f"{minimum} arms"
        names = ", ".join(arm.name for arm in arms)
        raise RobotError.at(path, f"the domain takes {expected}, received {len(arms)}: {names}")


def _run_module(path: Path, source: bytes) -> ModuleType:
    """Run a semantics file as a module whose name depends on its content.

    Two files of the same name therefore do not collide.
    """
    module = ModuleType(f"tmkit_semantics_{hashlib.sha256(source).hexdigest()[:16]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up there
    try:
        exec(_compile(source, str(path)), module.__dict__)
    except Exception as error:
        del sys.modules[module.__name__]
        if isinstance(error, MissingExtraError):
            raise
        _, line = innermost_location(error, {str(path)}) or (path, None)
        line = error.lineno if isinstance(error, SyntaxError) else line
        raise FileFormatError.at(path, f"{type(error).__name__}: {error}", line=line) from error
    return module


def load_plan_domain(
    plan: Plan, domain: DomainSource | None = None, semantics: str | Path | None = None
) -> PlanningDomain:
    """Load the domain of a plan; names in the plan itself are used for built-in domains only.

    Args:
        plan: the plan.
        domain: domain given by the caller. Defaults to the built-in domain named in the plan.
        semantics: semantics given by the caller. Defaults to those named in the plan.

    Raises:
        MissingFileError: if the domain or the semantics are not built in and not given, or missing.
        TaskError: if the PDDL of the domain is wrong.
        FileFormatError: if the semantics cannot be run.
    """
    pddl = None
    if (
        semantics is None
        and plan.semantics
        and not isinstance(domain, PythonDomain | PlanningDomain)
    ):
        semantics = _require_built_in(
            plan.semantics,
            f"semantics '{plan.semantics}' are",
            "they lie ('semantics', --semantics)",
        )
    # The plan contains the PDDL, so only the semantics are loaded.
    if domain is None and semantics is not None:
        domain, pddl = plan.domain, plan.domain_pddl
    elif domain is None:
        domain = _require_built_in(
            plan.domain, f"domain '{plan.domain}' is", "it lies ('domain', --domain)"
        )
    return load_planning_domain(domain, robot=plan.robots, semantics=semantics, pddl=pddl)


def check_plan_domain(
    plan: Plan, path: str | Path, domain: DomainSource | None, semantics: str | Path | None
) -> None:
    """Raise an error unless the caller's domain is the one that a plan was made with.

    Args:
        plan: the plan.
        path: file from which the plan was read, for the message.
        domain: domain given by the caller. If ``semantics`` is None too, nothing is checked.
        semantics: semantics given by the caller.

    Raises:
        PlanFileError: if the digests differ.
        MissingFileError: if the domain or the semantics are missing.
    """
    if domain is None and semantics is None:
        return
    if load_plan_domain(plan, domain, semantics).digest != plan.domain_digest:
        reason = (
            f"its domain '{plan.domain}' (digest {plan.domain_digest[:12]}) is not the one that was"
            " given"
        )
        raise PlanFileError.at(path, reason)


def _require_built_in(name: str, subject: str, location: str) -> str:
    """Return a name from a plan if it is the name of a built-in domain, else raise an error."""
    if is_built_in(name, "domains"):
        return name
    reason = f"the plan's {subject} not built-in: give the folder in which {location}"
    raise MissingFileError(reason, path=name, nearest=None)
