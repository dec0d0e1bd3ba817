"""Actions: one action of a task plan as motion, checked in the scene version in which it happens.

``candidates`` defines the protocol and its simplest classes: pick, place, move, change, sequence,
impossible. Larger ones are modules of their own. These are ``handover`` from hand to hand,
``operate`` for a drawer or door by its handle, ``look`` for a measurement by a camera, ``push``
along a support, and ``pour`` into a container.

``pick_place`` has the motions of one arm (approach, grasp, lift, carry, lower, release, retreat).
``primitives`` has what these are made of: contact configurations, straight lines, searched paths,
each in a phase of an action. ``timing_breakdown`` measures where planning time is spent.

An action depends on geometry only. Its meaning in PDDL is defined by :mod:`tmkit.tamp.domains`.
"""
