"""Helpers without a subject of their own: source locations, import notes, XML, limits, atomic output, processes.

These modules do not depend on scenes or formats; all packages above use them.
"""

import logging
import sys

if getattr(sys.modules[__name__.partition(".")[0]], "_DISTRIBUTION", None) != "tmkit-robotics":
    from tmkit._support.other_distribution import explain_damage

    raise ImportError(explain_damage())  # or the core would be used without its exceptions

# silent unless the user configures logging
logging.getLogger(__name__).addHandler(logging.NullHandler())
