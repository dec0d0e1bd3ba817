"""Plug-ins: registrations of file formats, planners, engines and transports, built in or installed.

::

    group            entry points            value    found by
    file formats     tmkit.formats           Format   suffix: load_scene("cell.abc")
    task planners    tmkit.task_planners     PlugIn   name: tmkit task --planner NAME
    motion planners  tmkit.motion_planners   PlugIn   name: tmkit plan --motion-planner NAME
    physics engines  tmkit.engines           PlugIn   name: tmkit simulate --engine NAME
    transports       tmkit.transports        PlugIn   name: tmkit serve --transport NAME

Each group has a table of its built-in registrations; those of other distributions are entry points,
as pytest's and Sphinx's plug-ins are. An entry point has the name under which its registration is
found (a suffix without its dot), so only the module of the one that is used is imported. Entry
points are looked up when a name is not built in, and for lists.

Guarantees: built-in names cannot be replaced; a name that two distributions claim is an error; a
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

__all__ = ["PlugIn"]  # the others are for the groups themselves

Product = TypeVar("Product")


@dataclass(frozen=True)
class PlugIn(Generic[Product]):
    """Registration of a task planner, a motion planner, a physics engine or a transport.

    Attributes:
        name: the name under which it is found, which its entry point has too.
        make: returns the object; imports its modules itself, since registrations are read for
            lists. Task and motion planners are made without arguments, or with ``argument``;
            engines as :meth:`tmkit.simulation.Simulation.from_scene`; transports with an address,
            ``listen``, ``world`` and ``settings``.
        description: one line for ``tmkit list``.
        argument: metavar of what may follow the name after a colon, such as ``ENGINE``; empty for
            nothing.
        extra: the extra of tmkit that it needs; empty for none.
        module: the module whose absence means that it cannot be used; empty for none.
    """

    name: str
    make: Callable[..., Product]
    description: str = ""
    argument: str = ""
    extra: str = ""
    module: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The names under which it is found."""
        return (self.name,)

    @property
    def usage(self) -> str:
        """The name, with the metavar of its argument."""
        return f"{self.name}:{self.argument}" if self.argument else self.name


