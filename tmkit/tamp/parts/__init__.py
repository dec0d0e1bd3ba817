"""Domains from parts: importable fragments of PDDL with their semantics, which :func:`compose_domain` combines.

Each part is a class derived from :class:`DomainPart`; docs/howto/domains_from_parts.md makes a domain of five.
"""

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.tamp.parts.access import (
        Access as Access,
        ContainerWithLid as ContainerWithLid,
        Door as Door,
        Drawer as Drawer,
    )
    from tmkit.tamp.parts.arms import TwoArms as TwoArms
    from tmkit.tamp.parts.cells import Cells as Cells
    from tmkit.tamp.parts.composition import DomainPart as DomainPart, compose_domain as compose_domain
    from tmkit.tamp.parts.driving import Driving as Driving
    from tmkit.tamp.parts.handling import Pouring as Pouring, Pushing as Pushing
    from tmkit.tamp.parts.regions import Region as Region, Regions as Regions
    from tmkit.tamp.parts.standing import Slots as Slots, Stacking as Stacking
    from tmkit.tamp.parts.treatments import (
        Cooking as Cooking,
        Home as Home,
        Orientation as Orientation,
        Treatment as Treatment,
        Washing as Washing,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
