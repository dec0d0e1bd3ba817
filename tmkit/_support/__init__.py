"""General helpers: source locations, import notes, XML, limits, atomic output, processes.

These modules do not depend on scenes or formats; all packages above use them.
"""

import logging
import sys

if getattr(sys.modules[__name__.partition(".")[0]], "_DISTRIBUTION", None) != "tmkit-robotics":
    from tmkit._support.other_distribution import explain_damage

    raise ImportError(explain_damage())  # before the core is used without its exceptions

# Without a configuration of logging, the package writes no records.
logging.getLogger(__name__).addHandler(logging.NullHandler())
