"""Plug-ins: registrations of file formats, planners, engines and transports, built in or installed.

::

    group            entry points            value    found by
    file formats     tmkit.formats           Format   suffix: load_scene("cell.abc")
    task planners    tmkit.task_planners     PlugIn   name: tmkit task --planner NAME
    motion planners  tmkit.motion_planners   PlugIn   name: tmkit plan --motion-planner NAME
    physics engines  tmkit.engines           PlugIn   name: tmkit simulate --engine NAME
    transports       tmkit.transports        PlugIn   name: tmkit serve --transport NAME

Each group has a table of built-in registrations. Registrations of other distributions are entry
points, as in pytest and Sphinx. The name of an entry point is the key of its registration (a suffix
without its dot), so only the module of the requested registration is imported. Entry points are
read if a name is not built in, and for lists.

Guarantees: built-in names cannot be replaced. A name that two distributions claim is an error. A
plug-in that fails affects no other, and its error names the distribution.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tmkit.errors import (
    MissingExtraError,
    PlugInError,
    TmkitError,
    UnknownNameError,
    install_command,
)

if TYPE_CHECKING:
    from importlib import metadata

__all__ = ["PlugIn"]  # the other classes are for the registries of tmkit

Product = TypeVar("Product")


@dataclass(frozen=True)
class PlugIn(Generic[Product]):
    """Registration of a task planner, a motion planner, a physics engine or a transport.

    Attributes:
        name: key of the registration, equal to the name of its entry point.
        make: function that returns the object. It imports the modules of the object, since lists
            read registrations. Planners take no arguments, or ``argument``. Engines take those of
            :meth:`tmkit.simulation.Simulation.from_scene`. Transports take an address, ``listen``,
            ``world`` and ``settings``.
        description: one line for ``tmkit list``.
        argument: metavar of the optional argument after the name and a colon, such as ``ENGINE``.
            Empty for none.
        extra: required extra of tmkit; empty for none.
        module: required module, which may be absent; empty for none.
    """

    name: str
    make: Callable[..., Product]
    description: str = ""
    argument: str = ""
    extra: str = ""
    module: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the registration."""
        return (self.name,)

    @property
    def usage(self) -> str:
        """Name, with the metavar of its argument."""
        return f"{self.name}:{self.argument}" if self.argument else self.name


