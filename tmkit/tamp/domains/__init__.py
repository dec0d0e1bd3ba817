"""Domains: PDDL and its semantics in a scene.

A domain is PDDL text and a semantics: the objects of a scene, the facts that hold in it, and the candidates that carry
out an action. ``protocols`` defines what a semantics implements, ``loading`` reads a domain from a folder or takes it
as Python objects, ``problems`` derives a PDDL problem from a scene, ``state_derivation`` derives the state of one scene
version from that of another.

Two modules help to write a semantics: ``tabletop`` measures how objects rest on surfaces, and ``infeasibility`` proves
goals impossible whatever the motions. :mod:`tmkit.tamp.uncertainty` is for domains that plan under uncertainty.
"""
