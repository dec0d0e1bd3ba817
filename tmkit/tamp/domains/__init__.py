"""Domains: what the words of PDDL mean in a scene.

A domain is a PDDL text and a ``semantics``: which objects a scene has, which facts hold in it, and by which candidates
an action may be carried out. ``loading`` gets both from a folder, or takes them as Python objects; ``problems`` derives
a task from a scene: objects, initial facts, goal.

Two modules help to write semantics: ``standing`` measures things that stand on things, and ``refutations`` has
arguments by which a goal is impossible whatever the motions. Two more are for domains that plan under uncertainty:
``probability`` knows how likely a Gaussian is to lie where it should, and ``scene_probability`` asks that of frames.
"""
