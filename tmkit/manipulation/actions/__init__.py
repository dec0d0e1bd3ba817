"""Motions of task-plan actions, checked in the scene version of each action.

``candidates`` defines the protocol and its simplest classes: pick, place, change of classes, dead
end, the building blocks of other actions, and their sequence. Other candidates have a module each:
``handover`` from hand to hand, ``operate`` for a drawer or door by its handle, ``look`` for a
measurement by a camera, ``push`` along a support, and ``pour`` into a container.

``pick_place`` has the motions of one arm: approach, grasp, lift, carry, lower, release, retreat.
``basic_motions`` has the building blocks: free motions, lines, touches and motions of the hand.
``primitives`` has their parts: contact configurations, straight lines and searched paths, each in a
phase of an action. ``timing_breakdown`` measures planning time by stage.

An action depends on geometry only. Its meaning in PDDL is defined by :mod:`tmkit.tamp.domains`.
"""
