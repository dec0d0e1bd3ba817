"""The names that `tmkit.tamp.parts` exports."""

from tmkit.tamp.parts.access import (
    ContainerWithLid as ContainerWithLid,
    Door as Door,
    Drawer as Drawer,
)
from tmkit.tamp.parts.arms import TwoArms as TwoArms
from tmkit.tamp.parts.cells import Cells as Cells
from tmkit.tamp.parts.composition import DomainPart as DomainPart, compose_domain as compose_domain
from tmkit.tamp.parts.driving import Driving as Driving
from tmkit.tamp.parts.handling import Pouring as Pouring, Pushing as Pushing
from tmkit.tamp.parts.regions import Regions as Regions
from tmkit.tamp.parts.standing import Slots as Slots, Stacking as Stacking
from tmkit.tamp.parts.treatments import (
    Cooking as Cooking,
    Home as Home,
    Orientation as Orientation,
    Washing as Washing,
)
