"""Gymnasium environments of planning domains (extra ``learning``).

:class:`SymbolicEnv` has the actions of the PDDL domain, :class:`PhysicalEnv` joint velocities in a
physics engine. ``gymnasium.make("tmkit.envs:tmkit/Symbolic-v0", source="towers",
parameters={"blocks": 3})`` creates one, as the classes do.
"""

from tmkit._support.extras import is_installed
from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

if is_installed("gymnasium"):
    import gymnasium

    for _name in ("Symbolic", "Physical"):
        gymnasium.register(
            f"tmkit/{_name}-v0", entry_point=f"tmkit.envs.{_name.lower()}:{_name}Env"
        )
