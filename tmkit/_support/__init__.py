"""Helpers without a subject of their own: source locations, import notes, XML, limits, atomic output, processes.

These modules do not depend on scenes or formats; all packages above use them.
"""

import logging
import sys
from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit._support.output import write_text as write_text
    from tmkit._support.source_location import (
        ImportLog as ImportLog,
        ImportNote as ImportNote,
        Note as Note,
        SourceLocation as SourceLocation,
        did_you_mean as did_you_mean,
    )
    from tmkit._support.xml import XmlElement as XmlElement, read_xml as read_xml
else:
    __getattr__, __dir__ = lazy_names(__name__)

if getattr(sys.modules[__name__.partition(".")[0]], "_DISTRIBUTION", None) != "tmkit-robotics":
    from tmkit._support.other_distribution import explain_damage

    raise ImportError(explain_damage())  # or the core would be used without its exceptions

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent unless the user configures logging
