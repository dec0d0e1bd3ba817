"""Actions: one action of a task plan made motion, checked in the scene version in which it happens.

``candidates`` is the protocol and its simplest members: pick, place, move, change, impossible. Larger ones stand beside
it: ``handover`` from hand to hand, ``operating`` a drawer or a door by its handle, ``sequence`` for several in a row.

They are made of the motions of one arm (``arm_motion``: approach, grasp, lift, carry, lower, release, retreat), and
these of ``motion_pieces``: contact configurations, straight lines, searched paths. ``phases`` is the clock that says
where planning time went.

An action knows geometry and nothing of facts: what it means in PDDL is the business of ``domains``.
"""