class Registration(Protocol):
    """A registration value: :class:`PlugIn`, or ``Format`` of :mod:`tmkit.formats.format`."""

    @property
    def name(self) -> str:
        """The name, for lists and messages."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """The names under which it is found."""
        ...

    @property
    def usage(self) -> str:
        """How it is named in a list."""
        ...

    @property
    def description(self) -> str:
        """One line for a list."""
        ...

    @property
    def extra(self) -> str:
        """The extra of tmkit that it needs; empty for none."""
        ...

    @property
    def module(self) -> str:
        """The module that it needs; empty for none."""
        ...


Value = TypeVar("Value", bound=Registration)


@dataclass(frozen=True)
class Installed(Generic[Value]):
    """A registration and its origin.

    Attributes:
        value: the registration.
        distribution: the name of the distribution that it comes from; empty if it is built in.
    """

    value: Value
    distribution: str = ""

    @property
    def is_usable(self) -> bool:
        """Whether the module that it needs is installed."""
        return not self.value.module or importlib.util.find_spec(self.value.module) is not None

    @property
    def install_command(self) -> str:
        """The command that installs what is missing; empty if nothing is."""
        if self.is_usable:
            return ""
        return (
            install_command(self.value.extra)
            if self.value.extra
            else f"pip install {self.value.module}"
        )

    def error_of(self, error: Exception) -> TmkitError:
        """Return the error to raise where a function of the registration raises one that is not tmkit's.

        Args:
            error: the error that it raises.
        """
        if isinstance(error, ImportError) and self.install_command:
            message = f"'{self.value.keys[0]}' needs {self.value.module}: {self.install_command}"
            return MissingExtraError(message, extra=self.value.extra, module=self.value.module)
        return self.failure(f"fails: {type(error).__name__}: {error}")

    def failure(self, reason: str) -> PlugInError:
        """Return the error of this plug-in.

        Args:
            reason: what is wrong, with the verb.
        """
        return PlugInError.of(self.value.keys[0], self.distribution or "tmkit", reason)


@dataclass(frozen=True)
class PlugInGroup(Generic[Value]):
    """The registrations of one kind.

    Attributes:
        name: the group of entry points.
        noun: the kind, for messages.
        type: class of the registrations.
        built_in: returns the built-in registrations, in the order of lists.
    """

    name: str
    noun: str
    type: type[Value]
    built_in: Callable[[], tuple[Value, ...]]

    def find_built_in(self, key: str) -> Value | None:
        """Return the built-in registration of a name, None if there is none."""
        return next((value for value in self.built_in() if key in value.keys), None)

    def find(self, key: str) -> Installed[Value]:
        """Return the registration of a name; the module of a plug-in is imported.

        Args:
            key: the name.

        Raises:
            UnknownNameError: if there is none.
            PlugInError: if its plug-in cannot be loaded, or two distributions claim the name.
        """
        value = self.find_built_in(key)
        if value is not None:
            return Installed(value)
        points = self._points()
        found = [point for point in points if point.name == key]
        if not found:
            raise UnknownNameError.of(
                self.noun, key, dict.fromkeys([*self.built_in_keys(), *(p.name for p in points)])
            )
        if len(found) > 1:
            several = " and ".join(f"'{_distribution(point)}'" for point in found)
            raise PlugInError.of(
                key, _distribution(found[0]), f"is claimed by the distributions {several}"
            )
        return self._loaded(found[0])

    def built_in_keys(self) -> list[str]:
        """Return the names of the built-in registrations."""
        return [key for value in self.built_in() for key in value.keys]

    def installed_keys(self) -> list[str]:
        """Return the names of the entry points that can be found; nothing of them is imported."""
        names = [point.name for point in self._points()]
        built_in = self.built_in_keys()
        return sorted(name for name in names if name not in built_in and names.count(name) == 1)

    def load_all(self) -> tuple[list[Installed[Value]], list[PlugInError]]:
        """Return all registrations, built-in ones first, and the errors of plug-ins; plug-ins are imported."""
        found = [Installed(value) for value in self.built_in()]
        errors: list[PlugInError] = []
        built_in = self.built_in_keys()
        for point in self._points():
            try:
                if point.name in built_in:
                    raise PlugInError.of(
                        point.name, _distribution(point), f"has the name of a built-in {self.noun}"
                    )
                plug_in = self.find(point.name)
            except PlugInError as error:
                if str(error) not in map(str, errors):
                    errors.append(error)
            else:
                if plug_in not in found:  # a format has an entry point for each suffix
                    found.append(plug_in)
        return found, errors

    def _loaded(self, point: metadata.EntryPoint) -> Installed[Value]:
        """Return the registration of an entry point."""
        distribution = _distribution(point)
        try:
            value: Any = point.load()
        except MemoryError:
            raise
        except (Exception, SystemExit) as error:
            reason = f"({point.value}) cannot be loaded: {type(error).__name__}: {error}"
            raise PlugInError.of(point.name, distribution, reason) from error
        if not isinstance(value, self.type):
            reason = (
                f"({point.value}) is {repr(value)[:60]}, expected a"
                f" {self.type.__module__}.{self.type.__name__}"
            )
            raise PlugInError.of(point.name, distribution, reason)
        if point.name not in value.keys:
            reason = (
                f"({point.value}) registers {_listed(value.keys)}; its entry point must have this"
                " name"
            )
            raise PlugInError.of(point.name, distribution, reason)
        taken = {name.lower() for entry in self.built_in() for name in (entry.name, *entry.keys)}
        claimed = [
            name for name in dict.fromkeys((value.name, *value.keys)) if name.lower() in taken
        ]
        if claimed:
            reason = (
                f"({point.value}) claims {_listed(claimed)}, the name of a built-in {self.noun}"
            )
            raise PlugInError.of(point.name, distribution, reason)
        return Installed(value, distribution)

    def _points(self) -> list[metadata.EntryPoint]:
        """Return the entry points of the group, by name and distribution."""
        points: dict[tuple[str, str], metadata.EntryPoint] = {}
        for point in _entry_points(self.name):
            # of two installations the first counts
            points.setdefault((point.name, _distribution(point)), point)
        return [points[key] for key in sorted(points)]


@dataclass(frozen=True)
class MakerGroup(PlugInGroup[PlugIn[Product]]):
    """The registrations of one kind whose objects are made by name.

    Attributes:
        methods: the methods that each object has.
    """

    methods: tuple[str, ...] = ()

    def make(
        self, name: str, *arguments: Any, keywords: Mapping[str, object] | None = None
    ) -> Product:
        """Return a new object of a name.

        Args:
            name: the name, after a colon followed by the argument if the registration takes one.
            *arguments: arguments of the registration's ``make``, before that of the name.
            keywords: keywords of it.

        Raises:
            UnknownNameError: if there is no such name.
            PlugInError: if the plug-in cannot be loaded, fails, or returns an object without the
                methods of the kind.
            MissingExtraError: if it needs an extra.
        """
        key, colon, argument = name.partition(":")
        plug_in = self.find(key)
        if colon and not plug_in.value.argument:
            raise UnknownNameError.of(self.noun, name, self.built_in_keys())
        try:
            made = plug_in.value.make(
                *arguments, *([argument] if colon else []), **(keywords or {})
            )
        except (TmkitError, MemoryError):
            raise
        except Exception as error:
            if not plug_in.distribution:
                raise
            raise plug_in.error_of(error) from error
        missing = [method for method in self.methods if not callable(getattr(made, method, None))]
        if missing or isinstance(made, type):
            expected = f"expected a {self.noun} with the methods {', '.join(self.methods)}"
            raise plug_in.failure(f"makes {repr(made)[:60]}, {expected}")
        return made


def _entry_points(group: str) -> Iterator[metadata.EntryPoint]:
    """Yield the entry points of a group, of each distribution once; unreadable metadata is passed over."""
    from importlib import metadata  # takes 20 ms

    for distribution in metadata.distributions():
        try:
            points: Iterable[metadata.EntryPoint] = distribution.entry_points
            yield from points.select(group=group)  # type: ignore[attr-defined]  # of EntryPoints
        except (OSError, TypeError, ValueError):
            # a damaged file of a distribution that may be of no concern
            continue


def _distribution(point: metadata.EntryPoint) -> str:
    """Return the name of the distribution of an entry point; of one without metadata, that of its folder."""
    folder = str(getattr(point.dist, "_path", "unknown"))
    try:
        name = None if point.dist is None else point.dist.name
    except (KeyError, OSError, TypeError, ValueError):
        name = None
    return name or Path(folder).name.partition("-")[0]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
