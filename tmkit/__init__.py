"""tmkit: a scene graph for task-and-motion planning.

A scene is an immutable value: every edit returns a new version, and the old one stays valid.
``tmkit.plan`` computes a validated plan from a robot, a scene and a PDDL goal. ``tmkit.simulate``
executes it in a physics simulator::

    import tmkit as tk

    scene = tk.load_scene("panda_table", "blocks3")
    result = tk.plan(scene, domain="blocks", goal="(and (on a b) (on b c))", robot="panda", seed=0)
    report = tk.simulate(result.plan)
"""

from tmkit._early_interrupt import end_command_on_interrupt

end_command_on_interrupt()  # before the core, whose import takes time
_DISTRIBUTION = "tmkit-robotics"
"""Marker of this package; a package ``tmkit`` of another project lacks it (``tmkit._support``)."""

from tmkit._support.lazy_imports import lazy_names
from tmkit._support.start import start

start()
__getattr__, __dir__ = lazy_names(__name__)