class Registration(Protocol):
    """Registration value: :class:`PlugIn`, or ``Format`` of :mod:`tmkit.formats.format`."""

    @property
    def name(self) -> str:
        """Name in lists and messages."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """Names or suffixes of the registration."""
        ...

    @property
    def usage(self) -> str:
        """Name in a list, with its argument."""
        ...

    @property
    def description(self) -> str:
        """Short description for a list."""
        ...

    @property
    def extra(self) -> str:
        """Required extra of tmkit; empty for none."""
        ...

    @property
    def module(self) -> str:
        """Required module; empty for none."""
        ...


Value = TypeVar("Value", bound=Registration)


@dataclass(frozen=True)
class InstalledRegistration(Generic[Value]):
    """Registration and its origin.

    Attributes:
        value: registration.
        distribution: name of the distribution that contains it; empty if it is built in.
    """

    value: Value
    distribution: str = ""

    @property
    def is_usable(self) -> bool:
        """True if the required module is installed."""
        return not self.value.module or importlib.util.find_spec(self.value.module) is not None

    @property
    def install_command(self) -> str:
        """Command that installs the missing module; empty if no module is missing."""
        if self.is_usable:
            return ""
        if self.value.extra:
            return install_command(self.value.extra)
        return f"pip install {self.value.module}"

    def error_of(self, error: Exception) -> TmkitError:
        """Return the tmkit error that replaces an error of another library.

        Args:
            error: error that a function of the registration raised.
        """
        if isinstance(error, ImportError) and self.install_command:
            message = f"'{self.value.keys[0]}' needs {self.value.module}: {self.install_command}"
            return MissingExtraError(message, extra=self.value.extra, module=self.value.module)
        return self.failure(f"fails: {type(error).__name__}: {error}")

    def failure(self, reason: str) -> PlugInError:
        """Return an error of this plug-in.

        Args:
            reason: predicate of the message, such as "fails: ...".
        """
        return PlugInError.of(self.value.keys[0], self.distribution or "tmkit", reason)


@dataclass(frozen=True)
class PlugInGroup(Generic[Value]):
    """Registrations of one kind.

    Attributes:
        name: group of entry points.
        noun: kind of the registered objects, for messages.
        type: class of the registrations.
        built_in: function that returns the built-in registrations, in the order of lists.
    """

    name: str
    noun: str
    type: type[Value]
    built_in: Callable[[], tuple[Value, ...]]

    def find_built_in(self, key: str) -> Value | None:
        """Return the built-in registration of a name, or None."""
        return next((value for value in self.built_in() if key in value.keys), None)

    def find(self, key: str) -> InstalledRegistration[Value]:
        """Return the registration of a name, and import the module of a plug-in.

        Args:
            key: name or suffix.

        Raises:
            UnknownNameError: if no registration has the name.
            PlugInError: if its plug-in cannot be loaded, or two distributions claim the name.
        """
        value = self.find_built_in(key)
        if value is not None:
            return InstalledRegistration(value)
        points = self._entry_points()
        matches = [point for point in points if point.name == key]
        if not matches:
            valid_names = dict.fromkeys([*self.built_in_keys(), *(point.name for point in points)])
            raise UnknownNameError.of(self.noun, key, valid_names)
        if len(matches) > 1:
            claimants = " and ".join(f"'{_distribution_name(point)}'" for point in matches)
            reason = f"is claimed by the distributions {claimants}"
            raise PlugInError.of(key, _distribution_name(matches[0]), reason)
        return self._load(matches[0])

    def built_in_keys(self) -> list[str]:
        """Return the names of the built-in registrations."""
        return [key for value in self.built_in() for key in value.keys]

    def plug_in_keys(self) -> list[str]:
        """Return the names of the usable entry points, without importing their modules."""
        names = [point.name for point in self._entry_points()]
        built_in = self.built_in_keys()
        return sorted(name for name in names if name not in built_in and names.count(name) == 1)

    def load_all(self) -> tuple[list[InstalledRegistration[Value]], list[PlugInError]]:
        """Import all plug-ins; return all registrations, built-in ones first, and the errors."""
        registrations = [InstalledRegistration(value) for value in self.built_in()]
        errors: list[PlugInError] = []
        built_in = self.built_in_keys()
        for point in self._entry_points():
            try:
                if point.name in built_in:
                    reason = f"has the name of a built-in {self.noun}"
                    raise PlugInError.of(point.name, _distribution_name(point), reason)
                plug_in = self.find(point.name)
            except PlugInError as error:
                if str(error) not in map(str, errors):
                    errors.append(error)
            else:
                if plug_in not in registrations:  # a format has an entry point for each suffix
                    registrations.append(plug_in)
        return registrations, errors

    def _load(self, point: metadata.EntryPoint) -> InstalledRegistration[Value]:
        """Import the registration of an entry point.

        Raises:
            PlugInError: if it cannot be imported, has another type, lacks the name of the entry
                point, or claims the name of a built-in registration.
        """
        distribution = _distribution_name(point)
        try:
            value: Any = point.load()
        except MemoryError:
            raise
        except (Exception, SystemExit) as error:
            reason = f"({point.value}) cannot be loaded: {type(error).__name__}: {error}"
            raise PlugInError.of(point.name, distribution, reason) from error
        if not isinstance(value, self.type):
            expected = f"{self.type.__module__}.{self.type.__name__}"
            reason = f"({point.value}) is {repr(value)[:60]}, expected a {expected}"
            raise PlugInError.of(point.name, distribution, reason)
        if point.name not in value.keys:
            keys = _quote_names(value.keys)
            reason = f"({point.value}) registers {keys}; its entry point must have this name"
            raise PlugInError.of(point.name, distribution, reason)
        reserved = {name.lower() for entry in self.built_in() for name in (entry.name, *entry.keys)}
        names = dict.fromkeys((value.name, *value.keys))
        conflicts = [name for name in names if name.lower() in reserved]
        if conflicts:
            claim = f"claims {_quote_names(conflicts)}, the name of a built-in {self.noun}"
            raise PlugInError.of(point.name, distribution, f"({point.value}) {claim}")
        return InstalledRegistration(value, distribution)

    def _entry_points(self) -> list[metadata.EntryPoint]:
        """Return the entry points of the group, sorted by name and distribution."""
        points: dict[tuple[str, str], metadata.EntryPoint] = {}
        for point in _iterate_entry_points(self.name):
            # of two installations of a distribution, Python imports the first
            points.setdefault((point.name, _distribution_name(point)), point)
        return [points[key] for key in sorted(points)]


@dataclass(frozen=True)
class MakerGroup(PlugInGroup[PlugIn[Product]]):
    """Registrations of one kind whose objects are made by name.

    Attributes:
        methods: required methods of each object.
    """

    methods: tuple[str, ...] = ()

    def make(
        self, name: str, *arguments: Any, keywords: Mapping[str, object] | None = None
    ) -> Product:
        """Return a new object of a name.

        Args:
            name: name, or ``name:argument`` if the registration takes an argument.
            *arguments: arguments of the registration's ``make``, before that of the name.
            keywords: keyword arguments of ``make``.

        Raises:
            UnknownNameError: if the name is unknown, or takes no argument.
            PlugInError: if the plug-in cannot be loaded, fails, or returns an object without the
                methods of the kind.
            MissingExtraError: if a required extra is not installed.
        """
        key, colon, argument = name.partition(":")
        plug_in = self.find(key)
        if colon and not plug_in.value.argument:
            raise UnknownNameError.of(self.noun, name, self.built_in_keys())
        if colon:
            arguments = (*arguments, argument)
        try:
            product = plug_in.value.make(*arguments, **(keywords or {}))
        except (TmkitError, MemoryError):
            raise
        except Exception as error:
            if not plug_in.distribution:
                raise
            raise plug_in.error_of(error) from error
        has_methods = all(callable(getattr(product, method, None)) for method in self.methods)
        if not has_methods or isinstance(product, type):
            expected = f"expected a {self.noun} with the methods {', '.join(self.methods)}"
            raise plug_in.failure(f"makes {repr(product)[:60]}, {expected}")
        return product


def _iterate_entry_points(group: str) -> Iterator[metadata.EntryPoint]:
    """Yield the entry points of a group from all distributions with readable metadata."""
    from importlib import metadata  # takes 20 ms

    for distribution in metadata.distributions():
        try:
            points: Iterable[metadata.EntryPoint] = distribution.entry_points
            yield from points.select(group=group)  # type: ignore[attr-defined]  # of EntryPoints
        except (OSError, TypeError, ValueError):
            # a damaged file of an unrelated distribution must not stop tmkit
            continue


def _distribution_name(point: metadata.EntryPoint) -> str:
    """Return the name of the distribution of an entry point, or that of its metadata folder."""
    folder = str(getattr(point.dist, "_path", "unknown"))
    try:
        name = None if point.dist is None else point.dist.name
    except (KeyError, OSError, TypeError, ValueError):
        name = None
    return name or Path(folder).name.partition("-")[0]


def _quote_names(names: Iterable[str]) -> str:
    """Return names in quotes, separated by commas."""
    return ", ".join(f"'{name}'" for name in names)
