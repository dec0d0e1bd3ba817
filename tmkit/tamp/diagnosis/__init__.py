"""Diagnosis: derivation of an explanation from the failures of a search without a plan.

``collect`` summarises the failures: bodies in the way, poses out of reach, conflicts between goals.
``explanation`` converts them to text, and ``diagnosis`` contains the value types.
:mod:`tmkit.tamp.geometric_causes` computes causes that are independent of the motions, and
:mod:`tmkit.tamp.suggestions` tries changes that lead to a plan.
"""
