"""Diagnosis: from failures to the explanation of why there is no plan.

After a search without a plan, ``collect`` summarises the failures (bodies in the way, poses out of
reach, conflicts between goals), ``explanation`` writes them as text, and ``diagnosis`` has the
values of all of this. :mod:`tmkit.tamp.geometric_causes` looks for causes that hold whatever the
motions, :mod:`tmkit.tamp.suggestions` tries changes that would give a plan.
"""
