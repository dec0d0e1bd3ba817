"""Streams: declared samplers of values, tests of values, and costs of values.

A *stream* is a function of a scene version with named inputs and outputs. It certifies facts about
its values, and an action lists the facts that its values must satisfy (Garrett, Lozano-Perez and
Kaelbling, "PDDLStream", ICAPS 2020). Values such as grasps and placements are not objects of PDDL.
The planner joins them while it refines an action. One sample serves every scene version in which
the data that its stream has read are equal.

docs/howto/streams.md has an example.
"""

from tmkit._support.lazy_imports import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
